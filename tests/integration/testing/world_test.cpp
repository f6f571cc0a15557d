// The world over real sockets: a tenant becomes a vCluster, Flux applies what Git holds, the front door answers, a restart
// forgets nothing.
#include "tests/unit/testing/sim_rig.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/testing/world.hpp>

#include <cstdlib>
#include <filesystem>

using namespace kubeopera;
using testing_rig::loop;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view tenant_crd = R"({
"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"kubeoperatenants.tenancy.kubeopera.io"},
"spec":{"group":"tenancy.kubeopera.io","scope":"Namespaced","names":{"kind":"KubeOperaTenant","listKind":"KubeOperaTenantList",
"plural":"kubeoperatenants","singular":"kubeoperatenant"},"versions":[{"name":"v1alpha1","served":true,"storage":true,"subresources":{"status":{}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}})";

constexpr std::string_view tenant = R"({"apiVersion":"tenancy.kubeopera.io/v1alpha1","kind":"KubeOperaTenant",
"metadata":{"name":"blue","namespace":"default"},"spec":{"tenant_id":"t1","cloudspace":"c1","quota":{"cpu":"8","memory":"16Gi","pods":50}}})";

constexpr std::string_view manifests = R"(apiVersion: v1
kind: Namespace
metadata:
  name: shop
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: nginx:1.27
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
spec:
  selector: {app: web}
  ports:
  - port: 80
    targetPort: 8080
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
spec:
  tls:
  - hosts: [web.apps.localhost]
  rules:
  - host: web.apps.localhost
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service:
            name: web
            port: {number: 80}
)";

std::string temporary_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "kubeopera-world-XXXXXX").string();
  if (!mkdtemp(name.data())) std::abort();
  return name;
}

asio::awaitable<void> run_world(kubeopera::testing::world* w) {
  auto ended = co_await w->run();
  EXPECT_FALSE(ended);
}

asio::awaitable<void> run_committer(std::shared_ptr<gitops::committer> c) {
  auto ended = co_await c->run();
  EXPECT_FALSE(ended);
}

