// What each kind does with its objects before they are stored: defaults, what a write may not touch, validation.
#pragma once

#include "src/testing/api_kinds.hpp"
#include "src/testing/api_status.hpp"

#include <string>

namespace kubeopera::inline v1::testing::api {

/// Fills in what is not given, as decoding does; part of what the writer owns.
void default_object(const kind_info& kind, json::object& o);
/// Defaults of a pod specification inside its owner.
void default_pod_spec(json::object& spec);

/// Server-side state of a new object: status, generation, finalizers of namespaces.
void prepare_create(const kind_info& kind, json::object& o, const std::string& now);
/// Carries over what this write may not change, and counts the generation. subresource: "", "status", "finalize" ...
void prepare_update(const kind_info& kind, const json::object& before, json::object& after, std::string_view subresource);

problems validate_create(const kind_info& kind, const json::object& o);
problems validate_update(const kind_info& kind, const json::object& before, const json::object& after,
                         std::string_view subresource);
/// The pod specification at `path`.
void validate_pod_spec(const json::object& spec, const std::string& path, problems& out);
/// True where an update without a resourceVersion is refused.
bool needs_version(const kind_info& kind) noexcept;

/// "BestEffort", "Burstable" or "Guaranteed".
std::string qos_class(const json::object& pod_spec);
/// The pod specification in a Pod or a workload, and where it is; null for other kinds.
const json::object* pod_spec_of(const kind_info& kind, const json::object& o);
json::object* pod_spec_of(const kind_info& kind, json::object& o);

}  // namespace kubeopera::inline v1::testing::api
