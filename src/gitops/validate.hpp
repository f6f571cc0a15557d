// What may enter the fleet repository: paths, file names, sizes, subjects, trailers, branch names.
#pragma once

#include <kubeopera/gitops/committer.hpp>

#include <string_view>

namespace kubeopera::inline v1::gitops::detail {

constexpr std::size_t max_file_bytes = std::size_t(1) << 20;
constexpr std::size_t max_name_bytes = 100;

/// 1 to 63 of a-z, 0-9 and '-', neither first nor last a '-'.
bool is_dns_label(std::string_view text) noexcept;

/// Errors: invalid_argument with one violation a fault.
result<void> validate_change(const change& c);

/// Letters, digits, '.', '_', '-' and '/', by git's rules for refs and without a leading '-'. Errors: invalid_argument.
result<void> validate_branch(std::string_view branch);

}  // namespace kubeopera::inline v1::gitops::detail
