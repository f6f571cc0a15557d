// Calling a handler, and how its failures are retried: what both kinds of bus share.
#pragma once

#include "src/events/relay_rules.hpp"

#include <kubeopera/events/bus.hpp>

namespace kubeopera::inline v1::events {

/// What becomes of an event after its nth delivery (from 1) to a queue.
inline decision decide(const result<void>& outcome, int nth, const bus_options& options, std::uint64_t random) {
  relay_options r;
  r.first_retry = options.first_retry;
  r.max_retry = options.max_retry;
  auto d = decide(outcome, nth - 1, r, random);
  if (d.what == verdict::again && nth >= options.max_attempts) d.what = verdict::dead;
  return d;
}

/// The handler's answer; an exception of it is an internal error.
task<void> call_handler(const event_handler& handler, const event& e);

}  // namespace kubeopera::inline v1::events
