// Refs of a bare repository by git's own file rules: loose before packed, lock files, compare-and-swap.
#pragma once

#include "src/gitops/oid.hpp"

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>

#include <optional>
#include <string>

namespace kubeopera::inline v1::gitops::detail {

/// What name ("refs/heads/main") points to in the repository at directory; nullopt when it does not exist.
/// Errors: unavailable (disk), data_loss (not an id), unsupported (symbolic).
result<std::optional<oid>> read_ref(const std::string& directory, const std::string& name);

constexpr auto stale_lock_age = std::chrono::seconds(5);

/// Moves name from `from` (none: must not exist) to `to`, synced to disk before it is seen.
/// A lock that is older than stale_lock_age was left by a process that died, and is broken.
/// Errors: conflict (it is elsewhere), resource_exhausted with reason RefLocked (another process holds the lock), unavailable.
result<void> swap_ref(const std::string& directory, const std::string& name, std::optional<oid> from, const oid& to);

/// Points name to `to` whatever it was, without a sync: for hints.
result<void> write_ref(const std::string& directory, const std::string& name, const oid& to);

}  // namespace kubeopera::inline v1::gitops::detail
