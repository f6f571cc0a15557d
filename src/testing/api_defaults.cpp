// Defaults that depend on other fields; the constant ones are in the schema texts.
#include "src/testing/api_crd.hpp"
#include "src/testing/api_strategy.hpp"
#include "src/testing/api_types.hpp"

#include <kubeopera/crypto/hash.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

json::object* inner(json::object& o, std::string_view key) {
  auto* v = o.if_contains(key);
  return v ? v->if_object() : nullptr;
}

void set_missing(json::object& o, std::string_view key, json::value v) {
  auto* at = o.if_contains(key);
  if (!at || at->is_null()) o[key] = std::move(v);
}

void default_container(json::object& c) {
  if (json::get_string(c, {"imagePullPolicy"}).empty()) {
    auto image = json::get_string(c, {"image"});
    auto slash = image.rfind('/');
    auto colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
    bool digest = image.find('@') != std::string_view::npos;
    bool latest = !digest && (colon == std::string_view::npos || image.substr(colon + 1) == "latest");
    c["imagePullPolicy"] = latest ? "Always" : "IfNotPresent";
  }
  if (auto* r = inner(c, "resources")) {
    if (const auto* limits = json::get_object(*r, {"limits"})) {
      json::object copy = *limits;
      auto& requests = json::ensure_object(*r, "requests");
      for (const auto& kv : copy) set_missing(requests, kv.key(), kv.value());
    }
  }
}

void default_volume(json::object& v) {
  if (v.size() == 1) v["emptyDir"] = json::object();
}

void default_service(json::object& o) {
  auto& spec = json::ensure_object(o, "spec");
  auto type = std::string(json::get_string(spec, {"type"}));
  if (auto* ports = spec.if_contains("ports"); ports && ports->is_array()) {
    for (auto& p : ports->get_array()) {
      auto* port = p.if_object();
      auto* target = port ? port->if_contains("targetPort") : nullptr;
      if (port && (!target || is_zero(*target))) (*port)["targetPort"] = json::get_int(*port, {"port"});
    }
  }
  if (json::get_string(spec, {"sessionAffinity"}) == "ClientIP" && !inner(spec, "sessionAffinityConfig")) {
    json::object c;
    json::ensure_object(c, "clientIP")["timeoutSeconds"] = 10800;
    spec["sessionAffinityConfig"] = std::move(c);
  }
  if (type == "NodePort" || type == "LoadBalancer") {
    if (json::get_string(spec, {"externalTrafficPolicy"}).empty()) spec["externalTrafficPolicy"] = "Cluster";
  }
  if (type == "LoadBalancer") set_missing(spec, "allocateLoadBalancerNodePorts", true);
  if (type != "ExternalName") set_missing(spec, "internalTrafficPolicy", "Cluster");
}

void default_secret(json::object& o) {
  if (auto* plain = inner(o, "stringData")) {
    json::object copy = *plain;
    auto& data = json::ensure_object(o, "data");
    for (const auto& kv : copy) data[kv.key()] = crypto::base64_encode(json::as_view(kv.value()));
    o.erase("stringData");
  }
  if (json::get_string(o, {"type"}).empty()) o["type"] = "Opaque";
}

void default_job_spec(json::object& spec) {
  bool completions = spec.if_contains("completions"), parallelism = spec.if_contains("parallelism");
  if (!completions && !parallelism) spec["completions"] = 1;
  if (!parallelism) spec["parallelism"] = 1;
  if (!spec.if_contains("podReplacementPolicy")) {
    spec["podReplacementPolicy"] = spec.if_contains("podFailurePolicy") ? "Failed" : "TerminatingOrFailed";
  }
}

void default_hpa(json::object& o) {
  auto& spec = json::ensure_object(o, "spec");
  if (const auto* m = json::get_array(spec, {"metrics"}); !m || m->empty()) {
    json::object target;
    target["type"] = "Utilization";
    target["averageUtilization"] = 80;
    json::object metric;
    metric["type"] = "Resource";
    auto& resource = json::ensure_object(metric, "resource");
    resource["name"] = "cpu";
    resource["target"] = std::move(target);
    json::ensure_array(spec, "metrics").push_back(std::move(metric));
  }
}

void default_network_policy(json::object& o) {
  auto& spec = json::ensure_object(o, "spec");
  if (const auto* t = json::get_array(spec, {"policyTypes"}); t && !t->empty()) return;
  auto& types = json::ensure_array(spec, "policyTypes");
  types.emplace_back("Ingress");
  if (const auto* e = json::get_array(spec, {"egress"}); e && !e->empty()) types.emplace_back("Egress");
}

