// The work queue's rules, step by step, and its awaitable shell on a manual clock.
#include "tests/unit/control/manual_clock.hpp"

#include <kubeopera/control/queue.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <random>
#include <thread>

using namespace kubeopera;
using namespace kubeopera::control;
using namespace std::chrono_literals;
using kubeopera::control_test::manual_clock;

namespace {

steady_time at(duration d) { return steady_time(d); }

std::string taken(queue_state& q, duration now) {
  auto w = q.take(at(now));
  return w ? w->key : "";
}

queue_options no_jitter() {
  queue_options o;
  o.first_delay = 100ms;
  o.max_delay = 1s;
  o.random = [] { return std::uint64_t{0}; };
  return o;
}

}  // namespace

TEST(queue_state, hands_out_in_order_and_each_once) {
  queue_state q;
  EXPECT_TRUE(q.add("a", at(0s)));
  EXPECT_TRUE(q.add("b", at(0s)));
  EXPECT_FALSE(q.add("a", at(1s)));
  EXPECT_EQ(q.depth(), 2u);
  EXPECT_EQ(taken(q, 2s), "a");
  EXPECT_EQ(taken(q, 2s), "b");
  EXPECT_EQ(taken(q, 2s), "");
}

TEST(queue_state, tells_how_long_a_key_waited) {
  queue_state q;
  q.add("a", at(1s));
  q.add("a", at(3s));
  auto w = q.take(at(5s));
  ASSERT_TRUE(w);
  EXPECT_EQ(w->waited, 4s);
}

TEST(queue_state, key_added_while_worked_on_comes_after_not_beside) {
  queue_state q;
  q.add("a", at(0s));
  EXPECT_EQ(taken(q, 0s), "a");
  EXPECT_TRUE(q.add("a", at(1s)));
  EXPECT_FALSE(q.add("a", at(1s)));
  EXPECT_EQ(taken(q, 1s), "");
  EXPECT_TRUE(q.finish("a", at(2s)));
  EXPECT_EQ(taken(q, 2s), "a");
  EXPECT_FALSE(q.finish("a", at(3s)));
  EXPECT_EQ(taken(q, 3s), "");
}

TEST(queue_state, delayed_key_due_while_worked_on_waits_for_the_end) {
  queue_state q;
  q.add("a", at(0s));
  EXPECT_EQ(taken(q, 0s), "a");
  q.add_at("a", at(1s));
  EXPECT_EQ(taken(q, 2s), "");
  EXPECT_TRUE(q.finish("a", at(2s)));
  EXPECT_EQ(taken(q, 2s), "a");
}

TEST(queue_state, earliest_of_two_delays_counts) {
  queue_state q;
  q.add_at("a", at(10s));
  q.add_at("a", at(5s));
  q.add_at("a", at(7s));
  ASSERT_TRUE(q.next_due());
  EXPECT_EQ(*q.next_due(), at(5s));
  EXPECT_EQ(taken(q, 4s), "");
  EXPECT_EQ(taken(q, 5s), "a");
  q.finish("a", at(5s));
  EXPECT_EQ(taken(q, 20s), "");
  EXPECT_FALSE(q.next_due());
}

TEST(queue_state, own_requeue_is_void_after_an_earlier_step_but_a_foreign_delay_is_kept) {
  queue_state q;
  q.again_at("a", at(10s));
  q.add_at("b", at(10s));
  q.add("a", at(1s));
  q.add("b", at(1s));
  EXPECT_EQ(taken(q, 1s), "a");
  EXPECT_EQ(taken(q, 1s), "b");
  q.finish("a", at(1s));
  q.finish("b", at(1s));
  EXPECT_EQ(taken(q, 10s), "b");
  EXPECT_EQ(taken(q, 10s), "");
}

TEST(queue_state, failures_double_the_delay_up_to_the_limit_and_are_forgotten) {
  queue_state q(no_jitter());
  EXPECT_EQ(q.fail("a", at(0s)), 100ms);
  EXPECT_EQ(q.fail("a", at(0s)), 200ms);
  EXPECT_EQ(q.fail("a", at(0s)), 400ms);
  EXPECT_EQ(q.fail("a", at(0s)), 800ms);
  EXPECT_EQ(q.fail("a", at(0s)), 1s);
  EXPECT_EQ(q.fail("a", at(0s)), 1s);
  EXPECT_EQ(q.failures("a"), 6);
  EXPECT_EQ(q.failures("b"), 0);
  EXPECT_EQ(q.fail("b", at(0s)), 100ms);
  EXPECT_EQ(q.fail("b", at(0s), 3s), 3s);
  q.forget("a");
  EXPECT_EQ(q.failures("a"), 0);
  EXPECT_EQ(q.fail("a", at(0s)), 100ms);
}

