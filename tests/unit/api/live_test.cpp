// Many askers, one look: shared observations, and what a cancelled asker leaves behind.
#include "server/services/api/live.hpp"

#include "tests/unit/control/manual_clock.hpp"

#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

using namespace kubeopera::api;
namespace asio = kubeopera::asio;
namespace kube = kubeopera::kube;
using kubeopera::errc, kubeopera::error, kubeopera::task, kubeopera::spawn, kubeopera::background;

namespace {

class live_test : public ::testing::Test {
 protected:
  live_test() {
    vcluster_lookup none = [](const std::string&) -> task<std::shared_ptr<kube::client>> {
      co_return error(errc::unavailable, "VClusterNotReady", "not yet");
    };
    live_options o;
    o.fresh_for = std::chrono::seconds(5);
    auto probes = std::make_shared<prober>(io.get_executor(), prober_options());
    spawn(io.get_executor(), install(kube::make_client(server.transport())));
    io.run();
    io.restart();
    server.clear_calls();
    subject = std::make_unique<live>(kube::make_client(server.transport()), none, probes, o);
    app.id = "0190a3b4-0000-7000-8000-000000000000";
    app.resource = "web-1";
  }
  static asio::awaitable<void> install(std::shared_ptr<kube::client> client) {
    for (const auto& crd : kubeopera::manifest::crds()) {
      auto made = co_await client->create(kube::types::custom_resource_definitions(), crd);
      EXPECT_TRUE(made.has_value());
    }
  }
  int gets() {
    int n = 0;
    for (const auto& c : server.calls()) n += c.target.find("/kubeoperaapps/web-1") != std::string::npos;
    return n;
  }
  asio::awaitable<void> ask(int& answers, errc& code) {
    auto r = co_await subject->observe(app);
    if (r)
      ++answers;
    else
      code = r.error().code();
  }
  asio::io_context io;
  kubeopera::testing::api_server server;
  std::unique_ptr<live> subject;
  app_row app;
};

}  // namespace

TEST_F(live_test, a_stampede_is_one_look) {
  int answers = 0;
  errc code = errc::internal;
  for (int i = 0; i < 1000; ++i) spawn(io.get_executor(), ask(answers, code));
  io.run();
  EXPECT_EQ(answers, 1000);
  EXPECT_EQ(gets(), 1);
}

TEST_F(live_test, another_version_of_the_app_is_looked_at_anew) {
  int answers = 0;
  errc code = errc::internal;
  spawn(io.get_executor(), ask(answers, code));
  io.run();
  app.version = 2;
  io.restart();
  spawn(io.get_executor(), ask(answers, code));
  io.run();
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(gets(), 2);
}

TEST_F(live_test, what_nobody_asks_for_is_forgotten) {
  kubeopera::control_test::manual_clock time;
  vcluster_lookup none = [](const std::string&) -> task<std::shared_ptr<kube::client>> {
    co_return error(errc::unavailable, "VClusterNotReady", "not yet");
  };
  subject = std::make_unique<live>(kube::make_client(server.transport()), none,
                                   std::make_shared<prober>(io.get_executor(), prober_options()), live_options(), time);
  int answers = 0;
  errc code = errc::internal;
  auto look_at = [&](const std::string& id) {
    app.id = id;
    spawn(io.get_executor(), ask(answers, code));
    io.restart();
    io.run();
  };
  for (int i = 0; i < 100; ++i) look_at("app-" + std::to_string(i));
  EXPECT_EQ(subject->remembered(), 100u);
  time.advance(std::chrono::seconds(50));
  look_at("app-7");
  EXPECT_EQ(subject->remembered(), 100u);
  time.advance(std::chrono::seconds(50));
  look_at("another");
  EXPECT_EQ(subject->remembered(), 2u);
  EXPECT_EQ(answers, 102);
}

TEST_F(live_test, an_asker_that_goes_away_leaves_the_others_an_answer) {
  kubeopera::testing::api_fault slow;
  slow.verb = "get";
  slow.delay = std::chrono::milliseconds(100);
  server.faults().inject(slow);
  int answers = 0;
  errc gone = errc::internal, other = errc::internal;
  auto first = background::start(io.get_executor(), ask(answers, gone));
  io.poll();
  spawn(io.get_executor(), ask(answers, other));
  io.poll();
  first.stop();
  io.run();
  EXPECT_EQ(gone, errc::cancelled);
  EXPECT_EQ(answers, 1);
}
