// Deadlines, notifications and cancellation.
#include <kubeopera/core/async.hpp>
#include <kubeopera/core/timekeeper.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <thread>

using namespace kubeopera;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> deadline_case(bool& ok) {
  auto slow = sleep_for(10s);
  auto r = co_await with_deadline<void>(5ms, std::move(slow));
  ok = !r && r.error().code() == errc::deadline_exceeded;
  auto fast = sleep_for(1ms);
  auto q = co_await with_deadline<void>(10s, std::move(fast));
  ok = ok && q.has_value();
}

asio::awaitable<void> count_up(notifier& n, std::atomic<int>& value, int to, int& seen) {
  while (true) {
    auto t = n.ticket();
    seen = value.load();
    if (seen >= to) break;
    auto r = co_await n.wait(t);
    if (!r) break;
  }
}

asio::awaitable<void> wait_for_ever(notifier& n, errc& out) {
  auto r = co_await n.wait(n.ticket());
  if (!r) out = r.error().code();
}

// Waits twice under a deadline: a cancellation in between must end the second wait too.
asio::awaitable<void> two_waits(std::function<void()> between, errc& out) {
  auto first = sleep_for(1ms);
  (void)co_await with_deadline<void>(10s, std::move(first));
  between();
  auto second = sleep_for(60s);
  auto r = co_await with_deadline<void>(60s, std::move(second));
  out = r ? errc::internal : r.error().code();
}

// Ends waits when the test says so.
struct hand final : timekeeper {
  std::uint64_t keep(duration time, std::unique_ptr<wait> w) override {
    longest = std::max(longest, time);
    kept[++last] = std::move(w);
    return last;
  }
  std::unique_ptr<wait> take(std::uint64_t number) override {
    auto it = kept.find(number);
    if (it == kept.end()) return nullptr;
    auto w = std::move(it->second);
    kept.erase(it);
    return w;
  }
  void end_all() {
    for (auto& [number, w] : std::exchange(kept, {})) w->end(true);
  }
  std::map<std::uint64_t, std::unique_ptr<wait>> kept;
  std::uint64_t last = 0;
  duration longest{};
};

asio::awaitable<void> sleep_and_say(duration time, std::optional<errc>& ended) {
  auto r = co_await sleep_for(time);
  ended = r ? errc::internal : r.error().code();
}

}  // namespace

TEST(async, a_timekeeper_ends_the_waits_of_its_context) {
  hand keeper;
  asio::io_context io;
  keep_time(io, keeper);
  std::optional<errc> slept, stopped;
  spawn(io.get_executor(), sleep_and_say(24h, slept));
  auto b = background::start(io.get_executor(), sleep_and_say(1h, stopped));
  io.poll();  // not run(): whoever waits counts as work
  EXPECT_FALSE(slept || stopped);
  EXPECT_EQ(keeper.longest, 24h);
  b.stop();
  io.poll();
  EXPECT_EQ(stopped, errc::cancelled);
  keeper.end_all();
  io.poll();
  EXPECT_EQ(slept, errc::internal) << "its time was over";
}

TEST(async, a_wait_that_is_destroyed_is_not_notified) {
  notifier n;
  errc code = errc::internal;
  {
    asio::io_context io;
    spawn(io.get_executor(), wait_for_ever(n, code));
    io.poll();
  }
  n.notify();  // nobody is left to be told
  EXPECT_EQ(code, errc::internal);
}

TEST(async, a_deadline_begun_after_cancellation_ends_at_once) {
  asio::io_context io;
  errc code = errc::internal;
  background b;
  auto started = std::chrono::steady_clock::now();
  b = background::start(io.get_executor(), two_waits([&b] { b.stop(); }, code));
  io.run();
  EXPECT_EQ(code, errc::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - started, 30s);
}

TEST(async, deadline_cancels_and_reports) {
  asio::io_context io;
  bool ok = false;
  spawn(io.get_executor(), deadline_case(ok));
  io.run();
  EXPECT_TRUE(ok);
}

TEST(async, notifier_loses_no_wake_up_across_threads) {
  asio::io_context io;
  notifier n;
  std::atomic<int> value{0};
  int seen = 0;
  spawn(io.get_executor(), count_up(n, value, 5000, seen));
  std::thread producer([&] {
    for (int i = 0; i < 5000; ++i) {
      ++value;
      n.notify();
    }
  });
  std::thread second([&] { io.run(); });
  io.run();
  second.join();
  producer.join();
  EXPECT_EQ(seen, 5000);
}

TEST(async, stopping_a_background_task_gives_cancelled) {
  asio::io_context io;
  notifier n;
  errc code = errc::internal;
  auto b = background::start(io.get_executor(), wait_for_ever(n, code));
  asio::post(io, [&] { b.stop(); });
  io.run();
  EXPECT_TRUE(b.finished());
  EXPECT_EQ(code, errc::cancelled);
}
