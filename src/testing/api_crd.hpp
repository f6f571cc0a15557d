// CustomResourceDefinitions: checking them, turning them into kinds, validating custom objects against structural schemas.
#pragma once

#include "src/testing/api_kinds.hpp"
#include "src/testing/api_status.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::testing::api {

struct printer_column {
  std::string name, type, format, description, path;
  int priority = 0;
};

/// What one version of a CRD says.
struct custom_version {
  std::string crd;
  json::object schema;                   ///< openAPIV3Schema; empty: anything goes
  std::shared_ptr<type_registry> types;  ///< owns the types that the kind refers to
  std::vector<printer_column> columns;
  std::optional<json::object> scale;  ///< the subresource's paths
  bool rules = false;                 ///< has x-kubernetes-validations somewhere
};

/// Completes names, conversion and status of a new or changed definition.
void complete_crd(json::object& crd);
problems validate_crd(const json::object& crd);
/// The served versions as kinds. crd must be valid.
std::vector<kind_ptr> kinds_of(const json::object& crd);
/// The status that accepted names have. established: the second of the two steps.
void accept_names(json::object& crd, const std::string& now, bool established);

/// Every violation of the schema.
problems validate_custom(const custom_version& version, const json::object& object);

/// The values under a simple JSONPath: .a.b, .a[0], .a[*], .a[?(@.x=="y")].z
std::vector<const json::value*> json_path(const json::value& root, std::string_view path);

}  // namespace kubeopera::inline v1::testing::api
