// KubeOperaTenant to vCluster: namespace, quota, Service, cluster, Secret, status; and the way back.
#include "src/testing/world_tenant.hpp"

#include "src/testing/sim_meta.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <filesystem>

namespace kubeopera::inline v1::testing {

using namespace std::chrono_literals;

void vcluster_table::put(std::shared_ptr<cluster> c, std::string tenant_namespace) {
  std::lock_guard lock(mutex_);
  auto name = c->options.name;
  clusters_[name] = {std::move(c), std::move(tenant_namespace)};
}

std::shared_ptr<cluster> vcluster_table::take(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto it = clusters_.find(name);
  if (it == clusters_.end()) return nullptr;
  auto c = std::move(it->second.first);
  clusters_.erase(it);
  return c;
}

std::shared_ptr<cluster> vcluster_table::find(const std::string& name) const {
  std::lock_guard lock(mutex_);
  auto it = clusters_.find(name);
  return it == clusters_.end() ? nullptr : it->second.first;
}

std::vector<std::pair<std::shared_ptr<cluster>, std::string>> vcluster_table::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::shared_ptr<cluster>, std::string>> out;
  for (const auto& [name, both] : clusters_) out.push_back(both);
  return out;
}

namespace {

using kube::object_key;
using sim::object;

const std::string manager = "vcluster-operator";
constexpr std::string_view owner_annotation = "sim.kubeopera.io/tenant";

class tenant_controller final : public sim::worker_controller {
 public:
  tenant_controller(sim::environment& e, tenant_settings s, vcluster_table& t)
      : worker_controller(e), settings_(std::move(s)), table_(t) {}
  std::string_view name() const override { return "vcluster-operator"; }
  std::vector<kube::resource_type> watches() const override {
    return {kube::types::kubeopera_tenants(), kube::types::secrets(), kube::types::namespaces()};
  }

  void on_change(const kube::resource_type& type, const sim::shared_object& before, const sim::shared_object& after) override {
    const auto& o = after ? *after : *before;
    if (type == kube::types::kubeopera_tenants()) {
      bool woken = after && (!before || kube::generation_of(*before) != kube::generation_of(*after) ||
                             kube::being_deleted(*after) != kube::being_deleted(*before) ||
                             !sim::has_finalizer(*after, vcluster_finalizer));
      if (woken) enqueue(kube::key_of(o));
    } else if (!after) {
      // A Secret or namespace of ours that someone removed comes back; a namespace that is gone lets its tenant go.
      for (const auto& t : env.objects.list(kube::types::kubeopera_tenants())) {
        auto name = "vc-" + std::string(kube::name_of(*t));
        if (kube::name_of(o) == name) enqueue(kube::key_of(*t));
      }
    }
  }

 protected:
  task<std::optional<duration>> pass(object_key key) override;

 private:
  using next = std::optional<duration>;
  task<next> tear_down(object_key key, object tenant);
  task<bool> ensure_namespace(const object& tenant, const std::string& ns);
  task<void> ensure(kube::resource_type type, object wanted);
  task<std::shared_ptr<cluster>> ensure_cluster(const object& tenant, const std::string& ns);
  object quota_of(const object& tenant, const std::string& ns) const;
  object service_of(const object& tenant, const std::string& ns) const;
  object secret_of(const cluster& c, const std::string& ns) const;
  task<void> write_status(const object& tenant, std::string phase, bool ready, std::string reason, std::string message,
                          const std::string& ns);

