// The simulator: puts the controllers together and answers for logs and backends.
#include "src/testing/flux_controllers.hpp"
#include "src/testing/sim_deployment.hpp"
#include "src/testing/sim_meta.hpp"
#include "src/testing/sim_network.hpp"
#include "src/testing/sim_state.hpp"

#include <kubeopera/core/wait.hpp>
#include <kubeopera/testing/simulator.hpp>

#include <boost/asio/strand.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing {

namespace {

// Keeps the copy for other threads up to date: a controller whose work is to look.
class observer final : public sim::controller {
 public:
  observer(sim::environment& e, simulator::state& s) : controller(e), state_(s) {}
  std::string_view name() const override { return "observer"; }
  std::vector<kube::resource_type> watches() const override {
    return {kube::types::services(), kube::types::pods(), kube::types::ingresses()};
  }
  void on_change(const kube::resource_type& type, const sim::shared_object&, const sim::shared_object&) override {
    if (type == kube::types::services() || type == kube::types::pods() || type == kube::types::ingresses()) {
      enqueue({"", "all"});
    }
  }
  void start() override { enqueue({"", "all"}); }
  task<void> reconcile(const kube::object_key&) override {
    auto now = std::make_shared<simulator::state::snapshot>();
    now->services = env.objects.list(kube::types::services());
    now->pods = env.objects.list(kube::types::pods());
    now->ingresses = env.objects.list(kube::types::ingresses());
    std::lock_guard lock(state_.mutex);
    state_.seen = std::move(now);
    co_return result<void>();
  }

 private:
  simulator::state& state_;
};

void add_controllers(simulator::state& s) {
  auto& env = s.env;
  s.loop.add(sim::make_pod_ender(env, s.logs));
  s.loop.add(std::make_unique<observer>(env, s));
  s.loop.add(sim::make_deployment_controller(env));
  s.loop.add(sim::make_replica_set_controller(env));
  s.loop.add(sim::make_job_controller(env));
  s.loop.add(sim::make_garbage_collector(env, s.registry));
  s.loop.add(sim::make_namespace_controller(env, s.registry));
  s.loop.add(sim::make_scheduler(env, s.faults));
  s.loop.add(sim::make_endpoints_controller(env));
  s.loop.add(sim::make_ingress_controller(env));
  s.loop.add(sim::make_kubelet(env, s.faults, s.logs));
  s.loop.add(sim::make_autoscaler(env));
  s.loop.add(sim::make_claim_controller(env));
  s.loop.add(sim::make_quota_controller(env));
  s.loop.add(sim::make_disruption_controller(env));
}

json::object node_object(const node_spec& spec, const std::string& now) {
  kube::object_key key;
  key.name = spec.name;
  auto node = kube::make_object(kube::types::nodes(), key);
  auto& labels = json::ensure_object(json::ensure_object(node, "metadata"), "labels");
  labels["kubernetes.io/hostname"] = spec.name;
  labels["kubernetes.io/os"] = "linux";
  labels["kubernetes.io/arch"] = "amd64";
  json::object room;
  room["cpu"] = spec.cpu;
  room["memory"] = spec.memory;
  room["pods"] = std::to_string(spec.pods);
  auto& status = json::ensure_object(node, "status");
  status["capacity"] = room;
  status["allocatable"] = std::move(room);
  json::object ready;
  ready["type"] = "Ready";
  ready["status"] = "True";
  ready["reason"] = "KubeletReady";
  ready["message"] = "kubelet is posting ready status";
  ready["lastHeartbeatTime"] = now;
  ready["lastTransitionTime"] = now;
  json::ensure_array(status, "conditions").push_back(std::move(ready));
  auto& info = json::ensure_object(status, "nodeInfo");
  info["kubeletVersion"] = "v1.36.3";
  info["containerRuntimeVersion"] = "simulated://1";
  info["osImage"] = "simulated";
  info["architecture"] = "amd64";
  info["operatingSystem"] = "linux";
  return node;
}

task<void> make_nodes(sim::environment& env) {
  for (const auto& spec : env.options.nodes) {
    kube::write_options w;
    w.field_manager = "kubelet";
    auto node = node_object(spec, env.now());
    auto made = co_await env.api->create(kube::types::nodes(), node, w);
    if (!made && made.error().code() == errc::already_exists) continue;
    if (!made) co_return made.error();
    if (json::find(*made, {"status", "allocatable", "cpu"})) continue;
    auto full = *made;
    full["status"] = node["status"];
    w.subresource = "status";
    auto r = co_await env.api->replace(kube::types::nodes(), full, w);
    if (!r) co_return r.error();
  }
  co_return result<void>();
}

}  // namespace

