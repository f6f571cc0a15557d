// Lookups in Kubernetes objects, name rules, and the table of the kinds that kubeopera speaks of.
#include <kubeopera/kube/object.hpp>

#include <algorithm>

namespace kubeopera::inline v1::kube {

std::string_view name_of(const object& o) noexcept { return json::get_string(o, {"metadata", "name"}); }
std::string_view namespace_of(const object& o) noexcept { return json::get_string(o, {"metadata", "namespace"}); }
std::string_view uid_of(const object& o) noexcept { return json::get_string(o, {"metadata", "uid"}); }
std::string_view resource_version_of(const object& o) noexcept { return json::get_string(o, {"metadata", "resourceVersion"}); }
std::int64_t generation_of(const object& o) noexcept { return json::get_int(o, {"metadata", "generation"}); }

object_key key_of(const object& o) { return {std::string(namespace_of(o)), std::string(name_of(o))}; }

std::string_view label_of(const object& o, std::string_view key) noexcept {
  return json::get_string(o, {"metadata", "labels", key});
}

std::string_view annotation_of(const object& o, std::string_view key) noexcept {
  return json::get_string(o, {"metadata", "annotations", key});
}

bool being_deleted(const object& o) noexcept { return !json::get_string(o, {"metadata", "deletionTimestamp"}).empty(); }

object make_object(const resource_type& type, const object_key& key) {
  object metadata;
  metadata["name"] = key.name;
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  object out;
  out["apiVersion"] = type.api_version();
  out["kind"] = type.kind;
  out["metadata"] = std::move(metadata);
  return out;
}

const object* find_condition(const object& o, std::string_view type) noexcept {
  const auto* conditions = json::get_array(o, {"status", "conditions"});
  if (!conditions) return nullptr;
  for (const auto& item : *conditions) {
    const auto* condition = item.if_object();
    if (condition && json::get_string(*condition, {"type"}) == type) return condition;
  }
  return nullptr;
}

bool condition_true(const object& o, std::string_view type) noexcept {
  const auto* condition = find_condition(o, type);
  return condition && json::get_string(*condition, {"status"}) == "True";
}

namespace {

constexpr std::size_t max_label = 63;
constexpr std::size_t max_subdomain = 253;

bool is_lower_alnum(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// The shape of a DNS label, without the limit on its length: a part of a subdomain has only the limit of the whole.
bool label_shape(std::string_view text) noexcept {
  if (text.empty() || !is_lower_alnum(text.front()) || !is_lower_alnum(text.back())) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return is_lower_alnum(c) || c == '-'; });
}

}  // namespace

bool is_dns_label(std::string_view text) noexcept { return text.size() <= max_label && label_shape(text); }

bool is_dns_subdomain(std::string_view text) noexcept {
  if (text.size() > max_subdomain) return false;
  while (true) {
    auto dot = text.find('.');
    if (!label_shape(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

namespace types {

#define KUBEOPERA_KIND(function, group, version, plural, kind, namespaced)     \
  const resource_type& function() {                                            \
    static const resource_type type{group, version, plural, kind, namespaced}; \
    return type;                                                               \
  }

KUBEOPERA_KIND(namespaces, "", "v1", "namespaces", "Namespace", false)
KUBEOPERA_KIND(pods, "", "v1", "pods", "Pod", true)
KUBEOPERA_KIND(services, "", "v1", "services", "Service", true)
KUBEOPERA_KIND(endpoints, "", "v1", "endpoints", "Endpoints", true)
KUBEOPERA_KIND(secrets, "", "v1", "secrets", "Secret", true)
KUBEOPERA_KIND(config_maps, "", "v1", "configmaps", "ConfigMap", true)
KUBEOPERA_KIND(service_accounts, "", "v1", "serviceaccounts", "ServiceAccount", true)
KUBEOPERA_KIND(events, "", "v1", "events", "Event", true)
KUBEOPERA_KIND(nodes, "", "v1", "nodes", "Node", false)
KUBEOPERA_KIND(persistent_volume_claims, "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true)
KUBEOPERA_KIND(resource_quotas, "", "v1", "resourcequotas", "ResourceQuota", true)
KUBEOPERA_KIND(deployments, "apps", "v1", "deployments", "Deployment", true)
KUBEOPERA_KIND(replica_sets, "apps", "v1", "replicasets", "ReplicaSet", true)
KUBEOPERA_KIND(ingresses, "networking.k8s.io", "v1", "ingresses", "Ingress", true)
KUBEOPERA_KIND(network_policies, "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true)
KUBEOPERA_KIND(horizontal_pod_autoscalers, "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true)
KUBEOPERA_KIND(pod_disruption_budgets, "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true)
KUBEOPERA_KIND(jobs, "batch", "v1", "jobs", "Job", true)
KUBEOPERA_KIND(cron_jobs, "batch", "v1", "cronjobs", "CronJob", true)
KUBEOPERA_KIND(leases, "coordination.k8s.io", "v1", "leases", "Lease", true)
KUBEOPERA_KIND(custom_resource_definitions, "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
               false)
KUBEOPERA_KIND(git_repositories, "source.toolkit.fluxcd.io", "v1", "gitrepositories", "GitRepository", true)
KUBEOPERA_KIND(kustomizations, "kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "Kustomization", true)
KUBEOPERA_KIND(kubeopera_apps, "apps.kubeopera.io", "v1alpha1", "kubeoperaapps", "KubeOperaApp", true)
KUBEOPERA_KIND(kubeopera_tenants, "tenancy.kubeopera.io", "v1alpha1", "kubeoperatenants", "KubeOperaTenant", true)

#undef KUBEOPERA_KIND

}  // namespace types

}  // namespace kubeopera::inline v1::kube
