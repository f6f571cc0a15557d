// Controllers and the manager on real threads; time only from the manual clock.
#include "tests/unit/control/manual_clock.hpp"

#include <kubeopera/control/manager.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

using namespace kubeopera;
using namespace kubeopera::control;
using namespace std::chrono_literals;
using kubeopera::control_test::manual_clock;

namespace {

// What the scripted reconciler saw; wait_for blocks the test's own thread until it is true.
struct record {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, int> steps;
  std::map<std::string, int> now;
  int overlaps = 0, active = 0, most_active = 0;

  template <class Check>
  bool wait_for(Check check) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 20s, [&] { return check(*this); });
  }
};

using script = std::function<task<outcome>(const std::string& key, int nth)>;

class scripted final : public reconciler {
 public:
  scripted(record& r, script s) : record_(r), script_(std::move(s)) {}
  task<outcome> reconcile(const std::string& key) override {
    int nth;
    {
      std::lock_guard lock(record_.mutex);
      nth = ++record_.steps[key];
      if (++record_.now[key] > 1) ++record_.overlaps;
      record_.most_active = std::max(record_.most_active, ++record_.active);
    }
    record_.changed.notify_all();
    auto r = co_await script_(key, nth);
    {
      std::lock_guard lock(record_.mutex);
      --record_.now[key];
      --record_.active;
    }
    record_.changed.notify_all();
    co_return r;
  }

 private:
  record& record_;
  script script_;
};

asio::awaitable<void> run_into(std::shared_ptr<controller> c, std::optional<result<void>>& out) { out = co_await c->run(); }

struct fixture {
  asio::thread_pool threads{4};
  manual_clock clk;
  metrics all;
  record seen;
  std::shared_ptr<queue> keys;
  std::shared_ptr<controller> it;
  std::optional<result<void>> end;
  background running;

  fixture(script s, int workers = 1) {
    queue_options o;
    o.first_delay = 1s;
    o.max_delay = 1min;
    o.random = [] { return std::uint64_t{0}; };
    keys = std::make_shared<queue>("q", o, clk, &all);
    controller_options co;
    co.workers = workers;
    it = std::make_shared<controller>(threads.get_executor(), "c", keys, std::make_shared<scripted>(seen, std::move(s)), co, clk,
                                      logger::none(), &all);
    running = background::start(threads.get_executor(), run_into(it, end));
  }
  void stop() {
    running.stop();
    threads.join();
  }
  // True once the one delayed key is in the queue and the worker sleeps until it is due.
  bool delayed() {
    auto limit = std::chrono::steady_clock::now() + 20s;
    while (clk.sleepers() == 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    return keys->delayed() == 1 && clk.sleepers() == 1;
  }
};

task<outcome> fail_twice(const std::string&, int nth) {
  if (nth <= 2) co_return error(errc::failed_precondition, "NotYet", "not yet");
  co_return outcome::done();
}

task<outcome> throw_once(const std::string&, int nth) {
  if (nth == 1) throw std::logic_error("broken");
  co_return outcome::done();
}

task<outcome> poll_thrice(const std::string&, int nth) {
  if (nth < 3) co_return outcome::again_after(5min);
  co_return outcome::done();
}

task<outcome> stall(const std::string&, int) { co_return outcome::stalled(error(errc::invalid_argument, "Bad", "bad spec")); }

task<outcome> busy_server(const std::string& key, int nth) {
  if (key == "a" && nth == 1) co_return error(errc::unavailable, "Busy", "busy").with_retry_after(30s);
  co_return outcome::done();
}

task<outcome> for_ever(const std::string&, int) {
  KUBEOPERA_CO_CHECK(co_await sleep_for(1h));
  co_return outcome::done();
}

}  // namespace

TEST(controller, retries_errors_with_growing_delays) {
  fixture f(fail_twice);
  f.keys->add("a");
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 1 && r.active == 0; }));
  ASSERT_TRUE(f.delayed());
  EXPECT_EQ(f.keys->failures("a"), 1);
  f.clk.advance(1s);
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 2 && r.active == 0; }));
  ASSERT_TRUE(f.delayed());
  EXPECT_EQ(f.keys->failures("a"), 2);
  f.clk.advance(2s);
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 3 && r.active == 0; }));
  f.stop();
  EXPECT_EQ(f.keys->failures("a"), 0);
  ASSERT_TRUE(f.end);
  EXPECT_EQ(f.end->error().code(), errc::cancelled);
  auto text = f.all.expose();
  EXPECT_NE(text.find("kubeopera_reconcile_total{controller=\"c\",result=\"error\"} 2"), std::string::npos) << text;
  EXPECT_NE(text.find("kubeopera_reconcile_total{controller=\"c\",result=\"done\"} 1"), std::string::npos) << text;
  EXPECT_NE(text.find("kubeopera_workqueue_retries_total{name=\"q\"} 2"), std::string::npos) << text;
}

