// The Pod Security Standards. Source: kubernetes.io/docs/concepts/security/pod-security-standards.
#pragma once

#include <kubeopera/json/value.hpp>

#include <string>

namespace kubeopera::inline v1::testing::api {

/// What a level ("privileged", "baseline", "restricted") finds wrong, as the admission plugin lists it; empty when nothing.
/// owner holds the pod's metadata (annotations) where it is a pod.
std::string pod_security_violations(const std::string& level, const json::object& owner, const json::object& spec);

}  // namespace kubeopera::inline v1::testing::api