// The world with its directory and a fleet repository beside it.
class installation {
 public:
  installation() : directory(temporary_directory()), fleet(directory + "/fleet.git") {}
  ~installation() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  void start(bool quiet = false) {
    kubeopera::testing::world_options o;
    o.simulation.flux_quiet = quiet;
    o.directory = directory + "/world";
    o.crds.push_back(json::read_object(tenant_crd).value());
    o.plain_listener = true;
    auto made = kubeopera::testing::world::open(l.io.get_executor(), o);
    ASSERT_TRUE(made) << to_string(made.error());
    w = std::move(*made);
    running = background::start(l.io.get_executor(), run_world(w.get()));
    auto started = l.wait(w->wait_started());
    ASSERT_TRUE(started) << to_string(started.error());
  }
  void stop() {
    if (!w) return;
    running.stop();
    EXPECT_TRUE(l.wait(running.join()));
    w.reset();
  }
  bool eventually(const std::function<bool()>& holds) {
    auto until = std::chrono::steady_clock::now() + 20s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > until) return false;
      if (!l.wait(sleep_for(5ms))) return false;
    }
    return true;
  }
  std::optional<kube::object> get(std::shared_ptr<kube::client> c, const kube::resource_type& type, std::string ns,
                                  std::string name) {
    if (!c) return std::nullopt;
    kube::object_key key{std::move(ns), std::move(name)};
    auto r = l.wait(c->get(type, key));
    if (!r) return std::nullopt;
    return *r;
  }
  void create(std::shared_ptr<kube::client> c, const kube::resource_type& type, std::string_view text) {
    auto o = json::read_object(text).value();
    auto r = l.wait(c->create(type, o));
    ASSERT_TRUE(r) << to_string(r.error());
  }
  void commit(const std::string& dir, const std::string& text) {
    auto store = gitops::open_store(directory + "/committer.git");
    ASSERT_TRUE(store) << to_string(store.error());
    ASSERT_TRUE(gitops::open_store(fleet));
    std::shared_ptr<gitops::committer> c =
        gitops::make_committer(l.io.get_executor(), *store, gitops::make_file_remote(fleet, *store), gitops::committer_options());
    auto work = background::start(l.io.get_executor(), run_committer(c));
    gitops::change change;
    change.directory = dir;
    change.files["all.yaml"] = text;
    change.subject = "change";
    auto done = l.wait(c->submit(change));
    EXPECT_TRUE(done) << to_string(done.error());
    work.stop();
    EXPECT_TRUE(l.wait(work.join()));
  }
  bool tenant_ready() {
    auto t = get(w->host_client(), kube::types::kubeopera_tenants(), "default", "blue");
    return t && kube::condition_true(*t, "Ready");
  }
  void flux() {
    create(
        w->vcluster_client("blue"), kube::types::git_repositories(),
        R"({"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"GitRepository","metadata":{"name":"fleet","namespace":"flux-system"},
               "spec":{"interval":"10m","url":"file://)" +
            fleet + R"(","ref":{"branch":"main"}}})");
    create(
        w->vcluster_client("blue"), kube::types::kustomizations(),
        R"({"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"web","namespace":"flux-system"},
               "spec":{"interval":"10m","path":"./apps/web","prune":true,"sourceRef":{"kind":"GitRepository","name":"fleet"}}})");
  }
  // A vCluster whose Flux is told of the fleet with one app in it.
  bool start_with_web(bool quiet = false) {
    commit("apps/web", std::string(manifests));
    start(quiet);
    create(w->host_client(), kube::types::kubeopera_tenants(), tenant);
    bool ready = eventually([&] { return tenant_ready(); });
    if (ready) flux();
    return ready;
  }
  void ask_flux() {
    auto asked =
        json::read(R"({"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":")" + std::to_string(++requests) + "\"}}}");
    EXPECT_TRUE(l.wait(w->vcluster_client("blue")->patch(
        kube::types::git_repositories(), kube::object_key{"flux-system", "fleet"}, kube::patch_kind::merge, asked.value())));
  }
  // Flux looks at the repository; returns the next thing that a watcher sees of the Kustomization.
  kube::object first_seen_of_next_pass() {
    auto client = w->vcluster_client("blue");
    auto now = get(client, kube::types::kustomizations(), "flux-system", "web");
    if (!now) return {};
    kube::watch_options o;
    o.resource_version = std::string(kube::resource_version_of(*now));
    o.field_selector = "metadata.name=web";
    auto stream = l.wait(client->watch(kube::types::kustomizations(), "flux-system", o));
    EXPECT_TRUE(stream);
    ask_flux();
    while (stream) {
      auto e = l.wait((*stream)->next());
      EXPECT_TRUE(e && *e);
      if (!e || !*e) return {};
      if ((*e)->type != kube::event_type::bookmark) return (*e)->obj;
    }
    return {};
  }
  result<http::response> visit(const std::string& host, const std::string& path) {
    http::client_options o("https://" + host + ":" + std::to_string(w->front_port()));
    o.connect_to = "127.0.0.1:" + std::to_string(w->front_port());
    o.tls.ca_pem = w->apps_ca();
    auto c = http::make_client(l.io.get_executor(), o);
    if (!c) return c.error();
    return l.wait((*c)->send(http::request("GET", path)));
  }

  loop l;
  std::string directory, fleet;
  std::unique_ptr<kubeopera::testing::world> w;
  background running;
  int requests = 0;
};

}  // namespace

