// The bus over a real RabbitMQ: confirms, topics, redelivery, dead letters, a broker that dies and comes back.
#include "tests/integration/rabbitmq/broker.hpp"

#include <kubeopera/events/bus.hpp>

#include <boost/asio/thread_pool.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>

using namespace kubeopera;
using namespace kubeopera::events;
using namespace std::chrono_literals;
using kubeopera::rabbitmq_test::broker;

namespace {

std::unique_ptr<broker> the_broker;

class environment final : public testing::Environment {
 public:
  void SetUp() override {
    if (!broker::missing().empty()) return;
    the_broker = std::make_unique<broker>();
    the_broker->start();
  }
  void TearDown() override { the_broker.reset(); }
};

const auto* registered = testing::AddGlobalTestEnvironment(new environment);

asio::awaitable<void> publish_into(std::shared_ptr<bus> b, event e, std::shared_ptr<std::promise<result<void>>> out) {
  out->set_value(co_await b->publish(e));
}

// Publishes until it is confirmed, for at most a minute.
asio::awaitable<void> insist(std::shared_ptr<bus> b, event e, std::shared_ptr<std::promise<result<void>>> out) {
  auto limit = std::chrono::steady_clock::now() + 60s;
  while (true) {
    auto r = co_await b->publish(e);
    if (r || r.error().code() != errc::unavailable || std::chrono::steady_clock::now() > limit) {
      out->set_value(r);
      co_return;
    }
    auto slept = co_await sleep_for(20ms);
    if (!slept) co_return out->set_value(slept);
  }
}

asio::awaitable<void> run_bus(std::shared_ptr<bus> b) {
  auto r = co_await b->run();
  if (r || r.error().code() != errc::cancelled) throw std::logic_error("a bus ends only when it is cancelled");
}

struct inbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<event> got;
  std::function<result<void>(const event&, int nth)> script;

  event_handler handler() {
    return [this](const event& e) -> task<void> {
      result<void> r;
      {
        std::lock_guard lock(mutex);
        got.push_back(e);
        auto nth = std::count_if(got.begin(), got.end(), [&](const event& x) { return x.id == e.id; });
        if (script) r = script(e, static_cast<int>(nth));
      }
      changed.notify_all();
      co_return r;
    };
  }
  template <class Check>
  bool until(Check check) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 60s, [&] { return check(got); });
  }
};

class rabbitmq : public testing::Test {
 protected:
  void SetUp() override {
    auto why = broker::missing();
    if (!why.empty()) GTEST_SKIP() << "not run: " << why;
    options.host = "127.0.0.1";
    options.port = the_broker->port();
    options.first_retry = 1ms;
    options.max_retry = 5ms;
    options.publish_timeout = 60s;
    options.exchange = std::string("kubeopera.events.") + testing::UnitTest::GetInstance()->current_test_info()->name();
    it = connect();
  }
  std::shared_ptr<bus> connect() { return make_rabbitmq_bus(threads.get_executor(), options, logger::none(), &all); }
  void TearDown() override {
    for (auto& r : running) r.stop();
    threads.join();
    for (auto& r : running) EXPECT_TRUE(r.finished());
  }
  void start(std::shared_ptr<bus> b) { running.push_back(background::start(threads.get_executor(), run_bus(std::move(b)))); }
  std::future<result<void>> send_later(const std::string& type, const std::string& subject) {
    auto out = std::make_shared<std::promise<result<void>>>();
    spawn(threads.get_executor(), publish_into(it, make_event(type, "t", subject, {}), out));
    return out->get_future();
  }
  result<void> send(const std::string& type, const std::string& subject) { return send_later(type, subject).get(); }
  /// The queue exists once an event published to it arrives.
  void wait_bound(inbox& box, const std::string& type) {
    for (int i = 0; i < 600; ++i) {
      auto r = send(type, "probe");
      ASSERT_TRUE(r) << to_string(r.error()) << the_broker->log();
      std::unique_lock lock(box.mutex);
      if (box.changed.wait_for(lock, 100ms, [&] { return !box.got.empty(); })) return;
    }
    FAIL() << "no event arrives";
  }

  asio::thread_pool threads{2};
  metrics all;
  rabbitmq_options options;
  std::shared_ptr<bus> it;
  std::vector<background> running;
};

