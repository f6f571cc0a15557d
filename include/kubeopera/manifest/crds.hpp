// The CustomResourceDefinitions of KubeOperaApp and KubeOperaTenant, made from the structs in resources.hpp.
#pragma once

#include <kubeopera/json/value.hpp>

#include <vector>

namespace kubeopera::inline v1::manifest {

/// Two apiextensions.k8s.io/v1 objects with structural schemas (types everywhere, nothing preserved that is unknown), status
/// subresource, printer columns and short names. What is write-only in the REST API is not part of them. Pure.
std::vector<json::object> crds();

}  // namespace kubeopera::inline v1::manifest