simulator::simulator(asio::any_io_executor executor, std::shared_ptr<kube::client> api, simulator_options options, clock& clk,
                     logger& log) {
  asio::any_io_executor strand = asio::make_strand(executor);
  state_ = std::make_shared<state>(strand, std::move(api), std::move(options), clk, log);
  add_controllers(*state_);
  if (state_->env.options.flux) sim::add_flux(*state_);
}

simulator::~simulator() = default;

namespace {

asio::awaitable<void> run_loop(std::shared_ptr<simulator::state> s, std::shared_ptr<std::optional<error>> out) {
  while (true) {
    auto made = co_await make_nodes(s->env);
    if (made) break;
    s->env.log.debug("nodes not made yet", {{"error", made.error()}});
    auto slept = co_await sleep_for(std::chrono::milliseconds(50));
    if (!slept) {
      *out = slept.error();
      co_return;
    }
  }
  if (s->env.options.flux) {
    auto installed = co_await sim::install_flux(s->env);
    if (!installed) s->env.log.warn("Flux is not installed", {{"error", installed.error()}});
  }
  s->started = true;
  s->changed.notify();
  auto r = co_await s->loop.run();
  if (!r) *out = r.error();
  co_await uncancelled(s->loop.finish());
}

asio::awaitable<void> await_end(background& work) {
  auto ended = co_await work.join();
  (void)ended;
}

}  // namespace

task<void> simulator::run() {
  auto s = state_;
  auto out = std::make_shared<std::optional<error>>();
  auto work = background::start(s->env.strand, run_loop(s, out));
  auto joined = co_await work.join();
  if (!joined) {
    work.stop();
    co_await uncancelled(await_end(work));
    co_return joined.error();
  }
  if (*out) co_return **out;
  co_return result<void>();
}

task<void> simulator::wait_started() {
  while (true) {
    auto ticket = state_->changed.ticket();
    if (state_->started) co_return result<void>();
    KUBEOPERA_CO_CHECK(co_await state_->changed.wait(ticket));
  }
}

void simulator::fail(std::string image, fault_kind kind) { state_->faults.set(std::move(image), kind); }
void simulator::heal(const std::string& image) { state_->faults.clear(image); }

namespace {

task<std::unique_ptr<http::body_source>> open_log(std::shared_ptr<simulator::state> s, std::string ns, std::string pod,
                                                  api_log_request request) {
  co_return s->logs.open(ns, pod, request);
}

}  // namespace

api_log_source simulator::log_source() {
  auto s = state_;
  return [s](std::string ns, std::string pod, api_log_request request) {
    return open_log(s, std::move(ns), std::move(pod), std::move(request));
  };
}

void simulator::print(const std::string& ns, const std::string& pod, const std::string& line) {
  state_->logs.print(ns, pod, {}, line);
}

std::vector<backend> simulator::backends(const std::string& ns, const std::string& service) const {
  std::shared_ptr<const state::snapshot> seen;
  {
    std::lock_guard lock(state_->mutex);
    seen = state_->seen;
  }
  std::vector<backend> out;
  const json::object* selector = nullptr;
  for (const auto& s : seen->services) {
    if (kube::namespace_of(*s) == ns && kube::name_of(*s) == service) selector = json::get_object(*s, {"spec", "selector"});
  }
  if (!selector || selector->empty()) return out;
  for (const auto& p : seen->pods) {
    if (kube::namespace_of(*p) != ns || !sim::selects_map(*selector, sim::labels_of(*p))) continue;
    if (!sim::pod_active(*p) || !sim::pod_ready(*p)) continue;
    backend b;
    b.ns = ns;
    b.pod = std::string(kube::name_of(*p));
    const auto* containers = json::get_array(*p, {"spec", "containers"});
    if (containers && !containers->empty()) {
      b.container = std::string(json::get_string(containers->front().as_object(), {"name"}));
      b.image = std::string(json::get_string(containers->front().as_object(), {"image"}));
    }
    b.ip = std::string(json::get_string(*p, {"status", "podIP"}));
    for (std::string_view label : {"app.kubernetes.io/name", "app"}) {
      if (b.app.empty()) b.app = std::string(kube::label_of(*p, label));
    }
    b.version = std::string(kube::label_of(*p, "app.kubernetes.io/version"));
    auto tail = b.image.substr(b.image.rfind('/') == std::string::npos ? 0 : b.image.rfind('/') + 1);
    if (b.version.empty()) b.version = tail.find(':') == std::string::npos ? "latest" : tail.substr(tail.find(':') + 1);
    out.push_back(std::move(b));
  }
  return out;
}

std::vector<std::shared_ptr<const json::object>> simulator::ingresses() const {
  std::lock_guard lock(state_->mutex);
  return state_->seen->ingresses;
}

}  // namespace kubeopera::inline v1::testing