std::size_t count_subject(const std::vector<event>& got, std::string_view subject) {
  return static_cast<std::size_t>(std::count_if(got.begin(), got.end(), [&](const event& e) { return e.subject == subject; }));
}

}  // namespace

TEST_F(rabbitmq, confirmed_events_reach_each_matching_queue) {
  inbox apps, audit;
  it->subscribe("confirmed.apps", {"app.*"}, apps.handler());
  it->subscribe("confirmed.audit", {"#"}, audit.handler());
  start(it);
  wait_bound(apps, "app.probe");
  std::vector<std::future<result<void>>> sent;
  for (int i = 0; i < 500; ++i) sent.push_back(send_later(i % 2 ? "app.created" : "tenant.created", std::to_string(i)));
  for (auto& s : sent) {
    auto r = s.get();
    ASSERT_TRUE(r) << to_string(r.error());
  }
  ASSERT_TRUE(audit.until([](auto& got) {
    return std::count_if(got.begin(), got.end(), [](const event& e) { return e.subject != "probe"; }) == 500;
  }));
  ASSERT_TRUE(apps.until([](auto& got) {
    return std::count_if(got.begin(), got.end(), [](const event& e) { return e.subject != "probe"; }) == 250;
  }));
}

TEST_F(rabbitmq, failed_events_come_again_and_hopeless_ones_go_to_the_dead_queue) {
  inbox box;
  box.script = [](const event& e, int nth) -> result<void> {
    if (e.subject == "flaky" && nth < 3) return error(errc::unavailable, "Down", "down");
    if (e.subject == "poison") return error(errc::invalid_argument, "Bad", "bad");
    return {};
  };
  it->subscribe("failed", {"x.*"}, box.handler());
  start(it);
  wait_bound(box, "x.probe");
  ASSERT_TRUE(send("x.a", "flaky"));
  ASSERT_TRUE(send("x.a", "poison"));
  ASSERT_TRUE(box.until([](auto& got) { return count_subject(got, "flaky") == 3 && count_subject(got, "poison") == 1; }));
  auto text = all.expose();
  EXPECT_NE(text.find("kubeopera_bus_retries_total{queue=\"failed\"} 2"), std::string::npos) << text;
}

TEST_F(rabbitmq, events_survive_a_broker_that_dies) {
  inbox box;
  it->subscribe("durable", {"y.*"}, box.handler());
  start(it);
  wait_bound(box, "y.probe");
  the_broker->stop();
  // Sent while it is down and while it comes back, each again until it is confirmed, as an outbox does.
  std::vector<std::future<result<void>>> sent;
  for (int i = 0; i < 20; ++i) {
    auto out = std::make_shared<std::promise<result<void>>>();
    sent.push_back(out->get_future());
    spawn(threads.get_executor(), insist(it, make_event("y.a", "t", std::to_string(i), {}), out));
  }
  the_broker->start();
  for (auto& s : sent) {
    auto r = s.get();
    ASSERT_TRUE(r) << to_string(r.error()) << the_broker->log();
  }
  ASSERT_TRUE(box.until([](auto& got) {
    for (int i = 0; i < 20; ++i)
      if (count_subject(got, std::to_string(i)) == 0) return false;
    return true;
  })) << the_broker->log();
}

TEST_F(rabbitmq, unhandled_event_goes_to_the_next_subscriber_when_a_bus_stops) {
  inbox first, second;
  it->subscribe("handover", {"z.*"}, [&first](const event& e) -> task<void> {
    {
      std::lock_guard lock(first.mutex);
      first.got.push_back(e);
    }
    first.changed.notify_all();
    if (e.subject == "probe") co_return result<void>();
    co_return co_await sleep_for(1h);
  });
  start(it);
  wait_bound(first, "z.probe");
  ASSERT_TRUE(send("z.a", "work"));
  ASSERT_TRUE(first.until([](auto& got) { return count_subject(got, "work") == 1; }));
  running.back().stop();
  auto other = connect();
  other->subscribe("handover", {"z.*"}, second.handler());
  start(other);
  EXPECT_TRUE(second.until([](auto& got) { return count_subject(got, "work") == 1; }));
}

TEST_F(rabbitmq, no_broker_is_unavailable) {
  options.port = 1;
  options.publish_timeout = 200ms;
  it = connect();
  start(it);
  auto r = send("x.a", "lost");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::unavailable);
  EXPECT_EQ(r.error().reason(), "NotConfirmed");
}
