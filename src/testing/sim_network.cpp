// Endpoints and EndpointSlices of Services, and the status of Ingresses.
#include "src/testing/sim_network.hpp"

#include "src/testing/sim_meta.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

const resource_type& endpoint_slices() {
  static const resource_type type{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true};
  return type;
}

std::int64_t target_port(const object& service_port, const object& pod) {
  const auto* target = service_port.if_contains("targetPort");
  if (!target) return json::get_int(service_port, {"port"});
  if (!target->is_string()) return json::get_int(service_port, {"targetPort"});
  if (const auto* containers = json::get_array(pod, {"spec", "containers"})) {
    for (const auto& c : *containers) {
      const auto* ports = json::get_array(c.as_object(), {"ports"});
      if (!ports) continue;
      for (const auto& p : *ports) {
        if (json::get_string(p.as_object(), {"name"}) == json::as_view(*target))
          return json::get_int(p.as_object(), {"containerPort"});
      }
    }
  }
  return 0;
}

namespace {

object target_ref(const object& pod) {
  object ref;
  ref["kind"] = "Pod";
  ref["namespace"] = kube::namespace_of(pod);
  ref["name"] = kube::name_of(pod);
  ref["uid"] = kube::uid_of(pod);
  return ref;
}

class endpoints_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "endpoints"; }
  std::vector<resource_type> watches() const override {
    return {kube::types::services(), kube::types::pods(), kube::types::endpoints(), endpoint_slices()};
  }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    if (type == kube::types::services()) return enqueue(kube::key_of(after ? *after : *before));
    if (type != kube::types::pods()) return;
    const auto& pod = after ? *after : *before;
    for (const auto& s : env.objects.list(kube::types::services(), std::string(kube::namespace_of(pod)))) {
      const auto* selector = json::get_object(*s, {"spec", "selector"});
      if (selector && !selector->empty() && selects_map(*selector, labels_of(pod))) enqueue(kube::key_of(*s));
    }
  }

  task<void> reconcile(const object_key& key) override {
    auto service = env.objects.get(kube::types::services(), key);
    if (!service) {
      auto left = env.objects.get(kube::types::endpoints(), key);
      if (left && kube::label_of(*left, "endpoints.kubernetes.io/managed-by") == "endpoint-controller") {
        co_return co_await env.remove(kube::types::endpoints(), *left);
      }
      co_return result<void>();
    }
    const auto* selector = json::get_object(*service, {"spec", "selector"});
    if (!selector || selector->empty() || kube::being_deleted(*service)) co_return result<void>();
    std::vector<shared_object> pods;
    for (const auto& p : env.objects.list(kube::types::pods(), key.ns)) {
      if (!selects_map(*selector, labels_of(*p)) || pod_finished(*p)) continue;
      if (!json::get_string(*p, {"status", "podIP"}).empty()) pods.push_back(p);
    }
    KUBEOPERA_CO_CHECK(co_await write_endpoints(*service, pods));
    co_return co_await write_slice(*service, pods);
  }

 private:
  static array ports_of(const object& service, const std::vector<shared_object>& pods) {
    array out;
    const auto* ports = json::get_array(service, {"spec", "ports"});
    if (!ports) return out;
    for (const auto& p : *ports) {
      object one;
      auto name = json::get_string(p.as_object(), {"name"});
      if (!name.empty()) one["name"] = name;
      one["port"] = pods.empty() ? json::get_int(p.as_object(), {"port"}) : target_port(p.as_object(), *pods.front());
      one["protocol"] = json::get_string(p.as_object(), {"protocol"}, "TCP");
      out.push_back(std::move(one));
    }
    return out;
  }

  task<void> write_endpoints(const object& service, const std::vector<shared_object>& pods) {
    const auto& type = kube::types::endpoints();
    auto key = kube::key_of(service);
    array ready, waiting, subsets;
    for (const auto& p : pods) {
      if (kube::being_deleted(*p)) continue;
      object address;
      address["ip"] = json::get_string(*p, {"status", "podIP"});
      address["nodeName"] = json::get_string(*p, {"spec", "nodeName"});
      address["targetRef"] = target_ref(*p);
      (pod_ready(*p) ? ready : waiting).push_back(std::move(address));
    }
    if (!ready.empty() || !waiting.empty()) {
      object subset;
      if (!ready.empty()) subset["addresses"] = std::move(ready);
      if (!waiting.empty()) subset["notReadyAddresses"] = std::move(waiting);
      subset["ports"] = ports_of(service, pods);
      subsets.push_back(std::move(subset));
    }
    auto known = env.objects.get(type, key);
    auto e = known ? *known : kube::make_object(type, key);
    const auto* before = json::find(e, {"subsets"});
    auto text = json::write_canonical(json::value(subsets));
    if (known && (before ? json::write_canonical(*before) : std::string("[]")) == text) co_return result<void>();
    if (subsets.empty())
      e.erase("subsets");
    else
      e["subsets"] = std::move(subsets);
    auto& labels = json::ensure_object(json::ensure_object(e, "metadata"), "labels");
    labels["endpoints.kubernetes.io/managed-by"] = "endpoint-controller";
    auto r = known ? co_await env.replace(type, e) : co_await env.create(type, e);
    if (!r) co_return ignorable(r.error());
    co_return result<void>();
  }

  static result<void> ignorable(const error& e) {
    // A namespace that ends takes no new endpoints; the Service goes soon.
    if (e.code() == errc::permission_denied || e.code() == errc::not_found) return {};
    return e;
  }

  task<void> write_slice(const object& service, const std::vector<shared_object>& pods) {
    const auto& type = endpoint_slices();
    auto key = kube::key_of(service);
    array endpoints;
    for (const auto& p : pods) {
      object e, conditions;
      array addresses;
      addresses.emplace_back(json::get_string(*p, {"status", "podIP"}));
      bool ending = kube::being_deleted(*p), ready = pod_ready(*p);
      conditions["ready"] = ready && !ending;
      conditions["serving"] = ready;
      conditions["terminating"] = ending;
      e["addresses"] = std::move(addresses);
      e["conditions"] = std::move(conditions);
      e["targetRef"] = target_ref(*p);
      e["nodeName"] = json::get_string(*p, {"spec", "nodeName"});
      endpoints.push_back(std::move(e));
    }
    shared_object known;
    for (const auto& s : env.objects.list(type, key.ns)) {
      if (kube::label_of(*s, "kubernetes.io/service-name") == key.name) known = s;
    }
    object slice;
    if (known) {
      slice = *known;
    } else {
      slice["apiVersion"] = type.api_version();
      slice["kind"] = type.kind;
      auto& metadata = json::ensure_object(slice, "metadata");
      metadata["generateName"] = key.name + "-";
      metadata["namespace"] = key.ns;
      auto& labels = json::ensure_object(metadata, "labels");
      labels["kubernetes.io/service-name"] = key.name;
      labels["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io";
      json::ensure_array(metadata, "ownerReferences").push_back(make_owner_ref(kube::types::services(), service, true, true));
    }
    auto before = json::write_canonical(json::value(slice));
    slice["addressType"] = "IPv4";
    slice["endpoints"] = std::move(endpoints);
    slice["ports"] = ports_of(service, pods);
    if (known && json::write_canonical(json::value(slice)) == before) co_return result<void>();
    auto r = known ? co_await env.replace(type, slice) : co_await env.create(type, slice);
    if (!r) co_return ignorable(r.error());
    co_return result<void>();
  }
};

