// Who ends the waits of an execution context. The machine's timers do, unless a timekeeper is named: then every wait of the SDK
// on that context's executors (sleep_for, with_deadline, notifier) is the timekeeper's to end, which is how a simulation runs
// hours in milliseconds and the same way each time. Not here: reading the time; that is clock.hpp.
#pragma once

#include <kubeopera/core/async.hpp>

#include <cstdint>
#include <memory>

namespace boost::asio {
class execution_context;
}

namespace kubeopera::inline v1 {

/// Thread safety: called from the threads that run the context; a context with a timekeeper is best run by one thread.
class timekeeper {
 public:
  /// A wait under way. Destroying it drops what waits without resuming it.
  class wait {
   public:
    virtual ~wait() = default;
    /// Resumes what waits, once, through its executor.
    virtual void end(bool time_is_over) = 0;
  };
  virtual ~timekeeper() = default;
  /// Keeps a wait until time is over (then calls end(true)) or until it is taken back. Returns its number, never 0.
  virtual std::uint64_t keep(duration time, std::unique_ptr<wait> w) = 0;
  /// The wait of that number, which is then no longer kept; null where it has ended.
  virtual std::unique_ptr<wait> take(std::uint64_t number) = 0;
};

/// From now on keeper ends the waits on context's executors. Call it before anything waits there; once for each context.
/// Lifetime: keeper must outlive the context.
void keep_time(asio::execution_context& context, timekeeper& keeper);

}  // namespace kubeopera::inline v1
