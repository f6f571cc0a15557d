// Injected time and randomness. Production code takes a clock&; tests drive a manual one.
#pragma once

#include <kubeopera/core/async.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace kubeopera::inline v1 {

using system_time = std::chrono::system_clock::time_point;
using steady_time = std::chrono::steady_clock::time_point;

/// Thread safety: all members may be called from any thread.
class clock {
 public:
  virtual ~clock() = default;
  virtual system_time now() const = 0;
  virtual steady_time steady() const = 0;
  /// Errors: cancelled.
  virtual task<void> sleep(duration time) = 0;
  /// The machine's own clock; lives for ever.
  static clock& real();
};

/// "2026-11-30T22:06:05Z".
std::string format_rfc3339(system_time t);
/// With milliseconds: "2026-11-30T22:06:05.123Z".
std::string format_rfc3339_millis(system_time t);
/// With microseconds, as Kubernetes writes MicroTime.
std::string format_rfc3339_micros(system_time t);
/// Strict RFC 3339 with any offset. Errors: invalid_argument.
result<system_time> parse_rfc3339(std::string_view text);

/// Cryptographically strong random bytes from the operating system.
void fill_random(void* data, std::size_t size);
std::uint64_t random_u64();

}  // namespace kubeopera::inline v1
