// The resolver over a scripted host cluster: caching, single flight, refusals, outages, renewed certificates, tenants apart.
#include "tests/unit/kube/kit.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <atomic>
#include <map>
#include <thread>

using namespace kubeopera;
using namespace kubeopera::vcluster;
using namespace kubeopera::kube_test;
using namespace std::chrono_literals;

namespace {

const crypto::key_pair& ca() {
  static const auto pair = *crypto::make_ca();
  return pair;
}

std::string kubeconfig(const std::string& host, const std::string& token = "t") {
  kube::cluster_access a;
  a.host = host;
  a.ca_pem = ca().certificate;
  a.token = secret(token);
  return kube::write_kubeconfig(a, "c");
}

kube::object secret_of(const std::string& ns, const std::string& name, const std::string& version, const std::string& config) {
  auto o = kube::make_object(kube::types::secrets(), {ns, name});
  o["metadata"].as_object()["resourceVersion"] = version;
  o["data"] = {{"config", crypto::base64_encode(config)}};
  return o;
}

// The host cluster: Secrets by path; can be down; counts.
class host final : public http::transport {
 public:
  task<http::response> send(http::request req, bool) override {
    ++reads;
    co_await sleep_for(1ms);
    std::lock_guard lock(mutex_);
    if (down) co_return error(errc::unavailable, "ConnectFailed", "refused");
    auto it = secrets_.find(req.target);
    if (it == secrets_.end())
      co_return http::response(404, "application/json", R"({"kind":"Status","code":404,"reason":"NotFound"})");
    co_return http::response(200, "application/json", json::write(it->second));
  }
  void put(kube::object o) {
    std::lock_guard lock(mutex_);
    auto target = "/api/v1/namespaces/" + std::string(kube::namespace_of(o)) + "/secrets/" + std::string(kube::name_of(o));
    secrets_[target] = std::move(o);
  }
  void clear() {
    std::lock_guard lock(mutex_);
    secrets_.clear();
  }
  std::atomic<int> reads{0};
  std::atomic<bool> down{false};

 private:
  std::mutex mutex_;
  std::map<std::string, kube::object> secrets_;
};

// A vCluster's server that answers with one status.
class inner final : public http::transport {
 public:
  task<http::response> send(http::request req, bool) override {
    target = req.target;
    authorization = std::string(req.headers.get("Authorization").value_or(""));
    if (tls_broken) co_return error(errc::unavailable, "TlsFailed", "certificate has expired");
    co_return http::response(status, "application/json", R"({"metadata":{"name":"x"}})");
  }
  std::string target, authorization;
  int status = 200;
  bool tls_broken = false;
};

class captured_log final : public logger {
 public:
  void log(level, std::string_view message, std::initializer_list<field>) override { lines.emplace_back(message); }
  int count(std::string_view message) const { return static_cast<int>(std::count(lines.begin(), lines.end(), message)); }
  std::vector<std::string> lines;
};

struct resolver_test : testing::Test {
  std::shared_ptr<host> api = std::make_shared<host>();
  std::shared_ptr<inner> vc = std::make_shared<inner>();
  jumping_clock time;
  captured_log log;
  asio::io_context io;
  std::vector<std::pair<std::string, std::string>> connected;  // url, connect_to
  std::unique_ptr<resolver> r;
  reference t1{"tenant-1", "host-ns", "t1"};

  void SetUp() override {
    resolver_options o;
    o.time = &time;
    o.log = &log;
    o.random = [] { return std::uint64_t{0}; };
    o.client.max_retries = 0;
    o.connect_to = [](const std::string& h) { return h == "t1.host-ns.svc" ? "127.0.0.1:4711" : ""; };
    o.transport = [this](const kube::cluster_access& a, const std::string& to) -> result<std::shared_ptr<http::transport>> {
      connected.emplace_back(a.url(), to);
      return std::shared_ptr<http::transport>(vc);
    };
    kube::client_options host_options;
    host_options.max_retries = 0;
    r = std::make_unique<resolver>(io.get_executor(), kube::make_client(api, host_options), std::move(o));
    api->put(secret_of("host-ns", "vc-t1", "1", kubeconfig("t1.host-ns.svc")));
  }
  result<std::shared_ptr<kube::client>> resolve(const reference& which) { return run(r->resolve(which)); }
};

}  // namespace

