// The two backends.
#include "backend.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/server.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/testing/api_server.hpp>
#include <kubeopera/testing/simulator.hpp>
#include <kubeopera/yaml/read.hpp>

#include <fstream>
#include <sstream>

namespace kubeopera::conformance {
namespace {

asio::awaitable<void> serve(http::server& s) {
  auto ended = co_await s.run();
  EXPECT_FALSE(ended);  // by cancellation only
}

asio::awaitable<void> simulate(std::shared_ptr<testing::simulator> s) {
  auto ended = co_await s->run();
  EXPECT_FALSE(ended);
}

testing::simulator_options controllers() {
  testing::simulator_options o;
  o.flux = false;
  o.crash_after = std::chrono::milliseconds(20);
  o.pull_backoff = std::chrono::milliseconds(200);
  o.restart_backoff = std::chrono::milliseconds(200);
  o.heartbeat = std::chrono::milliseconds(200);
  return o;
}

/// Over HTTPS with client certificates, as the real one.
class in_process final : public backend {
 public:
  explicit in_process(runtime& rt) : rt_(rt), ca_(crypto::make_ca().value()) {
    auto identity = crypto::issue_server(ca_, {"localhost"}, {"127.0.0.1"}).value();
    auto tls = std::make_shared<http::server_tls>();
    tls->identity = http::tls_identity(identity.certificate, identity.private_key);
    tls->client_ca_pem = ca_.certificate;
    http::server_options listen;
    listen.tls = tls;
    listen.drain_timeout = std::chrono::milliseconds(100);
    listen.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(8u << 20); };
    server_ = http::server::listen(rt.executor(), std::move(listen), api_.handler()).value();
    serving_ = background::start(rt.executor(), serve(*server_));
    auto inside = kube::make_client(api_.transport(testing::api_user("system:kube-controller-manager", {"system:masters"})));
    simulator_ = std::make_shared<testing::simulator>(rt.executor(), inside, controllers());
    api_.set_log_source(simulator_->log_source());
    simulating_ = background::start(rt.executor(), simulate(simulator_));
    EXPECT_TRUE(rt.wait(simulator_->wait_started()));
  }
  ~in_process() override {
    simulating_.stop();
    EXPECT_TRUE(rt_.wait(simulating_.join()));
    serving_.stop();
    EXPECT_TRUE(rt_.wait(serving_.join()));
  }
  std::string kind() const override { return "in-process"; }
  std::string kubeconfig() const override {
    auto user = crypto::issue_client(ca_, "admin", {"system:masters"}).value();
    kube::cluster_access a;
    a.host = "127.0.0.1";
    a.port = server_->port();
    a.ca_pem = ca_.certificate;
    a.client_certificate_pem = user.certificate;
    a.client_key_pem = secret(user.private_key);
    return kube::write_kubeconfig(a, "conformance");
  }
  bool compact() override {
    api_.compact();
    return true;
  }

 private:
  runtime& rt_;
  crypto::key_pair ca_;
  testing::api_server api_;
  std::unique_ptr<http::server> server_;
  std::shared_ptr<testing::simulator> simulator_;
  background serving_, simulating_;
};

/// Somebody else's, which is already there.
class real final : public backend {
 public:
  real(runtime& rt, const std::string& path, std::string etcd) : rt_(rt), etcd_(std::move(etcd)) {
    std::ifstream in(path);
    std::ostringstream all;
    all << in.rdbuf();
    kubeconfig_ = all.str();
  }
  std::string kind() const override { return "real"; }
  std::string kubeconfig() const override { return kubeconfig_; }
  /// etcd's own compaction, by the JSON form of its API.
  bool compact() override {
    if (etcd_.empty()) return false;
    auto to = http::make_client(rt_.executor(), http::client_options(etcd_)).value();
    auto at = rt_.wait(post(to, "/v3/kv/range", json::object{{"key", "Zm9v"}})).value();
    std::string revision(json::get_string(at, {"header", "revision"}));
    auto done = rt_.wait(post(to, "/v3/kv/compaction", json::object{{"revision", revision}, {"physical", true}}));
    EXPECT_TRUE(done) << to_string(done.error());
    return done.has_value();
  }

 private:
  static task<json::object> post(std::shared_ptr<http::transport> to, std::string path, json::object body) {
    http::request r("POST", std::move(path), json::write(body));
    r.headers.set("Content-Type", "application/json");
    KUBEOPERA_CO_TRY(auto answer, co_await to->send(std::move(r)));
    if (answer.status != 200) co_return error(errc::unavailable, "Etcd", answer.body);
    co_return json::read_object(answer.body);
  }
  runtime& rt_;
  std::string etcd_, kubeconfig_;
};

std::string environment(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

std::unique_ptr<runtime>& runtime_slot() {
  static std::unique_ptr<runtime> r;
  return r;
}
std::unique_ptr<backend>& backend_slot() {
  static std::unique_ptr<backend> b;
  return b;
}

}  // namespace

runtime& the_runtime() {
  auto& r = runtime_slot();
  if (!r) r = std::make_unique<runtime>();
  return *r;
}

backend& the_backend() {
  auto& b = backend_slot();
  if (b) return *b;
  auto path = environment("KUBEOPERA_TEST_KUBECONFIG");
  if (path.empty()) {
    b = std::make_unique<in_process>(the_runtime());
  } else {
    b = std::make_unique<real>(the_runtime(), path, environment("KUBEOPERA_TEST_ETCD"));
  }
  return *b;
}

void close_backend() {
  backend_slot().reset();
  runtime_slot().reset();
}

result<kube::cluster_access> access_of(const std::string& kubeconfig) {
  KUBEOPERA_TRY(auto doc, yaml::read(kubeconfig));
  std::string url;
  if (const auto* server = json::find_pointer(doc, "/clusters/0/cluster/server")) url = json::as_view(*server);
  auto host = url.find("://"), colon = url.rfind(':');
  kube::kubeconfig_policy policy;
  if (host != std::string::npos && colon > host + 2) {
    policy.only_host = url.substr(host + 3, colon - host - 3);
    policy.only_port = static_cast<std::uint16_t>(std::atoi(url.c_str() + colon + 1));
  }
  return kube::read_kubeconfig(kubeconfig, policy);
}

}  // namespace kubeopera::conformance