TEST(controller, exception_of_a_step_is_a_failure_of_its_key_only) {
  fixture f(throw_once);
  f.keys->add("a");
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 1; }));
  ASSERT_TRUE(f.delayed());
  f.clk.advance(1s);
  EXPECT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 2; }));
  f.stop();
}

TEST(controller, again_after_comes_back_on_time) {
  fixture f(poll_thrice);
  f.keys->add("a");
  for (int n = 1; n <= 2; ++n) {
    ASSERT_TRUE(f.seen.wait_for([n](auto& r) { return r.steps["a"] == n && r.active == 0; }));
    ASSERT_TRUE(f.delayed());
    f.clk.advance(5min);
  }
  EXPECT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 3; }));
  f.stop();
}

TEST(controller, stalled_key_is_left_alone_until_added) {
  fixture f(stall);
  f.keys->add("a");
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 1 && r.active == 0; }));
  f.clk.advance(24h);
  f.keys->add("b");
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["b"] == 1; }));
  f.keys->add("a");
  EXPECT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 2; }));
  f.stop();
  EXPECT_EQ(f.keys->delayed(), 0u);
  EXPECT_EQ(f.seen.steps["a"], 2);
}

TEST(controller, retry_after_of_the_error_is_respected) {
  fixture f(busy_server);
  f.keys->add("a");
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 1 && r.active == 0; }));
  ASSERT_TRUE(f.delayed());
  f.clk.advance(29s);
  f.keys->add("b");
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["b"] == 1; }));
  EXPECT_EQ(f.seen.steps["a"], 1);
  ASSERT_TRUE(f.delayed());
  f.clk.advance(1s);
  EXPECT_TRUE(f.seen.wait_for([](auto& r) { return r.steps["a"] == 2; }));
  f.stop();
}

TEST(controller, many_workers_never_overlap_on_a_key) {
  static std::atomic<int> turns;
  turns = 0;
  fixture f(
      [](const std::string&, int) -> task<outcome> {
        KUBEOPERA_CO_CHECK(co_await sleep_for(100us));
        ++turns;
        co_return outcome::done();
      },
      8);
  for (int round = 0; round < 300; ++round)
    for (int k = 0; k < 5; ++k) f.keys->add("key" + std::to_string(k));
  ASSERT_TRUE(f.seen.wait_for([&](auto& r) { return r.steps.size() == 5 && r.active == 0 && f.keys->depth() == 0; }));
  f.stop();
  EXPECT_EQ(f.seen.overlaps, 0);
  EXPECT_GT(f.seen.most_active, 1);
}

TEST(controller, stop_cancels_the_step_and_waits_for_it) {
  fixture f(for_ever, 2);
  f.keys->add("a");
  f.keys->add("b");
  ASSERT_TRUE(f.seen.wait_for([](auto& r) { return r.active == 2; }));
  f.stop();
  EXPECT_EQ(f.seen.active, 0);
  ASSERT_TRUE(f.end);
  EXPECT_EQ(f.keys->failures("a"), 0);
}

namespace {

struct journal {
  std::mutex mutex;
  std::vector<std::string> lines;
  void add(std::string s) {
    std::lock_guard lock(mutex);
    lines.push_back(std::move(s));
  }
};

task<void> live(journal& j, std::string name) {
  j.add("+" + name);
  auto r = co_await sleep_for(1h);
  j.add("-" + name);
  co_return r;
}

task<void> die(notifier& n, std::atomic<bool>& go) {
  while (!go) {
    auto t = n.ticket();
    if (go) break;
    KUBEOPERA_CO_CHECK(co_await n.wait(t));
  }
  co_return error(errc::unavailable, "LeaseLost", "the lease was lost");
}

task<void> stubborn(std::shared_ptr<std::atomic<bool>> release) {
  // Ignores cancellation until released.
  while (!*release) {
    auto executor = co_await current_executor();
    (void)executor;
    auto r = co_await sleep_for(1ms);
    if (!r && *release) break;
    if (!r) std::this_thread::yield();
  }
  co_return result<void>();
}

asio::awaitable<void> manage(manager& m, std::optional<result<void>>& out) { out = co_await m.run(); }

}  // namespace

TEST(manager, starts_in_order_and_stops_in_reverse) {
  asio::io_context io;
  journal j;
  manager m(io.get_executor());
  m.add(group::http, "http", [&j] { return live(j, "http"); });
  m.add(group::caches, "cache", [&j] { return live(j, "cache"); });
  m.add(group::stores, "db", [&j] { return live(j, "db"); });
  m.add(group::leader_elected, "ctl", [&j] { return live(j, "ctl"); });
  std::optional<result<void>> end;
  spawn(io.get_executor(), manage(m, end));
  while (!m.ready()) io.run_one();
  m.stop();
  io.run();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->has_value());
  EXPECT_EQ(j.lines, (std::vector<std::string>{"+db", "+cache", "+ctl", "+http", "-http", "-ctl", "-cache", "-db"}));
}

