// A clock that moves only when a test says so.
#pragma once

#include <kubeopera/core/clock.hpp>

#include <atomic>
#include <mutex>

namespace kubeopera::control_test {

class manual_clock final : public clock {
 public:
  system_time now() const override {
    std::lock_guard lock(mutex_);
    return system_time(std::chrono::duration_cast<system_time::duration>(elapsed_));
  }
  steady_time steady() const override {
    std::lock_guard lock(mutex_);
    return steady_time(elapsed_);
  }
  task<void> sleep(duration time) override {
    auto due = begin_sleep(time);
    result<void> r;
    while (r) {
      auto ticket = moved_.ticket();
      if (steady() >= due) break;
      r = co_await moved_.wait(ticket);
    }
    --sleepers_;
    co_return r;
  }
  /// How many sleep() calls are under way: advance() is sure to be seen by these.
  int sleepers() const { return sleepers_; }
  void advance(duration time) {
    {
      std::lock_guard lock(mutex_);
      elapsed_ += time;
    }
    moved_.notify();
  }

 private:
  steady_time begin_sleep(duration time) {
    std::lock_guard lock(mutex_);
    ++sleepers_;
    return steady_time(elapsed_) + time;
  }
  mutable std::mutex mutex_;
  duration elapsed_ = std::chrono::hours(1);
  std::atomic<int> sleepers_{0};
  notifier moved_;
};

}  // namespace kubeopera::control_test
