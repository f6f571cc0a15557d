// A child program with pipes, for ssh and git: no shell, a process group of its own, always reaped.
#pragma once

#include <kubeopera/core/async.hpp>

#include <memory>
#include <string>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

struct spawn_options {
  spawn_options() = default;
  std::string program;                   ///< looked up in PATH unless it holds a '/'
  std::vector<std::string> arguments;    ///< without the program's name
  std::vector<std::string> environment;  ///< complete, "NAME=value"
};

/// Thread safety: write(), close_input(), read(), wait() and stop() may be called from any strand, each by one caller at a time.
/// Dropping the object kills the process group.
class child_process {
 public:
  /// Errors: unavailable (the program cannot be started).
  static result<std::unique_ptr<child_process>> start(asio::any_io_executor executor, const spawn_options& options);
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  /// Queues bytes for its standard input; waits while more than a mebibyte is queued. Errors: unavailable (it has gone),
  /// cancelled.
  task<void> write(std::string bytes);
  /// Its standard input ends after what was queued.
  void close_input();
  /// The next piece of its standard output; "" at the end. Errors: cancelled.
  task<std::string> read();
  /// Its exit code once it has ended; 128 + number when a signal ended it. Errors: cancelled.
  task<int> wait();
  /// The last 4 KiB that it wrote to standard error so far.
  std::string error_text() const;
  /// Kills the process group.
  void stop() noexcept;

 private:
  struct state;
  explicit child_process(std::shared_ptr<state> s) : state_(std::move(s)) {}
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::gitops::detail
