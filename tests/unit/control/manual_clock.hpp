// A clock that moves only when a test says so.
#pragma once

#include <kubeopera/core/clock.hpp>

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
    auto due = steady() + time;
    while (true) {
      auto ticket = moved_.ticket();
      if (steady() >= due) co_return result<void>();
      auto r = co_await moved_.wait(ticket);
      if (!r) co_return r.error();
    }
  }
  void advance(duration time) {
    {
      std::lock_guard lock(mutex_);
      elapsed_ += time;
    }
    moved_.notify();
  }

 private:
  mutable std::mutex mutex_;
  duration elapsed_ = std::chrono::hours(1);
  notifier moved_;
};

}  // namespace kubeopera::control_test
