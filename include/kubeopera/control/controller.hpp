// A controller: workers that take keys from a queue and hand them to a reconciler.
#pragma once

#include <kubeopera/control/outcome.hpp>
#include <kubeopera/control/queue.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>

#include <memory>
#include <string>

namespace kubeopera::inline v1::control {

/// Brings one thing from what is to what should be. It gets a key, never an event: it reads the state itself, and running it
/// twice changes nothing. Thread safety: reconcile() runs on several strands at once, never twice for one key.
class reconciler {
 public:
  virtual ~reconciler() = default;
  /// Errors are retried with growing delays (at least the error's retry_after); see outcome::stalled for what is not.
  virtual task<outcome> reconcile(const std::string& key) = 0;
};

/// Something that runs until it is cancelled. What manager runs.
class component {
 public:
  virtual ~component() = default;
  virtual std::string name() const = 0;
  /// Runs until cancelled. A value or `cancelled` is an orderly end; any other error brings the process down.
  virtual task<void> run() = 0;
  /// Returns once others may rely on it (a cache is filled, a port is open). Errors: cancelled, or why it never will be.
  virtual task<void> ready();
};

struct controller_options {
  controller_options() = default;
  int workers = 1;
  /// Longest time for one step; then it is cancelled and counts as failed (deadline_exceeded).
  duration step_deadline = std::chrono::minutes(2);
};

/// Metrics (label controller): kubeopera_reconcile_total{result=done|again|error|stalled}, kubeopera_reconcile_seconds,
/// kubeopera_reconcile_active. Exceptions of a step are caught here and count as an internal error.
class controller final : public component {
 public:
  /// @param executor where the workers run, each on a strand of its own (give the pool's, not a strand's)
  /// Lifetime: clk, log and all must outlive the controller.
  controller(asio::any_io_executor executor, std::string name, std::shared_ptr<queue> keys, std::shared_ptr<reconciler> step,
             controller_options options = controller_options(), clock& clk = clock::real(), logger& log = logger::none(),
             metrics* all = nullptr);
  ~controller() override;
  std::string name() const override;
  /// Works until cancelled, then waits for the steps under way (which are cancelled too). Errors: cancelled; unavailable when
  /// the queue was closed.
  task<void> run() override;
  queue& keys() noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::control