void default_subjects(json::object& o) {
  auto* list = o.if_contains("subjects");
  for (std::size_t i = 0; list && list->is_array() && i < list->get_array().size(); ++i) {
    auto* s = list->get_array()[i].if_object();
    if (!s) continue;
    auto kind = json::get_string(*s, {"kind"});
    if (kind != "ServiceAccount" && json::get_string(*s, {"apiGroup"}).empty()) (*s)["apiGroup"] = "rbac.authorization.k8s.io";
  }
  auto& ref = json::ensure_object(o, "roleRef");
  if (json::get_string(ref, {"apiGroup"}).empty()) ref["apiGroup"] = "rbac.authorization.k8s.io";
}

void default_rollout(const kind_info& kind, json::object& spec) {
  const char* word = kind.plural == "deployments" ? "strategy" : "updateStrategy";
  auto* s = inner(spec, word);
  if (!s || json::get_string(*s, {"type"}) != "RollingUpdate") return;
  json::ensure_object(*s, "rollingUpdate");
  fill_defaults(*kind.t->find("spec")->t->find(word)->t, *s);
}

void default_endpoint_slice(json::object& o) {
  auto* ports = o.if_contains("ports");
  if (!ports || !ports->is_array()) return;
  for (auto& p : ports->get_array()) {
    auto* x = p.if_object();
    if (!x) continue;
    set_missing(*x, "name", "");
    set_missing(*x, "protocol", "TCP");
  }
}

}  // namespace

void default_pod_spec(json::object& spec) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    auto* v = spec.if_contains(list);
    if (!v || !v->is_array()) continue;
    for (auto& c : v->get_array()) {
      if (auto* o = c.if_object()) default_container(*o);
    }
  }
  if (auto* v = spec.if_contains("volumes"); v && v->is_array()) {
    for (auto& x : v->get_array()) {
      if (auto* o = x.if_object()) default_volume(*o);
    }
  }
  auto account = std::string(json::get_string(spec, {"serviceAccountName"}));
  if (account.empty()) account = json::get_string(spec, {"serviceAccount"});
  if (!account.empty()) {
    spec["serviceAccountName"] = account;
    spec["serviceAccount"] = account;
  }
}

json::object* pod_spec_of(const kind_info& kind, json::object& o) {
  return const_cast<json::object*>(pod_spec_of(kind, static_cast<const json::object&>(o)));
}

const json::object* pod_spec_of(const kind_info& kind, const json::object& o) {
  if (kind.custom) return nullptr;
  if (kind.is("", "pods")) return json::get_object(o, {"spec"});
  if (kind.is("", "podtemplates")) return json::get_object(o, {"template", "spec"});
  if (kind.is("batch", "cronjobs")) return json::get_object(o, {"spec", "jobTemplate", "spec", "template", "spec"});
  bool workload = kind.group == "apps" || kind.is("batch", "jobs") || kind.is("", "replicationcontrollers");
  return workload ? json::get_object(o, {"spec", "template", "spec"}) : nullptr;
}

void default_object(const kind_info& kind, json::object& o) {
  fill_defaults(*kind.t, o);
  if (kind.custom) return;
  if (auto* spec = pod_spec_of(kind, o)) {
    default_pod_spec(*spec);
    if (kind.is("", "pods")) set_missing(*spec, "enableServiceLinks", true);
  }
  const std::string& p = kind.plural;
  if (kind.group == "apps" && (p == "deployments" || p == "daemonsets" || p == "statefulsets"))
    default_rollout(kind, json::ensure_object(o, "spec"));
  if (p == "services") default_service(o);
  if (p == "secrets") default_secret(o);
  if (p == "jobs") default_job_spec(json::ensure_object(o, "spec"));
  if (p == "horizontalpodautoscalers") default_hpa(o);
  if (p == "networkpolicies") default_network_policy(o);
  if (p == "rolebindings" || p == "clusterrolebindings") default_subjects(o);
  if (p == "customresourcedefinitions") complete_crd(o);
  if (p == "namespaces") {
    auto& meta = json::ensure_object(o, "metadata");
    std::string name(json::get_string(meta, {"name"}));
    if (!name.empty()) json::ensure_object(meta, "labels")["kubernetes.io/metadata.name"] = name;
  }
  if (p == "endpointslices") default_endpoint_slice(o);
}

std::string qos_class(const json::object& pod_spec) {
  bool any = false, guaranteed = true;
  for (const char* list : {"initContainers", "containers"}) {
    const auto* all = json::get_array(pod_spec, {list});
    for (std::size_t i = 0; all && i < all->size(); ++i) {
      const auto* c = (*all)[i].if_object();
      if (!c) continue;
      for (const char* r : {"cpu", "memory"}) {
        auto request = json::get_string(*c, {"resources", "requests", r}),
             limit = json::get_string(*c, {"resources", "limits", r});
        if (!request.empty() || !limit.empty()) any = true;
        if (limit.empty() || (!request.empty() && request != limit)) guaranteed = false;
      }
    }
  }
  return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

}  // namespace kubeopera::inline v1::testing::api