TEST_F(resolver_test, reads_the_secret_once_and_then_answers_from_memory) {
  EXPECT_EQ(r->cached(t1), nullptr);
  auto first = resolve(t1);
  ASSERT_TRUE(first) << to_string(first.error());
  auto second = resolve(t1);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(r->cached(t1), *first);
  EXPECT_EQ(api->reads, 1);
  ASSERT_EQ(connected.size(), 1u);
  EXPECT_EQ(connected[0], std::pair(std::string("https://t1.host-ns.svc:443"), std::string("127.0.0.1:4711")));
  ASSERT_TRUE(run((*first)->get(kube::types::config_maps(), {"ns", "x"})));
  EXPECT_EQ(vc->authorization, "Bearer t");
}

TEST_F(resolver_test, counts_what_it_answers) {
  resolver_stats none = r->stats();
  EXPECT_EQ(none.hits + none.misses + none.failures + none.entries, 0u);
  ASSERT_TRUE(resolve(t1));
  ASSERT_TRUE(resolve(t1));
  ASSERT_NE(r->cached(t1), nullptr);
  EXPECT_FALSE(resolve({"tenant-2", "host-ns", "nowhere"}));
  auto s = r->stats();
  EXPECT_EQ(s.hits, 2u);
  EXPECT_EQ(s.misses, 2u);
  EXPECT_EQ(s.failures, 1u);
  EXPECT_EQ(s.entries, 2u);
}

namespace {

asio::awaitable<void> one_of_many(resolver& r, const reference& which, std::atomic<int>& good) {
  auto c = co_await r.resolve(which);
  if (c && *c) ++good;
}

}  // namespace

TEST_F(resolver_test, a_stampede_is_one_read) {
  std::atomic<int> good{0};
  for (int i = 0; i < 1000; ++i) spawn(io.get_executor(), one_of_many(*r, t1, good));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { io.run(); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(good, 1000);
  EXPECT_EQ(api->reads, 1);
  EXPECT_EQ(connected.size(), 1u);
}

TEST_F(resolver_test, after_its_time_the_secret_is_read_again_and_an_unchanged_one_keeps_the_client) {
  auto first = resolve(t1);
  time.advance(31s);
  EXPECT_EQ(r->cached(t1), nullptr);
  auto second = resolve(t1);
  EXPECT_EQ(api->reads, 2);
  EXPECT_EQ(*first, *second) << "and with it its connections";
  api->put(secret_of("host-ns", "vc-t1", "2", kubeconfig("t1.host-ns.svc", "new")));
  time.advance(31s);
  auto third = resolve(t1);
  ASSERT_TRUE(third);
  EXPECT_NE(*first, *third);
  ASSERT_TRUE(run((*third)->get(kube::types::config_maps(), {"ns", "x"})));
  EXPECT_EQ(vc->authorization, "Bearer new");
}

TEST_F(resolver_test, no_secret_is_not_ready_and_remembered_for_a_moment) {
  api->clear();
  for (int i = 0; i < 5; ++i) {
    auto c = resolve(t1);
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().code(), errc::not_found);
    EXPECT_EQ(c.error().reason(), "VClusterNotReady");
  }
  EXPECT_EQ(api->reads, 1);
  api->put(secret_of("host-ns", "vc-t1", "1", kubeconfig("t1.host-ns.svc")));
  time.advance(2s);
  EXPECT_TRUE(resolve(t1));
}

TEST_F(resolver_test, a_secret_without_config_is_not_ready) {
  auto o = secret_of("host-ns", "vc-t1", "1", "");
  o["data"] = json::object{};
  api->put(o);
  EXPECT_EQ(resolve(t1).error().reason(), "VClusterNotReady");
}