TEST(manager, a_component_that_fails_brings_all_down_in_order) {
  asio::io_context io;
  journal j;
  notifier n;
  std::atomic<bool> go{false};
  manager m(io.get_executor());
  m.add(group::http, "http", [&j] { return live(j, "http"); });
  m.add(group::caches, "lease", [&] { return die(n, go); });
  m.add(group::stores, "db", [&j] { return live(j, "db"); });
  std::optional<result<void>> end;
  spawn(io.get_executor(), manage(m, end));
  while (!m.ready()) io.run_one();
  go = true;
  n.notify();
  io.run();
  ASSERT_TRUE(end);
  ASSERT_FALSE(end->has_value());
  EXPECT_EQ(end->error().reason(), "LeaseLost");
  EXPECT_EQ(end->error().message(), "lease: the lease was lost");
  EXPECT_EQ(j.lines, (std::vector<std::string>{"+db", "+http", "-http", "-db"}));
  EXPECT_FALSE(m.ready());
}

TEST(manager, a_group_that_never_gets_ready_stops_the_start) {
  asio::io_context io;
  journal j;
  manager_options o;
  o.ready_limit = 5ms;
  manager m(io.get_executor(), o);
  m.add(group::caches, "cache", [&j] { return live(j, "cache"); }, [] { return sleep_for(1h); });
  m.add(group::http, "http", [&j] { return live(j, "http"); });
  std::optional<result<void>> end;
  spawn(io.get_executor(), manage(m, end));
  io.run();
  ASSERT_TRUE(end);
  ASSERT_FALSE(end->has_value());
  EXPECT_EQ(end->error().code(), errc::deadline_exceeded);
  EXPECT_EQ(j.lines, (std::vector<std::string>{"+cache", "-cache"}));
}

TEST(manager, leader_group_waits_for_the_gate_without_holding_up_http) {
  asio::io_context io;
  journal j;
  notifier n;
  std::atomic<bool> leads{false};
  manager_options o;
  o.leader_gate = [&]() -> task<void> {
    while (!leads) {
      auto t = n.ticket();
      if (leads) break;
      KUBEOPERA_CO_CHECK(co_await n.wait(t));
    }
    co_return result<void>();
  };
  manager m(io.get_executor(), o);
  m.add(group::http, "http", [&j] { return live(j, "http"); });
  m.add(group::leader_elected, "ctl", [&j] { return live(j, "ctl"); });
  std::optional<result<void>> end;
  spawn(io.get_executor(), manage(m, end));
  while (!m.ready()) io.run_one();
  while (j.lines.empty()) io.run_one();
  EXPECT_EQ(j.lines, std::vector<std::string>{"+http"});
  leads = true;
  n.notify();
  while (j.lines.size() < 2) io.run_one();
  m.stop();
  io.run();
  EXPECT_EQ(j.lines, (std::vector<std::string>{"+http", "+ctl", "-http", "-ctl"}));
}

TEST(manager, a_component_that_does_not_stop_is_named) {
  asio::thread_pool io(2);
  manager_options o;
  o.drain_limit = 20ms;
  manager m(io.get_executor(), o);
  auto release = std::make_shared<std::atomic<bool>>(false);
  m.add(group::http, "stuck", [release] { return stubborn(release); });
  std::optional<result<void>> end;
  spawn(io.get_executor(),
        [](manager& it, std::optional<result<void>>& out, std::shared_ptr<std::atomic<bool>> r) -> asio::awaitable<void> {
          out = co_await it.run();
          *r = true;
        }(m, end, release));
  while (!m.ready()) std::this_thread::yield();
  m.stop();
  io.join();
  ASSERT_TRUE(end);
  ASSERT_FALSE(end->has_value());
  EXPECT_EQ(end->error().code(), errc::deadline_exceeded);
  EXPECT_EQ(end->error().message(), "did not stop in time: stuck");
}

TEST(manager, an_exception_is_an_error) {
  asio::io_context io;
  manager m(io.get_executor());
  m.add(group::caches, "bad", []() -> task<void> {
    throw std::runtime_error("boom");
    co_return result<void>();
  });
  std::optional<result<void>> end;
  spawn(io.get_executor(), manage(m, end));
  io.run();
  ASSERT_TRUE(end);
  ASSERT_FALSE(end->has_value());
  EXPECT_EQ(end->error().code(), errc::internal);
  EXPECT_EQ(end->error().detail(), "boom");
}