TEST(queue_state, jitter_stays_in_the_upper_half) {
  queue_options o = no_jitter();
  std::uint64_t n = 0;
  o.random = [&n] { return n += 7'777'777; };
  o.max_delay = 100ms;
  queue_state q(o);
  duration low = 1s, high = 0s;
  for (int i = 0; i < 500; ++i) {
    auto d = q.fail("a", at(0s));
    low = std::min(low, d);
    high = std::max(high, d);
  }
  EXPECT_GT(low, 50ms - 1ms);
  EXPECT_LT(low, 60ms);
  EXPECT_LE(high, 100ms);
  EXPECT_GT(high, 90ms);
}

// Random walks against the two promises: never one key twice at a time, and never an add that is not followed by work.
TEST(queue_state, random_walks_keep_the_promises) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 rng(seed);
    queue_state q;
    std::set<std::string> in_work, owed;
    duration now = 0s;
    auto step_take = [&] {
      auto w = q.take(at(now));
      if (!w) return false;
      EXPECT_TRUE(in_work.insert(w->key).second) << "seed " << seed;
      owed.erase(w->key);
      return true;
    };
    for (int i = 0; i < 300; ++i) {
      std::string key(1, static_cast<char>('a' + rng() % 4));
      switch (rng() % 5) {
        case 0:
          q.add(key, at(now));
          owed.insert(key);
          break;
        case 1:
          q.add_at(key, at(now + std::chrono::seconds(rng() % 5)));
          owed.insert(key);
          break;
        case 2:
          step_take();
          break;
        case 3:
          if (in_work.erase(key)) q.finish(key, at(now));
          break;
        default:
          now += 1s;
      }
    }
    now += 10s;
    for (int i = 0; i < 20; ++i) {
      while (step_take()) {
      }
      for (const auto& key : in_work) q.finish(key, at(now));
      in_work.clear();
    }
    EXPECT_TRUE(owed.empty()) << "seed " << seed;
    EXPECT_EQ(q.depth() + q.delayed() + q.in_work(), 0u);
  }
}

namespace {

asio::awaitable<void> take_into(queue& q, int count, std::vector<std::string>& out, notifier& progress, errc& end) {
  for (int i = 0; i < count; ++i) {
    auto key = co_await q.take();
    if (!key) {
      end = key.error().code();
      break;
    }
    out.push_back(*key);
    q.finish(*key);
    progress.notify();
  }
}

}  // namespace

TEST(queue, delayed_key_comes_when_the_clock_says_so) {
  asio::io_context io;
  manual_clock clk;
  metrics all;
  queue q("apps", queue_options(), clk, &all);
  std::vector<std::string> out;
  notifier progress;
  errc end = errc::internal;
  q.add_after("later", 10min);
  q.add("now");
  auto worker = background::start(io.get_executor(), take_into(q, 2, out, progress, end));
  io.poll();
  EXPECT_EQ(out, std::vector<std::string>{"now"});
  clk.advance(9min);
  io.restart();
  io.poll();
  EXPECT_EQ(out.size(), 1u);
  clk.advance(1min);
  io.restart();
  io.poll();
  EXPECT_EQ(out, (std::vector<std::string>{"now", "later"}));
  EXPECT_TRUE(worker.finished());
  auto text = all.expose();
  EXPECT_NE(text.find("kubeopera_workqueue_adds_total{name=\"apps\"} 1"), std::string::npos) << text;
  EXPECT_NE(text.find("kubeopera_workqueue_depth{name=\"apps\"} 0"), std::string::npos) << text;
  EXPECT_NE(text.find("kubeopera_workqueue_work_duration_seconds_count{name=\"apps\"} 2"), std::string::npos) << text;
}

TEST(queue, close_ends_the_wait) {
  asio::io_context io;
  manual_clock clk;
  queue q("apps", queue_options(), clk);
  std::vector<std::string> out;
  notifier progress;
  errc end = errc::internal;
  auto worker = background::start(io.get_executor(), take_into(q, 1, out, progress, end));
  io.poll();
  q.close();
  q.add("dropped");
  io.restart();
  io.run();
  EXPECT_EQ(end, errc::unavailable);
  EXPECT_TRUE(out.empty());
}

TEST(queue, cancelled_wait_with_a_delayed_key) {
  asio::io_context io;
  manual_clock clk;
  queue q("apps", queue_options(), clk);
  std::vector<std::string> out;
  notifier progress;
  errc end = errc::internal;
  q.add_after("a", 1h);
  auto worker = background::start(io.get_executor(), take_into(q, 1, out, progress, end));
  io.poll();
  worker.stop();
  io.restart();
  io.run();
  EXPECT_EQ(end, errc::cancelled);
  EXPECT_EQ(q.delayed(), 1u);
}