TEST_F(resolver_test, a_deleted_vcluster_is_dropped) {
  ASSERT_TRUE(resolve(t1));
  api->clear();
  time.advance(31s);
  EXPECT_EQ(resolve(t1).error().code(), errc::not_found);
  EXPECT_EQ(r->cached(t1), nullptr);
}

TEST_F(resolver_test, another_server_in_the_secret_is_refused) {
  for (auto host : {"t2.host-ns.svc", "t1.other.svc", "10.0.0.1", "evil.example.com"}) {
    api->put(secret_of("host-ns", "vc-t1", host, kubeconfig(host)));
    auto c = resolve(t1);
    ASSERT_FALSE(c) << host;
    EXPECT_EQ(c.error().code(), errc::failed_precondition);
    EXPECT_EQ(c.error().reason(), "KubeconfigRefused");
    const auto violations = c.error().violations();
    ASSERT_EQ(violations.size(), 1u);
    EXPECT_EQ(violations[0].pointer, "/clusters/0/cluster/server");
    time.advance(2s);
  }
  EXPECT_TRUE(connected.empty()) << "no connection was made";
  auto o = secret_of("host-ns", "vc-t1", "9", "");
  o["data"] = {{"config", "not base64"}};
  api->put(o);
  EXPECT_EQ(resolve(t1).error().reason(), "KubeconfigRefused");
}

TEST_F(resolver_test, the_loopback_server_of_a_default_vcluster_becomes_its_service) {
  auto text = kubeconfig("localhost");
  text.replace(text.find("localhost:443"), 13, "localhost:8443");
  api->put(secret_of("host-ns", "vc-t1", "1", text));
  ASSERT_TRUE(resolve(t1));
  EXPECT_EQ(connected[0].first, "https://t1.host-ns.svc:443");
}

TEST_F(resolver_test, an_outage_of_the_host_keeps_what_was_good_and_reports_what_was_not_known) {
  auto first = resolve(t1);
  api->down = true;
  time.advance(31s);
  auto second = resolve(t1);
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(resolve({"tenant-1", "host-ns", "t9"}).error().code(), errc::unavailable);
  api->down = false;
  api->put(secret_of("host-ns", "vc-t1", "2", kubeconfig("t1.host-ns.svc", "new")));
  time.advance(2s);
  EXPECT_NE(*resolve(t1), *first) << "and is looked at again soon";
}

TEST_F(resolver_test, a_401_drops_the_client_but_not_over_and_over) {
  auto first = *resolve(t1);
  vc->status = 401;
  EXPECT_EQ(run(first->get(kube::types::config_maps(), {"ns", "x"})).error().code(), errc::unauthenticated);
  EXPECT_EQ(r->cached(t1), nullptr);
  auto second = *resolve(t1);
  EXPECT_NE(first, second) << "a new client even where the Secret is the same";
  EXPECT_EQ(api->reads, 2);
  (void)run(second->get(kube::types::config_maps(), {"ns", "x"}));
  EXPECT_NE(r->cached(t1), nullptr) << "within a second it is left alone";
  time.advance(2s);
  (void)run(first->get(kube::types::config_maps(), {"ns", "x"}));
  EXPECT_NE(r->cached(t1), nullptr) << "the old client's failures do not count";
  (void)run(second->get(kube::types::config_maps(), {"ns", "x"}));
  EXPECT_EQ(r->cached(t1), nullptr);
}

TEST_F(resolver_test, a_certificate_that_is_not_trusted_any_more_drops_the_client) {
  auto first = *resolve(t1);
  vc->tls_broken = true;
  EXPECT_EQ(run(first->get(kube::types::config_maps(), {"ns", "x"})).error().reason(), "TlsFailed");
  EXPECT_EQ(r->cached(t1), nullptr);
}

TEST_F(resolver_test, a_404_or_403_says_nothing_about_the_credentials) {
  auto first = *resolve(t1);
  for (int code : {403, 404, 500}) {
    vc->status = code;
    EXPECT_FALSE(run(first->get(kube::types::config_maps(), {"ns", "x"})));
    EXPECT_EQ(r->cached(t1), first) << code;
  }
}

