// The vocabulary of asynchronous code: task<T>, deadlines, notifications, spawn.
// Everything that does I/O is a task. Cancellation is Asio's, per operation and terminal; it always comes back as the error
// `cancelled`, never as an exception. Coroutines are started with spawn() or background::start(), which give each a strand.
#pragma once

#include <kubeopera/core/result.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace kubeopera::inline v1 {

namespace asio = boost::asio;

/// An asynchronous operation that ends in a value or an error.
template <class T>
using task = asio::awaitable<result<T>>;

using duration = std::chrono::steady_clock::duration;

/// The executor of the coroutine that awaits this.
asio::awaitable<asio::any_io_executor> current_executor();

/// Sleep on real time. Errors: cancelled.
task<void> sleep_for(duration time);

namespace detail {
/// Runs op; cancels it when time is over. Returns true when op ended by itself.
asio::awaitable<bool> run_until(duration time, asio::awaitable<void> op);

/// True when this coroutine has been asked to stop.
asio::awaitable<bool> cancelled();

template <class T>
asio::awaitable<void> capture(task<T> op, std::optional<result<T>>& out) {
  result<T> r = co_await std::move(op);
  out.emplace(std::move(r));
}
}  // namespace detail

/// op's result, or deadline_exceeded when it did not end within time (op is cancelled and awaited first).
template <class T>
task<T> with_deadline(duration time, task<T> op) {
  std::optional<result<T>> out;
  bool in_time = co_await detail::run_until(time, detail::capture<T>(std::move(op), out));
  if (out && (in_time || out->has_value() || co_await detail::cancelled())) co_return std::move(*out);
  co_return error(errc::deadline_exceeded, "DeadlineExceeded", "no answer in time");
}

/// Starts a coroutine that belongs to nobody; an exception in it ends in on_exception or terminates the process.
void spawn(asio::any_io_executor executor, asio::awaitable<void> body, std::function<void(std::exception_ptr)> on_exception = {});

/// A started coroutine that can be stopped and waited for. Move-only.
/// Lifetime: destroying it requests the stop but does not wait.
class background {
 public:
  background() = default;
  background(background&&) noexcept = default;
  background& operator=(background&&) noexcept;
  ~background();
  /// Starts body on executor.
  static background start(asio::any_io_executor executor, asio::awaitable<void> body);
  /// Asks it to stop (cancels what it waits for). Thread-safe.
  void stop() noexcept;
  bool finished() const noexcept;
  /// Waits until the body has ended. Errors: cancelled.
  task<void> join();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// A thread-safe "something changed" signal without lost wake-ups:
/// take ticket(), look at your condition, then wait(ticket).
class notifier {
 public:
  notifier();
  ~notifier();
  notifier(const notifier&) = delete;
  notifier& operator=(const notifier&) = delete;
  std::uint64_t ticket() const noexcept;
  /// Wakes every waiter. Thread-safe, never blocks.
  void notify() noexcept;
  /// Returns when notify() was called after ticket was taken. Errors: cancelled.
  task<void> wait(std::uint64_t ticket);
  /// The same with a limit: true when notified, false when time ran out. Errors: cancelled.
  task<bool> wait_for(std::uint64_t ticket, duration time);

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// Runs blocking work on a pool of threads and resumes on the caller's executor.
class offload {
 public:
  explicit offload(unsigned threads);
  ~offload();
  offload(const offload&) = delete;
  offload& operator=(const offload&) = delete;
  /// work's result. Not cancellable: the work runs to its end.
  template <class T>
  task<T> run(std::function<result<T>()> work) {
    std::optional<result<T>> out;
    std::function<void()> job = [&out, &work] { out.emplace(work()); };
    co_await run_job(std::move(job));
    co_return std::move(*out);
  }

 private:
  asio::awaitable<void> run_job(std::function<void()> job);
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace kubeopera::inline v1
