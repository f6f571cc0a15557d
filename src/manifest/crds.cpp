// CRDs from the described structs: the JSON schemas, cut down to what a structural schema may say.
#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/manifest/resources.hpp>

#include <string>

namespace kubeopera::inline v1::manifest {
namespace {

// Takes out write-only members and keywords that apiextensions does not know.
void make_structural(json::object& schema) {
  schema.erase("example");
  if (auto* properties = schema.if_contains("properties")) {
    std::vector<std::string> hidden;
    for (auto& p : properties->get_object()) {
      auto& one = p.value().get_object();
      if (one.contains("writeOnly"))
        hidden.emplace_back(p.key());
      else
        make_structural(one);
    }
    for (const auto& name : hidden) properties->get_object().erase(name);
  }
  for (const char* key : {"items", "additionalProperties"})
    if (auto* inner = schema.if_contains(key)) make_structural(inner->get_object());
}

json::object column(const char* name, const char* type, const char* path, int priority = 0) {
  json::object c{{"name", name}, {"type", type}, {"jsonPath", path}};
  if (priority != 0) c["priority"] = priority;
  return c;
}

struct definition {
  std::string group, kind, singular, short_name;
  json::object spec, status;
  json::array columns;
};

json::object crd(definition d) {
  make_structural(d.spec);
  make_structural(d.status);
  auto plural = d.singular + "s";
  json::object schema{{"type", "object"},
                      {"description", d.kind + " of kubeopera"},
                      {"properties", json::object{{"apiVersion", json::object{{"type", "string"}}},
                                                  {"kind", json::object{{"type", "string"}}},
                                                  {"metadata", json::object{{"type", "object"}}},
                                                  {"spec", std::move(d.spec)},
                                                  {"status", std::move(d.status)}}},
                      {"required", json::array{"spec"}}};
  json::object version{{"name", "v1alpha1"},
                       {"served", true},
                       {"storage", true},
                       {"schema", json::object{{"openAPIV3Schema", std::move(schema)}}},
                       {"subresources", json::object{{"status", json::object()}}},
                       {"additionalPrinterColumns", std::move(d.columns)}};
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", json::object{{"name", plural + "." + d.group},
                                    {"labels", json::object{{"app.kubernetes.io/managed-by", "kubeopera"}}}}},
          {"spec", json::object{{"group", d.group},
                                {"names", json::object{{"kind", d.kind},
                                                       {"listKind", d.kind + "List"},
                                                       {"plural", plural},
                                                       {"singular", d.singular},
                                                       {"shortNames", json::array{json::value(d.short_name)}},
                                                       {"categories", json::array{"kubeopera"}}}},
                                {"scope", "Namespaced"},
                                {"versions", json::array{std::move(version)}}}}};
}

constexpr const char* ready = R"(.status.conditions[?(@.type=="Ready")].status)";
constexpr const char* message = R"(.status.conditions[?(@.type=="Ready")].message)";

}  // namespace

std::vector<json::object> crds() {
  definition app{"apps.kubeopera.io",
                 "KubeOperaApp",
                 "kubeoperaapp",
                 "koapp",
                 json::schema<app_resource_spec>(),
                 json::schema<app_resource_status>(),
                 json::array{column("Host", "string", ".spec.host"), column("Revision", "integer", ".spec.revision"),
                             column("Phase", "string", ".status.phase"), column("Ready", "string", ready),
                             column("Status", "string", message, 1), column("Commit", "string", ".status.commit", 1),
                             column("Age", "date", ".metadata.creationTimestamp")}};
  definition tenant{"tenancy.kubeopera.io",
                    "KubeOperaTenant",
                    "kubeoperatenant",
                    "kotenant",
                    json::schema<tenant_resource_spec>(),
                    json::schema<tenant_resource_status>(),
                    json::array{column("CloudSpace", "string", ".spec.cloudspace"), column("Phase", "string", ".status.phase"),
                                column("Ready", "string", ready), column("Status", "string", message, 1),
                                column("Namespace", "string", ".status.host_namespace", 1),
                                column("Age", "date", ".metadata.creationTimestamp")}};
  std::vector<json::object> all;
  all.push_back(crd(std::move(app)));
  all.push_back(crd(std::move(tenant)));
  return all;
}

}  // namespace kubeopera::inline v1::manifest
