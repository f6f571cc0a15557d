// From an app's spec to the Kubernetes objects that run it. Pure and deterministic: no clock, no cluster, no network; the same
// input gives the same bytes.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/json/codec.hpp>
#include <kubeopera/json/value.hpp>
#include <kubeopera/manifest/app_spec.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kubeopera::inline v1::manifest {

/// What carries requests from the address to the Service.
enum class traffic_kind { ingress, gateway };
KUBEOPERA_DESCRIBE_ENUM(traffic_kind, ingress, gateway)

/// What the platform knows about an app that its user does not say.
struct render_context {
  render_context() = default;
  std::string app_id;                 ///< required
  std::int64_t revision = 0;          ///< required, from 1
  std::string host;                   ///< required: the name that the app answers to
  std::string ns;                     ///< namespace; the app's name where empty
  std::string tenant_id, cloudspace;  ///< become labels where set
  std::string image;                  ///< the built image (digest); the spec's where empty
  std::string image_pull_secret;      ///< wins over the spec's registry_credentials
  traffic_kind traffic = traffic_kind::ingress;
  std::string ingress_class = "nginx";
  std::string ingress_namespace = "ingress-nginx";  ///< whose pods may reach the app
  std::string gateway_name = "apps";
  std::string gateway_namespace = "gateway-system";
  std::string wildcard_tls_secret;  ///< certificate of the default hosts; empty: the front door's default certificate
  std::string cluster_issuer = "letsencrypt-dns";  ///< cert-manager issuer of custom domains
  std::map<std::string, std::string> pod_annotations;
  /// Of the revision before: while the new template hashes the same, the pods keep its template revision, so that changing
  /// replicas (or anything else outside the template) restarts no pod.
  std::string previous_template_hash;
  std::int64_t previous_template_revision = 0;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(render_context, (app_id, revision, host, ns, tenant_id, cloudspace, image, image_pull_secret, traffic,
                                    ingress_class, ingress_namespace, gateway_name, gateway_namespace, wildcard_tls_secret,
                                    cluster_issuer, pod_annotations, previous_template_hash, previous_template_revision))

/// Annotations of ours. On the pod template: app_id, template_hash and revision (the template's own, see template_revision).
/// On the Deployment itself: app_id and revision (the app's).
inline constexpr const char* app_id_annotation = "kubeopera.io/app-id";
inline constexpr const char* revision_annotation = "kubeopera.io/revision";
inline constexpr const char* template_hash_annotation = "kubeopera.io/template-hash";

struct rendered {
  std::map<std::string, std::string> files;  ///< file name to YAML; kustomization.yaml names the others
  std::vector<json::object> objects;         ///< the same objects in the order of kustomization.yaml
  std::string template_hash;                 ///< of the pod template without its revision annotation; 16 hex digits
  std::int64_t template_revision = 0;        ///< what the pods carry as kubeopera.io/revision
  std::string content_hash;                  ///< of all files; 64 hex digits
};

/// Renders Namespace, ServiceAccount, Deployment, Service, Ingress or HTTPRoute, NetworkPolicy, and where they apply
/// HorizontalPodAutoscaler and PodDisruptionBudget.
///
/// Secret values never appear: an env_var that still holds one is an error. A stopped app keeps everything but the pods and
/// the autoscaler.
/// Errors: invalid_argument (InvalidApp, InvalidContext; every violation), failed_precondition (NoImage: not built yet,
/// SecretNotExtracted). Thread safety: pure.
result<rendered> render(const app_spec& spec, const render_context& context);

/// A hash of everything that render() looks at, and of the generator's own version, for "nothing changed" without rendering:
/// equal hashes give equal files. 64 hex digits. Pure.
std::string input_hash(const app_spec& spec, const render_context& context);

}  // namespace kubeopera::inline v1::manifest
