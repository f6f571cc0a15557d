// What becomes of an outbox row after a delivery: the pure part of the relay.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/events/outbox_table.hpp>

#include <cstdint>

namespace kubeopera::inline v1::events {

struct decision {
  verdict what = verdict::done;
  duration delay{};  ///< of `again`
};

/// True where sending the same row again cannot succeed.
bool permanent(const error& e) noexcept;

/// @param attempts deliveries begun before this one
/// @param random   from 0 to 2^64-1; the delay is drawn from the upper half of its ceiling
decision decide(const result<void>& outcome, int attempts, const relay_options& options, std::uint64_t random);

}  // namespace kubeopera::inline v1::events
