// Flux's CRDs as far as the simulator reads them, its namespace, and adding its controllers.
#include "src/testing/flux_controllers.hpp"

#include <kubeopera/json/read.hpp>

namespace kubeopera::inline v1::testing::sim {

namespace {

constexpr std::string_view git_repository_crd = R"json({
"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
"metadata": {"name": "gitrepositories.source.toolkit.fluxcd.io"},
"spec": {"group": "source.toolkit.fluxcd.io", "scope": "Namespaced",
"names": {"kind": "GitRepository", "listKind": "GitRepositoryList", "plural": "gitrepositories", "shortNames": ["gitrepo"], "singular": "gitrepository"},
"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
"additionalPrinterColumns": [
 {"jsonPath": ".spec.url", "name": "URL", "type": "string"},
 {"jsonPath": ".metadata.creationTimestamp", "name": "Age", "type": "date"},
 {"jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "name": "Ready", "type": "string"},
 {"jsonPath": ".status.conditions[?(@.type==\"Ready\")].message", "name": "Status", "type": "string"}],
"schema": {"openAPIV3Schema": {"type": "object", "properties": {
 "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
 "spec": {"type": "object", "required": ["interval", "url"], "x-kubernetes-preserve-unknown-fields": true, "properties": {
  "interval": {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"},
  "url": {"type": "string"},
  "timeout": {"type": "string", "default": "60s", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m))+$"},
  "suspend": {"type": "boolean"}, "ignore": {"type": "string"},
  "ref": {"type": "object", "properties": {"branch": {"type": "string"}, "tag": {"type": "string"}, "semver": {"type": "string"}, "name": {"type": "string"}, "commit": {"type": "string"}}},
  "secretRef": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
  "sparseCheckout": {"type": "array", "items": {"type": "string"}}}},
 "status": {"type": "object", "default": {"observedGeneration": -1}, "x-kubernetes-preserve-unknown-fields": true, "properties": {
  "observedGeneration": {"type": "integer", "format": "int64"}}}}}}}]}})json";

constexpr std::string_view kustomization_crd = R"json({
"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
"metadata": {"name": "kustomizations.kustomize.toolkit.fluxcd.io"},
"spec": {"group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced",
"names": {"kind": "Kustomization", "listKind": "KustomizationList", "plural": "kustomizations", "shortNames": ["ks"], "singular": "kustomization"},
"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
"additionalPrinterColumns": [
 {"jsonPath": ".metadata.creationTimestamp", "name": "Age", "type": "date"},
 {"jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "name": "Ready", "type": "string"},
 {"jsonPath": ".status.conditions[?(@.type==\"Ready\")].message", "name": "Status", "type": "string"}],
"schema": {"openAPIV3Schema": {"type": "object", "properties": {
 "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
 "spec": {"type": "object", "required": ["interval", "prune", "sourceRef"], "x-kubernetes-preserve-unknown-fields": true, "properties": {
  "interval": {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"},
  "retryInterval": {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"},
  "timeout": {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"},
  "path": {"type": "string"}, "prune": {"type": "boolean"}, "wait": {"type": "boolean"}, "suspend": {"type": "boolean"},
  "force": {"type": "boolean", "default": false}, "targetNamespace": {"type": "string"},
  "sourceRef": {"type": "object", "required": ["kind", "name"], "properties": {
   "apiVersion": {"type": "string"}, "kind": {"type": "string", "enum": ["OCIRepository", "GitRepository", "Bucket", "ExternalArtifact"]}, "name": {"type": "string"}, "namespace": {"type": "string"}}},
  "dependsOn": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}}}},
  "healthChecks": {"type": "array", "items": {"type": "object", "required": ["kind", "name"], "properties": {
   "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}, "namespace": {"type": "string"}}}}}},
 "status": {"type": "object", "default": {"observedGeneration": -1}, "x-kubernetes-preserve-unknown-fields": true, "properties": {
  "observedGeneration": {"type": "integer", "format": "int64"}}}}}}}]}})json";

}  // namespace

std::vector<object> flux_crds() {
  std::vector<object> out;
  for (auto text : {git_repository_crd, kustomization_crd}) out.push_back(json::read_object(text).value());
  return out;
}

task<void> install_flux(environment& env) {
  kube::write_options w;
  w.field_manager = "flux";
  auto crds = flux_crds();
  for (const auto& crd : crds) {
    auto made = co_await env.api->create(kube::types::custom_resource_definitions(), crd, w);
    if (!made && made.error().code() != errc::already_exists) co_return made.error();
  }
  object_key key;
  key.name = env.options.flux_namespace;
  auto ns = kube::make_object(kube::types::namespaces(), key);
  auto made = co_await env.api->create(kube::types::namespaces(), ns, w);
  if (!made && made.error().code() != errc::already_exists) co_return made.error();
  co_return result<void>();
}

void add_flux(simulator::state& s) {
  s.loop.add(make_source_controller(s.env, s.sources));
  s.loop.add(make_kustomize_controller(s.env, s.sources, s.registry));
}

}  // namespace kubeopera::inline v1::testing::sim
