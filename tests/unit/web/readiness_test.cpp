// readyz: names what is sick, asks no more often than it should, and answers whatever hangs.
#include "server/web/readiness.hpp"

#include <kubeopera/json/read.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::web;

namespace {

class hand_clock final : public clock {
 public:
  system_time now() const override { return {}; }
  steady_time steady() const override { return at; }
  task<void> sleep(duration time) override { return sleep_for(time); }
  steady_time at{std::chrono::hours(1)};
};

asio::awaitable<void> keep(task<http::response> work, http::response& out) {
  auto r = co_await std::move(work);
  if (r) out = std::move(*r);
}

struct web_readiness : testing::Test {
  asio::io_context io;
  hand_clock time;
  metrics all;
  std::vector<readiness_check> checks;
  std::unique_ptr<readiness> ready;

  void add(std::string name, std::function<task<void>()> probe, duration limit = std::chrono::seconds(2)) {
    readiness_check c{std::move(name), std::move(probe)};
    c.limit = limit;
    checks.push_back(std::move(c));
  }
  http::response ask() {
    if (!ready) ready = std::make_unique<readiness>(checks, "things", time, logger::none(), &all);
    http::response out;
    spawn(io.get_executor(), keep(ready->answer(), out));
    io.restart();
    while (out.headers.empty() && io.run_one_for(std::chrono::seconds(10)) > 0) {
    }
    return out;
  }
  static json::object row(const http::response& r, std::size_t i) {
    auto o = json::read_object(r.body).value();
    return o.at("checks").as_array().at(i).as_object();
  }
};

std::function<task<void>()> answers(int& calls, result<void> r) {
  return [&calls, r]() -> task<void> {
    ++calls;
    co_return r;
  };
}

}  // namespace

TEST_F(web_readiness, all_well) {
  int a = 0, b = 0;
  add("database", answers(a, {}));
  add("git remote", answers(b, {}));
  auto r = ask();
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(json::get_string(json::read_object(r.body).value(), {"status"}), "ready");
  EXPECT_EQ(json::get_string(row(r, 1), {"name"}), "git remote");
  EXPECT_EQ(json::get_string(row(r, 1), {"state"}), "ok");
  EXPECT_EQ(a + b, 2);
}

TEST_F(web_readiness, the_sick_one_is_named) {
  int a = 0, b = 0;
  add("database", answers(a, {}));
  add("git remote", answers(b, error(errc::not_found, "Gone", "there is no repository").with_detail("private")));
  auto r = ask();
  EXPECT_EQ(r.status, 503);
  EXPECT_TRUE(json::get_bool(row(r, 0), {"ok"}));
  EXPECT_FALSE(json::get_bool(row(r, 1), {"ok"}, true));
  EXPECT_EQ(json::get_string(row(r, 1), {"state"}), "failing");
  EXPECT_EQ(json::get_string(row(r, 1), {"message"}), "there is no repository");
  EXPECT_EQ(r.body.find("private"), std::string::npos);
  auto text = all.expose();
  EXPECT_NE(text.find("kubeopera_dependency_up{service=\"things\",dependency=\"database\"} 1"), std::string::npos);
  EXPECT_NE(text.find("kubeopera_dependency_up{service=\"things\",dependency=\"git remote\"} 0"), std::string::npos);
}

TEST_F(web_readiness, answers_are_kept_for_a_while) {
  int calls = 0;
  add("database", answers(calls, {}));
  ask();
  time.at += std::chrono::milliseconds(900);
  auto r = ask();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(json::get_int(row(r, 0), {"age_ms"}), 900);
  time.at += std::chrono::milliseconds(200);
  ask();
  EXPECT_EQ(calls, 2);
}

TEST_F(web_readiness, a_probe_that_hangs_is_cut_off) {
  int calls = 0;
  add(
      "database",
      [&calls]() -> task<void> {
        ++calls;
        co_return co_await sleep_for(std::chrono::hours(1));
      },
      std::chrono::milliseconds(20));
  auto r = ask();
  EXPECT_EQ(r.status, 503);
  EXPECT_FALSE(json::get_bool(row(r, 0), {"ok"}, true));
  EXPECT_EQ(calls, 1);
}

TEST_F(web_readiness, a_probe_that_cannot_even_be_cancelled_is_asked_once_and_hangs_nobody) {
  int calls = 0;
  offload threads(1);
  std::atomic<bool> go{false};
  add(
      "git remote",
      [&]() -> task<void> {
        ++calls;
        std::function<result<void>()> blocks = [&go]() -> result<void> {
          go.wait(false);
          return {};
        };
        co_return co_await threads.run<void>(std::move(blocks));
      },
      std::chrono::milliseconds(20));
  auto r = ask();
  EXPECT_EQ(r.status, 503);
  EXPECT_EQ(json::get_string(row(r, 0), {"state"}), "no answer");
  EXPECT_EQ(json::get_string(row(r, 0), {"message"}), "no answer within 20 ms");
  time.at += std::chrono::seconds(5);
  r = ask();
  EXPECT_EQ(r.status, 503);
  EXPECT_EQ(json::get_int(row(r, 0), {"age_ms"}), 5000);
  EXPECT_EQ(calls, 1);
  go = true;
  go.notify_all();
  io.restart();
  io.run_for(std::chrono::seconds(10));  // until the probe has ended: nothing else is left to do
  r = ask();
  EXPECT_EQ(r.status, 200);
}
