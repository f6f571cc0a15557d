// Whether what a process depends on works: asked at most so often, and answered in bounded time whatever hangs.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>
#include <kubeopera/http/message.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kubeopera::inline v1::web {

/// One thing that has to work for the service to be ready.
struct readiness_check {
  std::string name;                              ///< "database"
  std::function<task<void>()> probe;             ///< one at a time; what it refers to must be kept alive by it
  duration limit = std::chrono::seconds(2);      ///< no answer within this is a failure
  duration fresh_for = std::chrono::seconds(1);  ///< an answer is given again for this long
};

/// The state of all checks. A probe that does not even end when it is cancelled is never started a second time: its dependency
/// stays sick until it answers. Changes are logged, and shown as kubeopera_dependency_up{service,dependency}.
/// Thread safety: answer() may be called concurrently; probes are shared.
class readiness {
 public:
  /// Lifetime: clk, log and stats must outlive this and the probes under way.
  readiness(std::vector<readiness_check> checks, std::string service, clock& clk, logger& log, metrics* stats);
  ~readiness();
  /// 200, or 503 where a check fails: {"status", "checks": [{"name", "ok", "state": "ok|failing|no answer", "age_ms",
  /// "message"}]}. Takes as long as the longest limit of the checks that are not fresh.
  task<http::response> answer();

 private:
  struct check;
  std::vector<std::shared_ptr<check>> checks_;
};

}  // namespace kubeopera::inline v1::web
