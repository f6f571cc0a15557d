// The work queue of controllers: keys, each at most once in the queue and never worked on twice at the same time.
// queue_state is the pure state machine; queue is its thread-safe, awaitable shell.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/metrics.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace kubeopera::inline v1::control {

struct queue_options {
  queue_options() = default;
  /// Delay after the first failure of a key; doubles with each further failure, up to max_delay.
  duration first_delay = std::chrono::milliseconds(50);
  duration max_delay = std::chrono::minutes(5);
  /// Source of jitter (injected in tests). A delay is drawn from the upper half of its ceiling.
  std::function<std::uint64_t()> random = random_u64;
};

namespace detail {
/// Keys with a due time, the earliest first; at most one time a key.
class schedule {
 public:
  /// Keeps the earlier of the old and the new time.
  void put(const std::string& key, steady_time due);
  void erase(const std::string& key);
  std::optional<steady_time> next() const;
  /// Takes out a key that is due.
  std::optional<std::string> pop(steady_time now);
  std::size_t size() const noexcept { return by_key_.size(); }

 private:
  std::map<std::string, steady_time> by_key_;
  std::set<std::pair<steady_time, std::string>> by_time_;
};
}  // namespace detail

/// The queue's rules without threads, clocks or waiting. A key is waiting, worked on, or both: one that is added while it is
/// worked on is handed out again after finish(), never before. Not thread-safe.
class queue_state {
 public:
  explicit queue_state(queue_options options = queue_options()) : options_(std::move(options)) {}
  /// Makes a key wait for work. False when it already does.
  bool add(const std::string& key, steady_time now);
  /// Adds a key later. Of several times for one key the earliest counts.
  void add_at(const std::string& key, steady_time due);
  /// Adds a key later on behalf of its own last step: void once the key is handed out for another reason.
  void again_at(const std::string& key, steady_time due);
  /// Counts a failure and adds the key after a growing, jittered delay, at least `least`. Returns the delay.
  duration fail(const std::string& key, steady_time now, duration least = duration::zero());
  /// Forgets the failures of a key.
  void forget(const std::string& key) { failures_.erase(key); }

  struct work {
    std::string key;
    duration waited;  ///< since it was added
  };
  /// Hands out the key that has waited longest; finish() must follow.
  std::optional<work> take(steady_time now);
  /// The work on a key has ended. True when the key had been added meanwhile and waits again.
  bool finish(const std::string& key, steady_time now);
  /// When the next delayed key is due.
  std::optional<steady_time> next_due() const;

  std::size_t depth() const noexcept { return waiting_.size(); }
  std::size_t delayed() const noexcept { return added_.size() + again_.size(); }
  std::size_t in_work() const noexcept { return in_work_.size(); }
  int failures(const std::string& key) const;

 private:
  void promote(steady_time now);
  queue_options options_;
  std::deque<std::string> waiting_;
  std::map<std::string, steady_time> dirty_;  // key -> when it was added
  std::set<std::string> in_work_;
  detail::schedule added_, again_;
  std::map<std::string, int> failures_;
};

/// Thread-safe. Metrics (label name): kubeopera_workqueue_depth, _adds_total, _retries_total, _queue_duration_seconds,
/// _work_duration_seconds, _in_work.
class queue {
 public:
  /// @param name label of the metrics. Lifetime: clk and all must outlive the queue.
  explicit queue(std::string name, queue_options options = queue_options(), clock& clk = clock::real(), metrics* all = nullptr);
  queue(const queue&) = delete;
  queue& operator=(const queue&) = delete;

  void add(const std::string& key);
  void add_after(const std::string& key, duration delay);
  /// The same for a reconciler's own wish: void once the key is handed out for another reason.
  void again_after(const std::string& key, duration delay);
  /// Counts a failure; the key comes back after a growing delay, at least `least`. Returns the delay.
  duration fail(const std::string& key, duration least = duration::zero());
  void forget(const std::string& key);
  /// The next key. finish() must follow on every path.
  /// Errors: cancelled, unavailable (reason QueueClosed).
  task<std::string> take();
  void finish(const std::string& key);
  /// Ends all take() calls; keys that are added from then on are dropped.
  void close();

  std::size_t depth() const;
  std::size_t delayed() const;
  int failures(const std::string& key) const;
  const std::string& name() const noexcept { return name_; }

 private:
  void report(std::size_t depth, std::size_t in_work);
  std::string name_;
  clock& clock_;
  metrics* metrics_;
  mutable std::mutex mutex_;
  queue_state state_;
  std::map<std::string, steady_time> started_;
  bool closed_ = false;
  notifier changed_;
};

}  // namespace kubeopera::inline v1::control
