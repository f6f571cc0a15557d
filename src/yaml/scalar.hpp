// What an unquoted scalar means: to both YAML versions at once (strict), and to Go's YAML 1.1 reader.
#pragma once

#include <kubeopera/json/value.hpp>

#include <optional>
#include <string_view>

namespace kubeopera::inline v1::yaml {

enum class scalar_kind { text, null, boolean, number, ambiguous, not_json, out_of_range };

struct scalar {
  scalar_kind kind = scalar_kind::text;
  json::value value;
};

/// The meaning that YAML 1.1 and 1.2 share, or ambiguous where they differ.
scalar resolve_strict(std::string_view text);
/// The meaning in go.yaml.in/yaml/v2; nullopt for infinity and NaN, which have no JSON form.
std::optional<json::value> resolve_go(std::string_view text);
/// True for y, yes, on, true, null, ~ and their kin in any letter case.
bool is_reserved_word(std::string_view text) noexcept;

}  // namespace kubeopera::inline v1::yaml