TEST(world, a_commit_elsewhere_is_one_write_of_status_where_flux_is_quiet) {
  installation i;
  ASSERT_TRUE(i.start_with_web(true));
  std::string applied;
  ASSERT_TRUE(i.eventually([&] {
    auto k = i.get(i.w->vcluster_client("blue"), kube::types::kustomizations(), "flux-system", "web");
    if (!k || !kube::condition_true(*k, "Ready")) return false;
    applied = std::string(json::get_string(*k, {"status", "lastAppliedRevision"}));
    return !applied.empty();
  }));
  i.commit("apps/other", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other\n");
  auto quiet = i.first_seen_of_next_pass();
  EXPECT_TRUE(kube::condition_true(quiet, "Ready"));
  EXPECT_EQ(kube::find_condition(quiet, "Reconciling"), nullptr);
  EXPECT_NE(json::get_string(quiet, {"status", "lastAppliedRevision"}), applied);
  EXPECT_EQ(json::get_string(quiet, {"status", "lastAppliedRevision"}),
            json::get_string(quiet, {"status", "lastAttemptedRevision"}));
  // What changes something is told step by step.
  auto next = std::string(manifests);
  next.replace(next.find("1.27"), 4, "1.28");
  i.commit("apps/web", next);
  auto loud = i.first_seen_of_next_pass();
  EXPECT_FALSE(kube::condition_true(loud, "Ready"));
  EXPECT_TRUE(kube::condition_true(loud, "Reconciling"));
}

TEST(world, a_source_that_was_fetched_often_holds_few_packs_and_goes_on) {
  installation i;
  ASSERT_TRUE(i.start_with_web(true));
  auto client = i.w->vcluster_client("blue");
  auto revision = [&] {
    auto r = i.get(client, kube::types::git_repositories(), "flux-system", "fleet");
    return r ? std::string(json::get_string(*r, {"status", "artifact", "revision"})) : std::string();
  };
  ASSERT_TRUE(i.eventually([&] { return !revision().empty(); }));
  for (int n = 0; n < 70; ++n) {
    auto before = revision();
    i.commit("apps/other", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: other" + std::to_string(n) + "\n");
    i.ask_flux();
    ASSERT_TRUE(i.eventually([&] { return revision() != before; })) << n;
  }
  int packs = 0;
  for (const auto& e : std::filesystem::recursive_directory_iterator(i.directory + "/world"))
    packs += e.path().extension() == ".pack";
  EXPECT_GT(packs, 0);
  EXPECT_LT(packs, 64);
  EXPECT_TRUE(i.eventually([&] {
    auto k = i.get(client, kube::types::kustomizations(), "flux-system", "web");
    return k && kube::condition_true(*k, "Ready") && json::get_string(*k, {"status", "lastAppliedRevision"}) == revision();
  }));
}

TEST(world, a_tenant_becomes_a_vcluster_whose_secret_opens_it) {
  installation i;
  i.start();
  i.create(i.w->host_client(), kube::types::kubeopera_tenants(), tenant);
  ASSERT_TRUE(i.eventually([&] { return i.tenant_ready(); }));
  auto secret = i.get(i.w->host_client(), kube::types::secrets(), "vc-blue", "vc-blue");
  ASSERT_TRUE(secret);
  EXPECT_EQ(kube::label_of(*secret, "app"), "vcluster");
  auto decode = [&](std::string_view key) { return crypto::base64_decode(json::get_string(*secret, {"data", key})).value(); };
  EXPECT_NE(decode("config").find("https://blue.vc-blue.svc:443"), std::string::npos);
  auto where = i.w->connect_to("blue.vc-blue.svc:443");
  ASSERT_TRUE(where);
  http::client_options o("https://blue.vc-blue.svc:443");
  o.connect_to = *where;
  o.tls.ca_pem = decode("certificate-authority");
  o.tls.certificate_pem = decode("client-certificate");
  o.tls.private_key_pem = decode("client-key");
  auto c = http::make_client(i.l.io.get_executor(), o);
  ASSERT_TRUE(c) << to_string(c.error());
  auto r = i.l.wait((*c)->send(http::request("GET", "/api/v1/namespaces/flux-system")));
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->status, 200) << r->body;
  o.tls.certificate_pem = o.tls.private_key_pem = "";
  auto stranger = http::make_client(i.l.io.get_executor(), o);
  ASSERT_TRUE(stranger);
  auto no = i.l.wait((*stranger)->send(http::request("GET", "/api/v1/namespaces")));
  EXPECT_TRUE(!no || no->status == 401 || no->status == 403);
}

TEST(world, what_git_holds_is_applied_and_answers_over_https) {
  installation i;
  i.commit("apps/web", std::string(manifests));
  i.start();
  i.create(i.w->host_client(), kube::types::kubeopera_tenants(), tenant);
  ASSERT_TRUE(i.eventually([&] { return i.tenant_ready(); }));
  auto began = std::chrono::steady_clock::now();
  i.flux();
  ASSERT_TRUE(i.eventually([&] {
    auto r = i.visit("web.apps.localhost", "/hello?a=1");
    return r && r->status == 200;
  }));
  RecordProperty(
      "milliseconds",
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count()));
  auto r = i.visit("web.apps.localhost", "/hello?a=1");
  ASSERT_TRUE(r);
  auto body = json::read_object(r->body).value();
  EXPECT_EQ(json::get_string(body, {"image"}), "nginx:1.27");
  EXPECT_EQ(json::get_string(body, {"path"}), "/hello");
  auto unknown = i.visit("other.apps.localhost", "/");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->status, 404);
  kube::log_options o;
  auto client = i.w->vcluster_client("blue");
  kube::object_key pod{"shop", std::string(json::get_string(body, {"pod"}))};
  auto log = i.l.wait(client->logs(pod, o));
  ASSERT_TRUE(log);
  auto text = i.l.wait(http::read_all(**log, 1 << 20));
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("path=\"/hello?a=1\""), std::string::npos) << *text;

  // Nothing ready: 503, not an old answer.
  i.l.wait(client->patch(kube::types::deployments(), kube::object_key{"shop", "web"}, kube::patch_kind::merge,
                         json::read(R"({"spec":{"replicas":0}})").value()))
      .value();
  EXPECT_TRUE(i.eventually([&] {
    auto down = i.visit("web.apps.localhost", "/");
    return down && down->status == 503;
  }));
}