TEST_F(resolver_test, tenants_never_share_an_entry) {
  auto mine = *resolve(t1);
  reference other{"tenant-2", "host-ns", "t1"};
  EXPECT_EQ(r->cached(other), nullptr);
  auto theirs = *resolve(other);
  EXPECT_NE(mine, theirs);
  r->invalidate(other);
  EXPECT_EQ(r->cached(t1), mine);
}

TEST_F(resolver_test, names_that_are_none_ask_nobody) {
  for (auto name : {"", "..", "a.b", "A", "a/b"}) {
    EXPECT_EQ(resolve({"t", "host-ns", name}).error().code(), errc::invalid_argument) << name;
    EXPECT_EQ(resolve({"t", name, "t1"}).error().code(), errc::invalid_argument) << name;
  }
  EXPECT_EQ(api->reads, 0);
}

namespace {

std::string with_certificate(system_time from, std::chrono::hours valid) {
  crypto::leaf_options leaf;
  leaf.common_name = "admin";
  leaf.server = false;
  leaf.client = true;
  leaf.not_before = from;
  leaf.valid_for = valid;
  auto pair = *crypto::issue(ca(), leaf);
  kube::cluster_access a;
  a.host = "t1.host-ns.svc";
  a.ca_pem = ca().certificate;
  a.client_certificate_pem = pair.certificate;
  a.client_key_pem = secret(pair.private_key);
  return kube::write_kubeconfig(a, "c");
}

}  // namespace

TEST_F(resolver_test, warns_before_a_certificate_ends_and_refuses_it_afterwards) {
  api->put(secret_of("host-ns", "vc-t1", "1", with_certificate(time.now() - 1h, std::chrono::hours(24 * 20))));
  ASSERT_TRUE(resolve(t1));
  EXPECT_EQ(log.count("vcluster certificate ends soon"), 0);
  time.advance(std::chrono::hours(24 * 10));
  ASSERT_TRUE(resolve(t1));
  EXPECT_EQ(log.count("vcluster certificate ends soon"), 1);
  time.advance(1min);
  ASSERT_TRUE(resolve(t1));
  EXPECT_EQ(log.count("vcluster certificate ends soon"), 1) << "not at every look";
  time.advance(std::chrono::hours(24 * 10));
  EXPECT_EQ(resolve(t1).error().reason(), "CertificateExpired");
}

namespace {

asio::awaitable<void> cancelled_one(resolver& r, const reference& which, std::optional<errc>& code) {
  auto c = co_await r.resolve(which);
  if (!c) code = c.error().code();
}

asio::awaitable<void> cancel_the_loader(asio::any_io_executor executor, resolver& r, const reference& which,
                                        std::optional<errc>& first, std::atomic<int>& good) {
  auto loader = background::start(executor, cancelled_one(r, which, first));
  auto waiter = background::start(executor, one_of_many(r, which, good));
  loader.stop();
  auto a = co_await loader.join();
  auto b = co_await waiter.join();
  EXPECT_TRUE(a && b);
}

}  // namespace

TEST_F(resolver_test, a_loader_that_is_cancelled_hands_over_to_a_waiter) {
  std::optional<errc> first;
  std::atomic<int> good{0};
  spawn(io.get_executor(), cancel_the_loader(io.get_executor(), *r, t1, first, good));
  io.run();
  EXPECT_EQ(good, 1);
}

TEST(reference, comes_from_the_tenant_resource) {
  auto o = kube::make_object(kube::types::kubeopera_tenants(), {"kubeopera-system", "acme-prod"});
  EXPECT_EQ(reference_of(o).error().reason(), "VClusterNotReady");
  o["spec"] = {{"tenant_id", "acme"}};
  o["status"] = {{"host_namespace", "vc-acme"}};
  EXPECT_EQ(*reference_of(o), reference("acme", "vc-acme", "acme-prod"));
}
