// The stage of the Flux scenarios.
#include "tests/conformance/flux/stage.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace kubeopera::conformance::flux {

using namespace std::chrono_literals;

namespace {

const std::string url = "http://127.0.0.1:18090/fleet.git";

std::string temporary_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "kubeopera-flux-XXXXXX").string();
  if (!mkdtemp(name.data())) std::abort();
  return name;
}

// Connection refused while the place is down; a moment's delay otherwise, as a network has.
class git_transport final : public http::transport {
 public:
  git_transport(std::shared_ptr<http::transport> inner, const std::atomic<bool>& down) : inner_(std::move(inner)), down_(down) {}
  task<http::response> send(http::request request, bool want_stream) override {
    KUBEOPERA_CO_CHECK(co_await sleep_for(20ms));
    if (down_) co_return error(errc::unavailable, "ConnectFailed", "connection refused");
    co_return co_await inner_->send(std::move(request), want_stream);
  }

 private:
  std::shared_ptr<http::transport> inner_;
  const std::atomic<bool>& down_;
};

kubeopera::testing::simulator_options options_for(git_place& git) {
  auto o = testing_rig::rig::quick();
  o.flux = true;
  o.flux_directory = git.directory() + "/sources";
  o.flux_health_poll = 20ms;
  o.flux_minimum_timeout = 500ms;
  o.git_transport = [&git](const std::string& u) { return git.open(u); };
  return o;
}

}  // namespace

git_place::git_place() : directory_(temporary_directory()) {
  git("init -q --bare --initial-branch=main " + directory_ + "/fleet.git");
  git("init -q --initial-branch=main " + directory_ + "/work");
  std::filesystem::create_directories(directory_ + "/sources");
}

git_place::~git_place() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void git_place::git(const std::string& arguments) {
  auto line = "git -c user.name=t -c user.email=t@localhost -c commit.gpgsign=false " + arguments + " >/dev/null 2>&1";
  ASSERT_EQ(std::system(line.c_str()), 0) << line;
}

void git_place::commit(const std::map<std::string, std::string>& files, bool rewrite) {
  auto work = directory_ + "/work";
  for (const auto& [path, text] : files) {
    auto full = work + "/" + path;
    if (text.empty()) {
      std::filesystem::remove(full);
      continue;
    }
    std::filesystem::create_directories(std::filesystem::path(full).parent_path());
    std::ofstream(full, std::ios::trunc) << text;
  }
  git("-C " + work + " add -A");
  git("-C " + work + " commit -q -m change" + (rewrite ? " --amend" : ""));
  git("-C " + work + " push -q" + (rewrite ? " --force " : " ") + directory_ + "/fleet.git main");
}

result<std::pair<std::shared_ptr<http::transport>, std::string>> git_place::open(const std::string& u) {
  gitops::git_server_options o;
  o.root = directory_;
  auto local = http::make_local_transport(gitops::make_git_http_handler(o));
  auto path = u.substr(u.find('/', u.find("://") + 3));
  return std::pair<std::shared_ptr<http::transport>, std::string>(std::make_shared<git_transport>(local, down), path);
}

tape::tape(std::shared_ptr<kube::client> client, asio::any_io_executor executor, kube::resource_type type, kube::object_key key,
           std::string rv)
    : work_(background::start(executor, record(std::move(client), std::move(type), std::move(key), std::move(rv), state_))) {}

tape::~tape() = default;

std::vector<json::object> tape::objects() const {
  std::lock_guard lock(state_->mutex);
  return state_->seen;
}

asio::awaitable<void> tape::record(std::shared_ptr<kube::client> client, kube::resource_type type, kube::object_key key,
                                   std::string rv, std::shared_ptr<state> s) {
  kube::watch_options options;
  options.resource_version = rv;
  options.field_selector = "metadata.name=" + key.name;
  auto stream = co_await client->watch(type, key.ns, options);
  while (stream) {
    auto e = co_await (*stream)->next();
    if (!e || !*e) co_return;
    if ((*e)->type == kube::event_type::bookmark) continue;
    std::lock_guard lock(s->mutex);
    s->seen.push_back((*e)->obj);
  }
}

stage::stage() : cluster(options_for(git)) {
  cluster.create(kube::types::namespaces(), R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}})");
}

std::unique_ptr<tape> stage::watch(const kube::resource_type& type, const std::string& name) {
  return std::make_unique<tape>(cluster.client, cluster.l.io.get_executor(), type, kube::object_key{"flux-system", name},
                                std::to_string(cluster.api.resource_version()));
}

void stage::create_source() {
  cluster.create(
      kube::types::git_repositories(),
      R"({"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"GitRepository","metadata":{"name":"fleet","namespace":"flux-system"},
                     "spec":{"interval":"10m","url":")" +
          url + R"(","ref":{"branch":"main"}}})");
}

void stage::create_kustomization(const std::string& name, const std::string& path, bool wait, const std::string& depends_on) {
  std::string depends = depends_on.empty() ? "" : R"("dependsOn":[{"name":")" + depends_on + R"("}],)";
  cluster.create(kube::types::kustomizations(),
                 R"({"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":")" + name +
                     R"(","namespace":"flux-system"},"spec":{"interval":"10m","retryInterval":"1500ms","timeout":"500ms",)" +
                     depends + R"("path":")" + path + R"(","prune":true,"wait":)" + (wait ? "true" : "false") +
                     R"(,"sourceRef":{"kind":"GitRepository","name":"fleet"}}})");
}

void stage::patch_source(const std::string& body) {
  cluster.patch(kube::types::git_repositories(), "flux-system", "fleet", body);
}

void stage::patch_kustomization(const std::string& name, const std::string& body) {
  cluster.patch(kube::types::kustomizations(), "flux-system", name, body);
}

void stage::poke_source() {
  patch_source(R"({"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"poke )" + std::to_string(++pokes_) + R"("}}})");
}

void stage::poke(const std::string& kustomization) {
  patch_kustomization(kustomization, R"({"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"poke )" +
                                         std::to_string(++pokes_) + R"("}}})");
}

bool stage::settled(const std::vector<std::string>& kustomizations) {
  return cluster.eventually([&] {
    auto s = source();
    if (!s || !kube::condition_true(*s, "Ready") ||
        json::get_string(*s, {"status", "lastHandledReconcileAt"}) !=
            kube::annotation_of(*s, "reconcile.fluxcd.io/requestedAt")) {
      return false;
    }
    auto revision = json::get_string(*s, {"status", "artifact", "revision"});
    for (const auto& name : kustomizations) {
      auto k = kustomization(name);
      if (!k || !kube::condition_true(*k, "Ready") || json::get_string(*k, {"status", "lastAppliedRevision"}) != revision ||
          json::get_string(*k, {"status", "lastHandledReconcileAt"}) !=
              kube::annotation_of(*k, "reconcile.fluxcd.io/requestedAt")) {
        return false;
      }
    }
    return true;
  });
}

std::string deployment_yaml(const std::string& name, const std::string& image, std::optional<int> replicas) {
  return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\n  namespace: shop\nspec:\n" +
         (replicas ? "  replicas: " + std::to_string(*replicas) + "\n" : std::string()) +
         "  selector:\n    matchLabels: {app: " + name +
         "}\n  strategy: {}\n  template:\n    metadata:\n      labels: {app: " + name +
         "}\n    spec:\n      containers:\n      - name: c\n        image: " + image + "\n        resources: {}\n";
}

std::string config_map_yaml(const std::string& name, const std::string& value) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: shop\ndata:\n  k: " + value + "\n";
}

}  // namespace kubeopera::conformance::flux
