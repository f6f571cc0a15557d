// What kustomize-controller makes of a directory: objects in the order in which they are applied, and when an object is healthy.
#pragma once

#include "src/testing/sim_meta.hpp"

#include <string>
#include <vector>

namespace kubeopera::inline v1::testing::sim {

using source_files = std::vector<std::pair<std::string, std::string>>;  // path relative to the Kustomization's path, content

struct built {
  std::vector<object> objects;  ///< sorted: cluster definitions first
  std::string digest;           ///< of the rendered manifests
};

/// Builds the files under a path: the resources of kustomization.yaml where there is one, else every .yaml and .yml file.
/// Supported of kustomize: resources (files and directories) and namespace. Bare y, n, yes, no, on and off are booleans here,
/// where kustomize takes them for strings: quote them. Errors: invalid_argument (reason BuildFailed).
/// @param root  how messages name the directory
result<built> build_manifests(const source_files& files, const std::string& root);

/// True for kinds that have to exist before what follows is checked: Namespace, CustomResourceDefinition, cluster roles.
bool is_cluster_definition(const object& o);

enum class health { current, in_progress, failed, terminating, not_found, unknown };
/// "Current", "InProgress" ...
std::string_view to_string(health h) noexcept;
/// Source: sigs.k8s.io/cli-utils kstatus.
health health_of(const object& o);

/// "Deployment/shop/a", "Namespace/shop": how Flux writes about an object.
std::string subject_of(const object& o);

}  // namespace kubeopera::inline v1::testing::sim
