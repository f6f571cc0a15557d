// Admission: what the server adds to pods and services, and Pod Security.
#include "src/testing/api_pod_security.hpp"
#include "src/testing/api_state.hpp"
#include "src/testing/api_strategy.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

json::object toleration(const char* key) {
  json::object t;
  t["key"] = key;
  t["operator"] = "Exists";
  t["effect"] = "NoExecute";
  t["tolerationSeconds"] = 300;
  return t;
}

void add_tolerations(json::object& spec) {
  auto& all = json::ensure_array(spec, "tolerations");
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    bool there = std::any_of(all.begin(), all.end(), [&](const json::value& v) {
      const auto* o = v.if_object();
      return o && (json::get_string(*o, {"key"}) == key ||
                   (json::get_string(*o, {"key"}).empty() && json::get_string(*o, {"operator"}) == "Exists"));
    });
    if (!there) all.push_back(toleration(key));
  }
}

json::object access_volume(const std::string& name) {
  json::object token, ca_item, ca, ns_item, ns;
  json::ensure_object(token, "serviceAccountToken")["expirationSeconds"] = 3607;
  json::ensure_object(token, "serviceAccountToken")["path"] = "token";
  ca_item["key"] = "ca.crt";
  ca_item["path"] = "ca.crt";
  auto& map = json::ensure_object(ca, "configMap");
  map["name"] = "kube-root-ca.crt";
  json::ensure_array(map, "items").push_back(std::move(ca_item));
  ns_item["path"] = "namespace";
  auto& ref = json::ensure_object(ns_item, "fieldRef");
  ref["apiVersion"] = "v1";
  ref["fieldPath"] = "metadata.namespace";
  json::ensure_array(json::ensure_object(ns, "downwardAPI"), "items").push_back(std::move(ns_item));
  json::object volume;
  volume["name"] = name;
  auto& projected = json::ensure_object(volume, "projected");
  auto& sources = json::ensure_array(projected, "sources");
  sources.push_back(std::move(token));
  sources.push_back(std::move(ca));
  sources.push_back(std::move(ns));
  projected["defaultMode"] = 420;
  return volume;
}

constexpr const char* token_path = "/var/run/secrets/kubernetes.io/serviceaccount";

bool mounts_token(const json::object& container) {
  const auto* mounts = json::get_array(container, {"volumeMounts"});
  return mounts && std::any_of(mounts->begin(), mounts->end(), [](const json::value& m) {
           return m.is_object() && json::get_string(m.get_object(), {"mountPath"}) == token_path;
         });
}

void mount_token(json::object& spec) {
  std::string name = "kube-api-access-" + random_suffix();
  bool used = false;
  for (const char* list : {"initContainers", "containers"}) {
    auto* all = spec.if_contains(list);
    for (std::size_t i = 0; all && all->is_array() && i < all->get_array().size(); ++i) {
      auto* c = all->get_array()[i].if_object();
      if (!c || mounts_token(*c)) continue;
      json::object mount;
      mount["name"] = name;
      mount["readOnly"] = true;
      mount["mountPath"] = token_path;
      json::ensure_array(*c, "volumeMounts").push_back(std::move(mount));
      used = true;
    }
  }
  if (used) json::ensure_array(spec, "volumes").push_back(access_volume(name));
}

std::optional<refusal> admit_account(server& s, const kind_info& kind, json::object& pod) {
  auto& spec = json::ensure_object(pod, "spec");
  std::string account(json::get_string(spec, {"serviceAccountName"}, "default"));
  std::string ns(json::get_string(pod, {"metadata", "namespace"})), name(json::get_string(pod, {"metadata", "name"}));
  spec["serviceAccountName"] = account;
  spec["serviceAccount"] = account;
  kind_ptr accounts = builtin_kind("", "serviceaccounts");
  record_ptr rec = s.store.get(*accounts, storage_name(ns, account));
  if (!rec) {
    if (!s.options.seed_namespaces) return std::nullopt;
    return forbidden(
        kind, name,
        "error looking up service account " + ns + "/" + account + ": serviceaccount " + go_quote(account) + " not found");
  }
  json::object owner = parse_record(*accounts, *rec);
  if (const auto* secrets = json::get_array(owner, {"imagePullSecrets"});
      secrets && !secrets->empty() && !spec.if_contains("imagePullSecrets")) {
    spec["imagePullSecrets"] = *secrets;
  }
  const auto *own = spec.if_contains("automountServiceAccountToken"), *theirs = owner.if_contains("automountServiceAccountToken");
  bool mount = own ? own->is_bool() && own->get_bool() : !theirs || (theirs->is_bool() && theirs->get_bool());
  if (mount) mount_token(spec);
  return std::nullopt;
}