class ingress_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "ingress"; }
  std::vector<resource_type> watches() const override { return {kube::types::ingresses()}; }
  void on_change(const resource_type& type, const shared_object&, const shared_object& after) override {
    if (type == kube::types::ingresses() && after) enqueue(kube::key_of(*after));
  }
  task<void> reconcile(const object_key& key) override {
    auto ingress = env.objects.get(kube::types::ingresses(), key);
    if (!ingress || kube::being_deleted(*ingress)) co_return result<void>();
    const auto* have = json::get_array(*ingress, {"status", "loadBalancer", "ingress"});
    if (have && !have->empty()) co_return result<void>();
    auto copy = *ingress;
    object address;
    address["ip"] = "127.0.0.1";
    array all;
    all.push_back(std::move(address));
    json::ensure_object(json::ensure_object(copy, "status"), "loadBalancer")["ingress"] = std::move(all);
    auto r = co_await env.replace_status(kube::types::ingresses(), copy, "front-door");
    if (!r && r.error().code() != errc::not_found) co_return r.error();
    co_return result<void>();
  }
};

}  // namespace

std::unique_ptr<controller> make_endpoints_controller(environment& env) { return std::make_unique<endpoints_controller>(env); }
std::unique_ptr<controller> make_ingress_controller(environment& env) { return std::make_unique<ingress_controller>(env); }

}  // namespace kubeopera::inline v1::testing::sim