TEST(world, a_restart_goes_on_where_it_was) {
  installation i;
  ASSERT_TRUE(i.start_with_web());
  ASSERT_TRUE(i.eventually([&] {
    auto r = i.visit("web.apps.localhost", "/");
    return r && r->status == 200;
  }));
  auto before = i.get(i.w->vcluster_client("blue"), kube::types::deployments(), "shop", "web");
  ASSERT_TRUE(before);
  auto port = i.w->front_port(), host_port = i.w->host_port();
  i.stop();
  i.start();
  EXPECT_EQ(i.w->front_port(), port);
  EXPECT_EQ(i.w->host_port(), host_port);
  ASSERT_TRUE(i.eventually([&] { return i.w->vcluster_client("blue") != nullptr && i.tenant_ready(); }));
  auto after = i.get(i.w->vcluster_client("blue"), kube::types::deployments(), "shop", "web");
  ASSERT_TRUE(after);
  EXPECT_EQ(kube::uid_of(*after), kube::uid_of(*before));
  ASSERT_TRUE(i.eventually([&] {
    auto r = i.visit("web.apps.localhost", "/");
    return r && r->status == 200;
  }));
  // And it is still alive: a new commit is applied when Flux is asked.
  auto next = std::string(manifests);
  next.replace(next.find("1.27"), 4, "1.28");
  i.commit("apps/web", next);
  i.ask_flux();
  EXPECT_TRUE(i.eventually([&] {
    auto r = i.visit("web.apps.localhost", "/");
    return r && r->status == 200 && r->body.find("nginx:1.28") != std::string::npos;
  }));
}

TEST(world, deleting_a_tenant_leaves_nothing) {
  installation i;
  i.start();
  i.create(i.w->host_client(), kube::types::kubeopera_tenants(), tenant);
  ASSERT_TRUE(i.eventually([&] { return i.tenant_ready(); }));
  auto gone = i.l.wait(i.w->host_client()->remove(kube::types::kubeopera_tenants(), kube::object_key{"default", "blue"}));
  ASSERT_TRUE(gone);
  EXPECT_TRUE(i.eventually([&] {
    return !i.get(i.w->host_client(), kube::types::kubeopera_tenants(), "default", "blue") &&
           !i.get(i.w->host_client(), kube::types::namespaces(), "", "vc-blue");
  }));
  EXPECT_TRUE(i.w->vclusters().empty());
  EXPECT_FALSE(std::filesystem::exists(i.directory + "/world/vclusters/blue"));
}

TEST(world, the_plain_door_is_for_programs_of_this_machine) {
  installation i;
  i.start();
  auto c = http::make_client(i.l.io.get_executor(), http::client_options(i.w->plain_url()));
  ASSERT_TRUE(c);
  auto r = i.l.wait((*c)->send(http::request("GET", "/api/v1/namespaces")));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->status, 200);
  http::request foreign("GET", "/api/v1/namespaces");
  foreign.headers.set("Origin", "https://evil.example");
  auto no = i.l.wait((*c)->send(std::move(foreign)));
  ASSERT_TRUE(no);
  EXPECT_EQ(no->status, 403);
}
