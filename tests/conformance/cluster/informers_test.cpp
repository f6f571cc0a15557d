// Informers through killed connections, outages and a forgotten history.
#include "cluster_test.hpp"
#include "cut_proxy.hpp"

#include <kubeopera/kube/informer.hpp>

#include <map>
#include <mutex>

namespace kubeopera::conformance {
namespace {

using namespace kube;
using namespace std::chrono_literals;

struct informers : cluster_test {
  void SetUp() override {
    cluster_test::SetUp();
    proxy = std::make_unique<cut_proxy>(access_of(at().kubeconfig()).value().port);
    far = client_of(client_options(), proxy->address());
  }

  informer_options quick() {
    informer_options o;
    o.ns = ns;
    o.page_size = 3;
    o.first_backoff = 20ms;
    o.max_backoff = 100ms;
    return o;
  }
  // Starts it and counts adds less deletes by name.
  void start(informer& i) {
    informer_handler h;
    h.added = [this](const object_ptr& o) { count(*o, 1); };
    h.deleted = [this](const object_ptr& o) { count(*o, -1); };
    i.add_handler(h);
    running = background::start(the_runtime().executor(), run(i));
    ASSERT_TRUE(wait(i.wait_synced()));
  }
  void stop() {
    running.stop();
    ASSERT_TRUE(wait(running.join()));
  }
  int balance(const std::string& name) {
    std::lock_guard lock(mutex);
    return balances[name];
  }
  int told(const std::string& name) {
    std::lock_guard lock(mutex);
    return tellings[name];
  }
  void event(const std::string& name) {
    create(types::events(), R"({"apiVersion":"v1","kind":"Event","metadata":{"name":")" + name +
                                R"("},"involvedObject":{"namespace":"$NS","kind":"Pod","name":"p"},"reason":"R"})");
  }

  std::unique_ptr<cut_proxy> proxy;
  std::shared_ptr<client> far;
  background running;

 private:
  static asio::awaitable<void> run(informer& i) { (void)co_await i.run(); }
  void count(const object& o, int by) {
    std::lock_guard lock(mutex);
    balances[std::string(name_of(o))] += by;
    ++tellings[std::string(name_of(o))];
  }
  std::mutex mutex;
  std::map<std::string, int> balances, tellings;
};

TEST_F(informers, follow_through_killed_connections_and_outages) {
  auto mine = [&](const std::string& name) {
    auto o = config_map(name);
    json::ensure_object(o, "metadata")["labels"] = {{"mine", "yes"}};
    create(types::config_maps(), o);
  };
  for (int i = 0; i < 8; ++i) mine("m" + std::to_string(i));
  create(types::config_maps(), config_map("other"));
  auto options = quick();
  options.label_selector = "mine=yes";
  informer all(far, types::config_maps(), options);
  start(all);
  EXPECT_EQ(all.size(), 8u);
  mine("n0");
  EXPECT_TRUE(eventually([&] { return all.get({ns, "n0"}) != nullptr; }));

  proxy->cut();
  ASSERT_EQ(remove(maps + "/m1").status, 200);
  EXPECT_TRUE(eventually([&] { return !all.get({ns, "m1"}); })) << "goes on from where it was";

  proxy->set_down(true);
  EXPECT_TRUE(eventually([&] { return all.last_error().has_value(); }));
  EXPECT_EQ(all.size(), 8u) << "readers keep the last state";
  ASSERT_EQ(remove(maps + "/m2").status, 200);
  mine("n1");
  ASSERT_EQ(remove(maps + "/m3").status, 200);
  mine("m3");
  merge(maps + "/m4", R"({"metadata":{"labels":{"mine":"no"}}})");
  proxy->set_down(false);
  EXPECT_TRUE(eventually([&] { return all.get({ns, "n1"}) && !all.get({ns, "m2"}) && !all.get({ns, "m4"}); }));
  EXPECT_TRUE(eventually([&] { return told("m3") == 3; })) << "deleted and made again";
  EXPECT_EQ(all.size(), 7u);
  stop();
  for (const char* gone : {"m1", "m2", "m4", "other"}) EXPECT_EQ(balance(gone), 0) << gone;
  for (const char* there : {"m0", "m3", "n0", "n1"}) EXPECT_EQ(balance(there), 1) << there;
}

TEST_F(informers, list_again_when_the_history_is_forgotten) {
  for (int i = 0; i < 5; ++i) event("e" + std::to_string(i));
  informer all(far, types::events(), quick());
  start(all);
  auto lists = all.stats().lists;
  proxy->set_down(true);
  EXPECT_TRUE(eventually([&] { return all.last_error().has_value(); }));
  ASSERT_EQ(remove(core + "/events/e0").status, 200);
  ASSERT_EQ(remove(core + "/events/e1").status, 200);
  event("e1");
  event("e9");
  bool compacted = at().compact();
  proxy->set_down(false);
  EXPECT_TRUE(eventually([&] { return all.get({ns, "e9"}) && !all.get({ns, "e0"}); }));
  if (compacted) {
    EXPECT_GT(all.stats().lists, lists) << "what was missed could not be watched";
  }
  EXPECT_TRUE(eventually([&] { return told("e1") == 3; })) << "deleted and made again";
  stop();
  EXPECT_EQ(balance("e0"), 0);
  EXPECT_EQ(balance("e1"), 1);
  EXPECT_EQ(balance("e9"), 1);
}

}  // namespace
}  // namespace kubeopera::conformance