  tenant_settings settings_;
  vcluster_table& table_;
};

task<void> tenant_controller::ensure(kube::resource_type type, object wanted) {
  kube::write_options w;
  w.field_manager = manager;
  w.force = true;
  auto r = co_await env.api->apply(type, wanted, w);
  if (!r) co_return r.error();
  env.objects.observe(type, *r);
  co_return result<void>();
}

// False when the name is someone else's.
task<bool> tenant_controller::ensure_namespace(const object& tenant, const std::string& ns) {
  object_key key;
  key.name = ns;
  auto owner = kube::key_of(tenant).str();
  auto now = env.objects.get(kube::types::namespaces(), key);
  if (now && kube::being_deleted(*now))
    co_return error(errc::failed_precondition, "NamespaceTerminating", ns + " is being deleted");
  if (now && kube::annotation_of(*now, owner_annotation) != owner) co_return false;
  auto wanted = kube::make_object(kube::types::namespaces(), key);
  auto& labels = json::ensure_object(json::ensure_object(wanted, "metadata"), "labels");
  labels["app.kubernetes.io/managed-by"] = "kubeopera";
  labels["vcluster-name"] = kube::name_of(tenant);
  sim::set_annotation(wanted, owner_annotation, owner);
  KUBEOPERA_CO_CHECK(co_await ensure(kube::types::namespaces(), std::move(wanted)));
  co_return true;
}

object tenant_controller::quota_of(const object& tenant, const std::string& ns) const {
  object_key key;
  key.ns = ns;
  key.name = "vcluster";
  auto quota = kube::make_object(kube::types::resource_quotas(), key);
  auto& hard = json::ensure_object(json::ensure_object(quota, "spec"), "hard");
  auto cpu = json::get_string(tenant, {"spec", "quota", "cpu"});
  auto memory = json::get_string(tenant, {"spec", "quota", "memory"});
  auto pods = json::get_int(tenant, {"spec", "quota", "pods"});
  if (!cpu.empty()) hard["requests.cpu"] = cpu;
  if (!memory.empty()) hard["requests.memory"] = memory;
  if (pods > 0) hard["pods"] = std::to_string(pods);
  return quota;
}

object tenant_controller::service_of(const object& tenant, const std::string& ns) const {
  object_key key;
  key.ns = ns;
  key.name = std::string(kube::name_of(tenant));
  auto service = kube::make_object(kube::types::services(), key);
  object port;
  port["name"] = "https";
  port["port"] = 443;
  port["protocol"] = "TCP";
  port["targetPort"] = 8443;
  json::ensure_array(json::ensure_object(service, "spec"), "ports").push_back(std::move(port));
  auto& labels = json::ensure_object(json::ensure_object(service, "metadata"), "labels");
  labels["app"] = "vcluster";
  labels["vcluster-name"] = kube::name_of(tenant);
  return service;
}

object tenant_controller::secret_of(const cluster& c, const std::string& ns) const {
  object_key key;
  key.ns = ns;
  key.name = "vc-" + c.options.name;
  auto secret = kube::make_object(kube::types::secrets(), key);
  auto& labels = json::ensure_object(json::ensure_object(secret, "metadata"), "labels");
  labels["app"] = "vcluster";
  labels["vcluster-name"] = c.options.name;
  secret["type"] = "Opaque";
  auto& data = json::ensure_object(secret, "data");
  data["config"] = crypto::base64_encode(c.inner_kubeconfig());
  data["certificate-authority"] = crypto::base64_encode(c.ca.certificate);
  data["client-certificate"] = crypto::base64_encode(c.admin.certificate);
  data["client-key"] = crypto::base64_encode(c.admin.private_key);
  return secret;
}

task<std::shared_ptr<cluster>> tenant_controller::ensure_cluster(const object& tenant, const std::string& ns) {
  auto name = std::string(kube::name_of(tenant));
  if (auto running = table_.find(name)) co_return running;
  cluster_options o;
  o.name = name;
  o.directory = settings_.directory + "/" + name;
  o.address = settings_.address;
  o.svc_host = name + "." + ns + ".svc";
  o.persist = settings_.persist;
  o.simulation = settings_.simulation;
  for (auto& node : o.simulation.nodes) {
    auto cpu = json::get_string(tenant, {"spec", "quota", "cpu"}), memory = json::get_string(tenant, {"spec", "quota", "memory"});
    if (!cpu.empty()) node.cpu = std::string(cpu);
    if (!memory.empty()) node.memory = std::string(memory);
    if (auto pods = json::get_int(tenant, {"spec", "quota", "pods"}); pods > 0) node.pods = static_cast<int>(pods);
  }
  KUBEOPERA_CO_TRY(auto made, cluster::open(settings_.executor, std::move(o), env.time, env.log));
  made->start();
  table_.put(made, std::string(kube::namespace_of(tenant)));
  co_return made;
}

task<void> tenant_controller::write_status(const object& tenant, std::string phase, bool ready, std::string reason,
                                           std::string message, const std::string& ns) {
  object status;
  status["observedGeneration"] = kube::generation_of(tenant);
  status["phase"] = std::move(phase);
  if (!ns.empty()) status["host_namespace"] = ns;
  if (!ns.empty()) status["kubeconfig_secret"] = ns;
  object c;
  const auto* old = kube::find_condition(tenant, "Ready");
  std::string word = ready ? "True" : "False";
  bool same = old && json::get_string(*old, {"status"}) == word;
  c["type"] = "Ready";
  c["status"] = word;
  c["reason"] = std::move(reason);
  c["message"] = std::move(message);
  c["lastTransitionTime"] = same ? std::string(json::get_string(*old, {"lastTransitionTime"})) : env.now();
  c["observedGeneration"] = kube::generation_of(tenant);
  json::array conditions;
  if (const auto* others = json::get_array(tenant, {"status", "conditions"})) conditions = *others;
  sim::erase_condition(conditions, "Ready");
  conditions.push_back(std::move(c));
  status["conditions"] = std::move(conditions);
  const auto* before = json::get_object(tenant, {"status"});
  if (before) {
    bool equal = true;
    for (const auto& member : status) {
      const auto* was = before->if_contains(member.key());
      equal = equal && was && json::write_canonical(*was) == json::write_canonical(member.value());
    }
    if (equal) co_return result<void>();
  }
  object body;
  body["status"] = std::move(status);
  auto r =
      co_await env.merge(kube::types::kubeopera_tenants(), kube::key_of(tenant), json::value(std::move(body)), manager, "status");
  if (!r && r.error().code() != errc::not_found) co_return r.error();
  co_return result<void>();
}

task<tenant_controller::next> tenant_controller::tear_down(object_key key, object tenant) {
  if (!sim::has_finalizer(tenant, vcluster_finalizer)) co_return next();
  object_key ns;
  ns.name = "vc-" + key.name;
  auto there = env.objects.get(kube::types::namespaces(), ns);
  bool ours = there && kube::annotation_of(*there, owner_annotation) == key.str();
  if (ours || !there) {
    if (auto running = table_.take(key.name)) {
      co_await running->stop();
      running.reset();
    }
    std::error_code ignored;
    std::filesystem::remove_all(settings_.directory + "/" + key.name, ignored);
  }
  if (ours) {
    if (!kube::being_deleted(*there)) {
      auto copy = *there;
      KUBEOPERA_CO_CHECK(co_await env.remove(kube::types::namespaces(), copy));
    }
    // The namespace's end wakes us again.
    if (env.objects.get(kube::types::namespaces(), ns)) co_return next(1s);
  }
  sim::flux_status s(env, kube::types::kubeopera_tenants(), tenant, manager);
  sim::remove_finalizer(tenant, vcluster_finalizer);
  json::array rest;
  if (const auto* left = json::get_array(tenant, {"metadata", "finalizers"})) rest = *left;
  KUBEOPERA_CO_CHECK(co_await s.set_finalizers(rest));
  co_return next();
}

task<tenant_controller::next> tenant_controller::pass(object_key key) {
  auto stored = env.objects.get(kube::types::kubeopera_tenants(), key);
  if (!stored) co_return next();
  if (kube::being_deleted(*stored)) {
    auto copy = *stored;
    co_return co_await tear_down(key, std::move(copy));
  }
  if (!sim::has_finalizer(*stored, vcluster_finalizer)) {
    sim::flux_status s(env, kube::types::kubeopera_tenants(), *stored, manager);
    auto copy = *stored;
    sim::add_finalizer(copy, vcluster_finalizer);
    KUBEOPERA_CO_CHECK(co_await s.set_finalizers(*json::get_array(copy, {"metadata", "finalizers"})));
    stored = env.objects.get(kube::types::kubeopera_tenants(), key);
    if (!stored) co_return next();
  }
  auto tenant = *stored;
  auto ns = "vc-" + key.name;
  if (!kube::is_dns_label(ns)) {
    KUBEOPERA_CO_CHECK(co_await write_status(tenant, "Failed", false, "InvalidName", "the name is too long for a namespace", {}));
    co_return next();
  }
  if (!table_.find(key.name)) {
    KUBEOPERA_CO_CHECK(co_await write_status(tenant, "Provisioning", false, "Provisioning", "the vCluster is being made", ns));
  }
  auto mine = co_await ensure_namespace(tenant, ns);
  if (!mine) co_return mine.error();
  if (!*mine) {
    KUBEOPERA_CO_CHECK(co_await write_status(tenant, "Failed", false, "NamespaceTaken",
                                             "the namespace " + ns + " belongs to something else", {}));
    co_return next(30s);
  }
  KUBEOPERA_CO_CHECK(co_await ensure(kube::types::resource_quotas(), quota_of(tenant, ns)));
  KUBEOPERA_CO_CHECK(co_await ensure(kube::types::services(), service_of(tenant, ns)));
  KUBEOPERA_CO_TRY(auto running, co_await ensure_cluster(tenant, ns));
  KUBEOPERA_CO_CHECK(co_await running->wait_started());
  KUBEOPERA_CO_CHECK(co_await ensure(kube::types::secrets(), secret_of(*running, ns)));
  if (auto fresh = env.objects.get(kube::types::kubeopera_tenants(), key)) tenant = *fresh;
  KUBEOPERA_CO_CHECK(co_await write_status(tenant, "Ready", true, "Running", "the vCluster is running", ns));
  co_return next();
}

}  // namespace

std::unique_ptr<sim::controller> make_tenant_controller(sim::environment& env, tenant_settings settings, vcluster_table& table) {
  return std::make_unique<tenant_controller>(env, std::move(settings), table);
}

}  // namespace kubeopera::inline v1::testing
