// Exponential backoff with full jitter.
#pragma once

#include <kubeopera/core/clock.hpp>

#include <algorithm>
#include <cstdint>

namespace kubeopera::inline v1 {

/// Delays that grow from initial to max, each drawn evenly from (0, ceiling]. Not thread-safe.
class backoff {
 public:
  backoff(duration initial, duration max) : initial_(initial), max_(max), ceiling_(initial) {}
  /// The next delay. random is a number from 0 to 2^64-1 (injected in tests).
  duration next(std::uint64_t random = random_u64()) {
    auto top = static_cast<std::uint64_t>(ceiling_.count());
    ceiling_ = std::min(max_, ceiling_ * 2);
    return duration(static_cast<duration::rep>(random % top) + 1);
  }
  void reset() { ceiling_ = initial_; }

 private:
  duration initial_, max_, ceiling_;
};

}  // namespace kubeopera::inline v1
