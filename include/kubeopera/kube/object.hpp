// Kubernetes objects are JSON objects; resource types say where they live in the API.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/json/value.hpp>

#include <compare>
#include <functional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::kube {

using object = json::object;

/// A kind as the API serves it. Source: Kubernetes API concepts, "resource URIs".
struct resource_type {
  std::string group;    ///< "" for the core group
  std::string version;  ///< "v1"
  std::string plural;   ///< "deployments"
  std::string kind;     ///< "Deployment"
  bool namespaced = true;
  /// "v1" or "apps/v1".
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  friend auto operator<=>(const resource_type&, const resource_type&) = default;
};

/// Namespace and name of an object; namespace empty for cluster-scoped kinds.
struct object_key {
  std::string ns;
  std::string name;
  std::string str() const { return ns.empty() ? name : ns + "/" + name; }
  friend auto operator<=>(const object_key&, const object_key&) = default;
  friend bool operator==(const object_key&, const object_key&) = default;
};

std::string_view name_of(const object& o) noexcept;
std::string_view namespace_of(const object& o) noexcept;
std::string_view uid_of(const object& o) noexcept;
std::string_view resource_version_of(const object& o) noexcept;
std::int64_t generation_of(const object& o) noexcept;
object_key key_of(const object& o);
std::string_view label_of(const object& o, std::string_view key) noexcept;
std::string_view annotation_of(const object& o, std::string_view key) noexcept;
bool being_deleted(const object& o) noexcept;
/// {"apiVersion":…,"kind":…,"metadata":{"name":…,"namespace":…}}
object make_object(const resource_type& type, const object_key& key);
/// status.conditions[type==name], or null.
const object* find_condition(const object& o, std::string_view type) noexcept;
/// True when that condition has status "True".
bool condition_true(const object& o, std::string_view type) noexcept;

/// DNS-1123 label: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63.
bool is_dns_label(std::string_view text) noexcept;
/// DNS-1123 subdomain, at most 253.
bool is_dns_subdomain(std::string_view text) noexcept;

/// The kinds that kubeopera itself speaks of.
namespace types {
const resource_type& namespaces();
const resource_type& pods();
const resource_type& services();
const resource_type& endpoints();
const resource_type& secrets();
const resource_type& config_maps();
const resource_type& service_accounts();
const resource_type& events();
const resource_type& nodes();
const resource_type& persistent_volume_claims();
const resource_type& resource_quotas();
const resource_type& deployments();
const resource_type& replica_sets();
const resource_type& ingresses();
const resource_type& network_policies();
const resource_type& horizontal_pod_autoscalers();
const resource_type& pod_disruption_budgets();
const resource_type& jobs();
const resource_type& cron_jobs();
const resource_type& leases();
const resource_type& custom_resource_definitions();
const resource_type& git_repositories();   ///< source.toolkit.fluxcd.io/v1
const resource_type& kustomizations();     ///< kustomize.toolkit.fluxcd.io/v1
const resource_type& kubeopera_apps();     ///< apps.kubeopera.io/v1alpha1
const resource_type& kubeopera_tenants();  ///< tenancy.kubeopera.io/v1alpha1
}  // namespace types

}  // namespace kubeopera::inline v1::kube
