// The oracle: at least nine of ten recorded exchanges replay equal, and every other one is listed with its reason.
#include "replay.hpp"

#include <kubeopera/kube/client.hpp>
#include <kubeopera/testing/simulator.hpp>

#include <boost/asio/thread_pool.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <iostream>

namespace kubeopera::conformance {
namespace {

// "NNN-name: reason" a line; lines that begin with # are comments.
std::map<std::string, std::string> read_list(const std::string& path) {
  std::map<std::string, std::string> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    auto colon = line.find(':');
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    out[line.substr(0, colon)] = line.substr(colon + 1);
  }
  return out;
}

// The controllers that the recording had: kube-controller-manager, a scheduler, and kwok as the kubelet.
class live_cluster final : public surroundings {
 public:
  explicit live_cluster(testing::api_server& server) : pool_(1) {
    api_ = kube::make_client(server.transport(testing::api_user("system:kube-controller-manager", {"system:masters"})));
    testing::simulator_options options;
    options.flux = false;
    options.kubelet_manager = "kwok";
    options.minimal_pod_status = true;
    options.show_creating = false;
    options.collect_delay = std::chrono::milliseconds(800);  // 152 asks in the middle of a foreground deletion
    simulator_ = std::make_shared<testing::simulator>(pool_.get_executor(), api_, options);
    running_ = background::start(pool_.get_executor(), run(simulator_));
    wait_for(simulator_->wait_started());
  }
  ~live_cluster() override {
    running_.stop();
    wait_for(running_.join());
  }
  std::chrono::milliseconds patience() const override { return std::chrono::milliseconds(5000); }

 private:
  static asio::awaitable<void> run(std::shared_ptr<testing::simulator> s) {
    auto ended = co_await s->run();
    EXPECT_FALSE(ended);  // by cancellation only
  }
  static asio::awaitable<void> fulfil(task<void> t, std::promise<bool>* out) {
    auto r = co_await std::move(t);
    out->set_value(static_cast<bool>(r));
  }
  void wait_for(task<void> t) {
    std::promise<bool> done;
    auto future = done.get_future();
    spawn(pool_.get_executor(), fulfil(std::move(t), &done));
    EXPECT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  }
  asio::thread_pool pool_;
  std::shared_ptr<kube::client> api_;
  std::shared_ptr<testing::simulator> simulator_;
  background running_;
};

TEST(Replay, RecordedExchangesAreEqual) {
  const std::string folder = std::string(KUBEOPERA_TESTS_DIR) + "/conformance/kube";
  auto exchanges = load(folder + "/fixtures");
  auto known = read_list(folder + "/out-of-reach.txt");
  testing::api_server server;
  // 166 comes while the namespace is still going away, however slow this machine is just then.
  testing::api_fault slow;
  slow.verb = "update";
  slow.resource = "namespaces";
  slow.name = "team-a";
  slow.delay = std::chrono::milliseconds(700);
  slow.times = -1;
  server.faults().inject(slow);
  live_cluster cluster(server);
  int counted = 0, equal = 0;
  for (const auto& o : replay(exchanges, server, cluster, known)) {
    if (o.setup) continue;
    ++counted;
    bool same = o.differences.empty(), listed = known.count(o.name) > 0;
    if (same) ++equal;
    if (same && listed) ADD_FAILURE() << o.name << " is listed as out of reach but replays equal: strike it off";
    if (same || listed) continue;
    std::string all;
    for (const auto& d : o.differences) all += "\n    " + d;
    ADD_FAILURE() << o.name << " differs:" << all;
  }
  std::cout << "replayed " << counted << ", equal " << equal << "\n";
  EXPECT_GE(equal * 10, counted * 9);
  for (const auto& [name, reason] : known) {
    bool there = std::any_of(exchanges.begin(), exchanges.end(), [&](const auto& x) { return x.name == name; });
    EXPECT_TRUE(there) << name << " is listed but was never recorded";
    EXPECT_GT(reason.size(), 10u) << name << " has no reason";
  }
}

}  // namespace
}  // namespace kubeopera::conformance
