// What is counted and logged of each request: route templates and ids, never paths, queries, tokens or bodies.
#pragma once

#include "server/web/call.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>

#include <memory>
#include <optional>
#include <string>

namespace kubeopera::inline v1::web {

/// Metrics (label service): kubeopera_http_requests_total{method,route,status}, with the class of the status, "5xx";
/// kubeopera_http_request_duration_seconds{method,route} until the reply's head; kubeopera_http_requests_in_flight;
/// kubeopera_http_streams_open. Thread-safe.
class telemetry {
 public:
  /// Lifetime: clk, log and stats (may be null) must outlive the exchanges, and what they return.
  telemetry(std::string service, clock& clk, logger& log, metrics* stats);

  /// One request under way. Destroyed without finish(), it counts as one that ended with "aborted".
  class exchange {
   public:
    exchange(const telemetry& owner, const call& c);
    ~exchange();
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    /// Counts and logs the reply, and wraps its stream so that open ones are counted. why: the error that became the reply.
    void finish(http::response& reply, const std::optional<error>& why);

   private:
    void count(std::string_view status);
    const telemetry& owner_;
    const call& call_;
    steady_time begun_;
    bool finished_ = false;
  };

 private:
  struct gauges;
  std::string service_;
  clock& clock_;
  logger& log_;
  metrics* stats_;
  std::shared_ptr<gauges> gauges_;
};

}  // namespace kubeopera::inline v1::web
