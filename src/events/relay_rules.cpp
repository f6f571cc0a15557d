// Retry, dead letter or done.
#include "src/events/relay_rules.hpp"

#include <algorithm>

namespace kubeopera::inline v1::events {

bool permanent(const error& e) noexcept {
  switch (e.code()) {
    case errc::invalid_argument:
    case errc::permission_denied:
    case errc::unauthenticated:
    case errc::unsupported:
    case errc::too_large:
    case errc::failed_precondition:
      return true;
    default:
      return false;
  }
}

decision decide(const result<void>& outcome, int attempts, const relay_options& options, std::uint64_t random) {
  decision d;
  if (outcome) return d;
  if (permanent(outcome.error())) {
    d.what = verdict::dead;
    return d;
  }
  d.what = verdict::again;
  duration ceiling = options.first_retry;
  for (int i = 0; i < attempts && ceiling < options.max_retry; ++i) ceiling *= 2;
  ceiling = std::max(duration(2), std::min(ceiling, options.max_retry));
  d.delay = ceiling - duration(static_cast<duration::rep>(random % static_cast<std::uint64_t>(ceiling.count() / 2)));
  if (outcome.error().retry_after()) d.delay = std::max<duration>(d.delay, *outcome.error().retry_after());
  return d;
}

}  // namespace kubeopera::inline v1::events