std::optional<refusal> admit_priority(server& s, const kind_info& kind, json::object& pod) {
  auto& spec = json::ensure_object(pod, "spec");
  std::string name(json::get_string(spec, {"priorityClassName"}));
  std::int64_t value = 0;
  std::string preemption = "PreemptLowerPriority";
  if (name == "system-node-critical") value = 2000001000;
  if (name == "system-cluster-critical") value = 2000000000;
  if (!name.empty() && value == 0) {
    kind_ptr classes = builtin_kind("scheduling.k8s.io", "priorityclasses");
    record_ptr rec = s.store.get(*classes, name);
    if (!rec) {
      return forbidden(kind, json::get_string(pod, {"metadata", "name"}), "no PriorityClass with name " + name + " was found");
    }
    json::object o = parse_record(*classes, *rec);
    value = json::get_int(o, {"value"});
    preemption = json::get_string(o, {"preemptionPolicy"}, preemption);
  }
  spec["priority"] = value;
  if (!spec.if_contains("preemptionPolicy")) spec["preemptionPolicy"] = preemption;
  return std::nullopt;
}

void allocate_service(server& s, json::object& o) {
  auto& spec = json::ensure_object(o, "spec");
  std::string type(json::get_string(spec, {"type"}));
  if (type == "ExternalName") return;
  std::string ip(json::get_string(spec, {"clusterIP"}));
  if (ip.empty()) {
    std::uint32_t n = s.next_ip++;
    ip = "10.96." + std::to_string((n / 250) % 256) + "." + std::to_string(n % 250 + 1);
    spec["clusterIP"] = ip;
  }
  json::array one;
  one.emplace_back(ip);
  spec["clusterIPs"] = std::move(one);
  json::array family;
  family.emplace_back("IPv4");
  if (!spec.if_contains("ipFamilies")) spec["ipFamilies"] = std::move(family);
  if (!spec.if_contains("ipFamilyPolicy")) spec["ipFamilyPolicy"] = "SingleStack";
  if (type != "NodePort" && type != "LoadBalancer") return;
  auto* ports = spec.if_contains("ports");
  for (std::size_t i = 0; ports && ports->is_array() && i < ports->get_array().size(); ++i) {
    auto* p = ports->get_array()[i].if_object();
    if (p && json::get_int(*p, {"nodePort"}) == 0) (*p)["nodePort"] = 30000 + static_cast<std::int64_t>(s.next_port++ % 2768);
  }
}

// Enforced for pods; workloads are only warned about.
std::optional<refusal> check_security(server& s, request& r, const kind_info& kind, const json::object& o) {
  const json::object* spec = pod_spec_of(kind, o);
  if (!spec) return std::nullopt;
  std::string ns(json::get_string(o, {"metadata", "namespace"}));
  kind_ptr namespaces = builtin_kind("", "namespaces");
  record_ptr rec = s.store.get(*namespaces, ns);
  if (!rec) return std::nullopt;
  auto label = [&](std::string_view mode) {
    for (const auto& [k, v] : rec->labels) {
      if (k == "pod-security.kubernetes.io/" + std::string(mode)) return v;
    }
    return std::string();
  };
  auto judged = [&](const std::string& level) -> std::string {
    std::string found = pod_security_violations(level, o, *spec);
    return found.empty() ? found : "PodSecurity \"" + level + ":latest\": " + found;
  };
  bool pod = kind.is("", "pods");
  std::string enforced = pod ? label("enforce") : "";
  if (!enforced.empty()) {
    if (auto why = judged(enforced); !why.empty())
      return forbidden(kind, json::get_string(o, {"metadata", "name"}), "violates " + why);
  }
  if (auto level = label("warn"); !level.empty()) {
    if (auto why = judged(level); !why.empty()) r.warnings.push_back("would violate " + why);
  }
  return std::nullopt;
}

}  // namespace

std::optional<refusal> check_namespace(const server& s, const kind_info& kind, const std::string& ns, std::string_view name) {
  if (!kind.namespaced) return std::nullopt;
  kind_ptr namespaces = builtin_kind("", "namespaces");
  record_ptr rec = s.store.get(*namespaces, ns);
  if (!rec) return not_found(*namespaces, ns);
  if (rec->fields.empty() || rec->fields[0] != "Terminating") return std::nullopt;
  refusal no = forbidden(kind, name, "unable to create new content in namespace " + ns + " because it is being terminated");
  json::object cause;
  cause["reason"] = "NamespaceTerminating";
  cause["message"] = "namespace " + ns + " is being terminated";
  cause["field"] = "metadata.namespace";
  json::ensure_array(*no.details, "causes").push_back(std::move(cause));
  return no;
}

std::optional<refusal> admit_create(server& s, request& r, const kind_info& kind, json::object& o) {
  if (kind.custom) return std::nullopt;
  if (kind.is("", "pods")) {
    if (auto no = admit_account(s, kind, o)) return no;
    if (auto no = admit_priority(s, kind, o)) return no;
    add_tolerations(json::ensure_object(o, "spec"));
  }
  if (kind.is("", "services")) allocate_service(s, o);
  return check_security(s, r, kind, o);
}

std::optional<refusal> admit_update(server& s, request& r, const kind_info& kind, const json::object& before,
                                    const json::object& after) {
  if (kind.custom || !r.subresource.empty()) return std::nullopt;
  const json::object *a = pod_spec_of(kind, before), *b = pod_spec_of(kind, after);
  return b && (!a || *a != *b) ? check_security(s, r, kind, after) : std::nullopt;
}

}  // namespace kubeopera::inline v1::testing::api
