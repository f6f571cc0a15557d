// Starts the parts of a process in order, watches them, and stops them in reverse.
#pragma once

#include <kubeopera/control/controller.hpp>

#include <functional>
#include <memory>
#include <string>

namespace kubeopera::inline v1::control {

/// The order of start. A group starts when all of the groups before it are ready; the leader-elected group also waits for
/// the gate, without holding up the groups after it.
enum class group { stores, caches, leader_elected, http };

struct manager_options {
  manager_options() = default;
  /// How long a group may take to stop before the next one is stopped all the same.
  duration drain_limit = std::chrono::seconds(20);
  /// How long a group may take to become ready.
  duration ready_limit = std::chrono::minutes(2);
  /// Returns when this process leads. Unset: it always does. Losing the lead is an error of the component that elects.
  std::function<task<void>()> leader_gate;
};

/// Thread safety: add() before run(); stop() from any thread.
class manager {
 public:
  /// @param executor where components run, each on a strand of its own. Lifetime: log must outlive the manager.
  explicit manager(asio::any_io_executor executor, manager_options options = manager_options(), logger& log = logger::none());
  ~manager();
  manager(const manager&) = delete;
  manager& operator=(const manager&) = delete;

  void add(group where, std::shared_ptr<component> part);
  /// A component made of functions.
  void add(group where, std::string name, std::function<task<void>()> run, std::function<task<void>()> ready = {});

  /// Runs everything. Ends when stop() is called (success), when the caller is cancelled (cancelled), or when a component
  /// ends with an error (that error, prefixed with its name); in each case the groups are stopped in reverse order first.
  /// A component that does not stop within the limit is named in the log and left behind (deadline_exceeded if nothing
  /// else was wrong).
  task<void> run();
  /// Asks run() to end. Never blocks.
  void stop() noexcept;
  /// True from when all groups (but a leader-elected one that waits for the lead) have started until the stop.
  bool ready() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::control
