// The custom resources KubeOperaApp and KubeOperaTenant: spec and status as described structs. The CRDs in crds.hpp are made
// from these, so what they say is what the API server enforces. Spec members are snake_case like the REST API; status members
// that Kubernetes tools look for keep their Kubernetes names.
#pragma once

#include <kubeopera/json/codec.hpp>
#include <kubeopera/manifest/app_spec.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::manifest {

inline constexpr const char* app_api_version = "apps.kubeopera.io/v1alpha1";
inline constexpr const char* tenant_api_version = "tenancy.kubeopera.io/v1alpha1";
/// Finalizer of both kinds.
inline constexpr const char* finalizer_name = "kubeopera.io/cleanup";

/// Annotations of both kinds: the request that the resource's present state comes from. Beside the spec, because they change
/// nothing that is delivered. The controller copies them into the trailers of the commit (Kubeopera-Actor, Kubeopera-Request-Id,
/// Traceparent), so that a trace id finds a change in the log, in the cluster and in Git.
inline constexpr const char* actor_annotation = "kubeopera.io/actor";
inline constexpr const char* request_id_annotation = "kubeopera.io/request-id";
inline constexpr const char* traceparent_annotation = "kubeopera.io/traceparent";  ///< as the header traceparent of W3C

/// metav1.Condition.
struct resource_condition {
  std::string type;
  std::string status;  ///< True, False or Unknown
  std::string reason;
  std::string message;
  std::string lastTransitionTime;
  std::int64_t observedGeneration = 0;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(resource_condition, (type, status, reason, message, lastTransitionTime, observedGeneration))

/// spec of a KubeOperaApp.
struct app_resource_spec {
  std::string app_id;
  std::string tenant_id;
  std::string cloudspace;
  std::string tenant_ref;  ///< name of the KubeOperaTenant (the vCluster) in the same namespace
  std::int64_t revision = 0;
  std::string host;  ///< the address, decided by the API
  std::string actor;
  std::string request_id;
  app_spec app;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(app_resource_spec, (app_id, tenant_id, cloudspace, tenant_ref, revision, host, actor, request_id, app))

/// status of a KubeOperaApp. Conditions: Ready, Reconciling, Stalled and one for each step.
struct app_resource_status {
  std::int64_t observedGeneration = 0;
  std::vector<resource_condition> conditions;
  std::string phase;
  std::string commit;                  ///< fleet repository commit that holds the manifests
  std::int64_t revision = 0;           ///< spec.revision that commit renders
  std::string template_hash;           ///< rendered::template_hash of that revision
  std::int64_t template_revision = 0;  ///< the revision that brought this template; see render_context::previous_template_hash
  std::string content_hash;            ///< rendered::content_hash of that revision
  std::string address;                 ///< https://host
  std::string vcluster;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(app_resource_status, (observedGeneration, conditions, phase, commit, revision, template_hash,
                                         template_revision, content_hash, address, vcluster))

/// Room of a vCluster on the host; Kubernetes quantities.
struct tenant_quota {
  std::optional<std::string> cpu, memory;
  std::optional<int> pods;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(tenant_quota, (cpu, memory, pods))

/// spec of a KubeOperaTenant: one vCluster of a CloudSpace.
struct tenant_resource_spec {
  std::string tenant_id;
  std::string cloudspace;
  std::string display_name;
  tenant_quota quota;
  std::optional<std::string> kubernetes_version;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(tenant_resource_spec, (tenant_id, cloudspace, display_name, quota, kubernetes_version))

/// status of a KubeOperaTenant.
struct tenant_resource_status {
  std::int64_t observedGeneration = 0;
  std::vector<resource_condition> conditions;
  std::string phase;
  std::string host_namespace;
  std::string kubeconfig_secret;  ///< vc-<name>, in host_namespace
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(tenant_resource_status, (observedGeneration, conditions, phase, host_namespace, kubeconfig_secret))

}  // namespace kubeopera::inline v1::manifest
