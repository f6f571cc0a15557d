// Informer, election and resolver against the in-process API server, with outages.
#include "tests/integration/kube/cluster.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/kube/informer.hpp>
#include <kubeopera/kube/lease.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <map>

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace kubeopera::kube_test;
using namespace std::chrono_literals;

namespace {

struct live_on : ::testing::TestWithParam<path_kind> {
  runtime rt;
  cluster c{rt, GetParam()};
  std::shared_ptr<client> api = c.client();

  void SetUp() override {
    auto made = rt.wait(api->create(types::namespaces(), make_object(types::namespaces(), {"", "ns"})));
    ASSERT_TRUE(made) << to_string(made.error());
  }
  void create(client& by, const std::string& name) {
    auto o = make_object(types::config_maps(), {"ns", name});
    o["metadata"].as_object()["labels"] = {{"mine", "yes"}};
    auto r = rt.wait(by.create(types::config_maps(), o));
    ASSERT_TRUE(r) << to_string(r.error());
  }
  void remove(client& by, const std::string& name) {
    auto r = rt.wait(by.remove(types::config_maps(), {"ns", name}));
    ASSERT_TRUE(r) << to_string(r.error());
  }
};

informer_options quick() {
  informer_options o;
  o.ns = "ns";
  o.label_selector = "mine=yes";
  o.page_size = 3;
  o.first_backoff = 5ms;
  o.max_backoff = 20ms;
  return o;
}

asio::awaitable<void> run_informer(informer& i) { (void)co_await i.run(); }

std::string path_name(const ::testing::TestParamInfo<path_kind>& info) { return name_of_path(info.param); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(all, live_on, ::testing::Values(path_kind::direct, path_kind::http, path_kind::https), path_name);

TEST_P(live_on, the_informer_follows_through_cuts_compaction_and_outages) {
  auto inside = make_client(c.api.transport());
  for (int i = 0; i < 10; ++i) create(*inside, "m" + std::to_string(i));
  informer all(api, types::config_maps(), quick());
  std::mutex mutex;
  std::map<std::string, int> balance;  // adds less deletes
  informer_handler h;
  h.added = [&](const object_ptr& o) {
    std::lock_guard lock(mutex);
    ++balance[std::string(name_of(*o))];
  };
  h.deleted = [&](const object_ptr& o) {
    std::lock_guard lock(mutex);
    --balance[std::string(name_of(*o))];
  };
  all.add_handler(h);
  auto running = background::start(rt.executor(), run_informer(all));
  ASSERT_TRUE(rt.wait(all.wait_synced()));
  EXPECT_EQ(all.size(), 10u);
  EXPECT_FALSE(all.get({"ns", "m0"})->at("metadata").as_object().contains("managedFields"));

  create(*inside, "n0");
  EXPECT_TRUE(eventually([&] { return all.get({"ns", "n0"}) != nullptr; }));
  c.api.faults().cut_watches("configmaps");
  remove(*inside, "m1");
  EXPECT_TRUE(eventually([&] { return all.get({"ns", "m1"}) == nullptr; }));

  // Down; meanwhile someone else deletes and makes objects, and the history is forgotten.
  c.api.faults().set_down(true);
  EXPECT_TRUE(eventually([&] { return all.last_error().has_value(); }));
  EXPECT_EQ(all.size(), 10u) << "readers keep the last state";
  c.api.faults().set_down(false);
  kubeopera::testing::api_fault blocked;
  blocked.verb = "watch";
  blocked.status = 503;
  blocked.reason = "ServiceUnavailable";
  blocked.times = -1;
  c.api.faults().inject(blocked);
  c.api.faults().cut_watches("configmaps");
  remove(*inside, "m2");
  create(*inside, "n1");
  c.api.compact();
  c.api.faults().clear();
  EXPECT_TRUE(eventually([&] { return all.get({"ns", "n1"}) && !all.get({"ns", "m2"}); }));
  EXPECT_EQ(all.size(), 10u);
  running.stop();
  ASSERT_TRUE(rt.wait(running.join()));
  std::lock_guard lock(mutex);
  EXPECT_EQ(balance["m1"], 0);
  EXPECT_EQ(balance["m2"], 0);
  EXPECT_EQ(balance["n1"], 1);
  EXPECT_EQ(balance["m3"], 1);
}

namespace {

struct times_led {
  std::atomic<int> now{0}, most{0}, total{0};
  std::mutex mutex;
  std::vector<std::int64_t> fences;
};

asio::awaitable<void> lead(times_led& t, std::int64_t fence) {
  {
    std::lock_guard lock(t.mutex);
    t.fences.push_back(fence);
  }
  ++t.total;
  int leaders = ++t.now;
  if (leaders > t.most) t.most = leaders;
  (void)co_await sleep_for(std::chrono::hours(1));
  --t.now;
}

asio::awaitable<void> candidate(leader_elector& e, times_led& t) {
  (void)co_await e.run([&t](std::int64_t fence) { return lead(t, fence); });
}

std::unique_ptr<leader_elector> elector(std::shared_ptr<client> api, const std::string& name) {
  lease_options o;
  o.ns = "ns";
  o.name = "leader";
  o.identity = name;
  o.lease_duration = 1s;
  o.renew_deadline = 400ms;
  o.retry_period = 30ms;
  auto e = leader_elector::make(std::move(api), o);
  EXPECT_TRUE(e);
  return std::move(*e);
}

}  // namespace

TEST_P(live_on, two_candidates_take_turns_and_never_lead_together) {
  auto a = elector(c.client(), "a"), b = elector(c.client(), "b");
  times_led t;
  auto first = background::start(rt.executor(), candidate(*a, t));
  ASSERT_TRUE(eventually([&] { return a->leading(); }));
  auto second = background::start(rt.executor(), candidate(*b, t));
  ASSERT_TRUE(eventually([&] { return b->leader() == "a"; }));
  EXPECT_FALSE(b->fence());
  first.stop();
  ASSERT_TRUE(rt.wait(first.join()));
  ASSERT_TRUE(eventually([&] { return b->leading(); })) << "released, so taken at the next try";
  // An outage ends b's leadership; when it is over b or nobody leads, with a larger token.
  c.api.faults().set_down(true);
  ASSERT_TRUE(eventually([&] { return t.now == 0; }));
  c.api.faults().set_down(false);
  ASSERT_TRUE(eventually([&] { return b->leading() && t.now == 1; }));
  second.stop();
  ASSERT_TRUE(rt.wait(second.join()));
  EXPECT_EQ(t.most, 1);
  std::lock_guard lock(t.mutex);
  EXPECT_TRUE(std::is_sorted(t.fences.begin(), t.fences.end()));
  EXPECT_EQ(std::adjacent_find(t.fences.begin(), t.fences.end()), t.fences.end()) << "each token once";
}

TEST(resolver_live, a_vclusters_secret_leads_to_its_api_over_mutual_tls) {
  runtime rt;
  cluster host(rt, path_kind::direct), inner(rt, path_kind::https);
  auto api = host.client();
  ASSERT_TRUE(rt.wait(api->create(types::namespaces(), make_object(types::namespaces(), {"", "host-ns"}))));
  vcluster::resolver_options options;
  options.connect_to = [&](const std::string& name) { return name == "t1.host-ns.svc" ? inner.address() : std::string(); };
  options.failure_kept_for = 1ms;
  vcluster::resolver resolver(rt.executor(), api, options);
  vcluster::reference t1{"tenant", "host-ns", "t1"};
  EXPECT_EQ(rt.wait(resolver.resolve(t1)).error().reason(), "VClusterNotReady");

  auto text = write_kubeconfig(inner.access(), "my-vcluster");
  text.replace(text.find("t1.host-ns.svc:443"), 18, "localhost:8443");  // as vCluster writes it by default
  auto s = make_object(types::secrets(), {"host-ns", "vc-t1"});
  s["type"] = "Opaque";
  s["data"] = {{"config", crypto::base64_encode(text)}};
  ASSERT_TRUE(rt.wait(api->create(types::secrets(), s)));
  std::shared_ptr<client> vc;
  ASSERT_TRUE(eventually([&] {
    auto r = rt.wait(resolver.resolve(t1));
    if (r) vc = *r;
    return r.has_value();
  }));
  auto made = rt.wait(vc->create(types::namespaces(), make_object(types::namespaces(), {"", "inside"})));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_TRUE(rt.wait(inner.client()->get(types::namespaces(), {"", "inside"})));
  EXPECT_EQ(rt.wait(api->get(types::namespaces(), {"", "inside"})).error().code(), errc::not_found);
}
