// The three patch formats that need no field manager: JSON Patch (RFC 6902), merge patch (RFC 7386), strategic merge.
#pragma once

#include "src/testing/api_status.hpp"
#include "src/testing/api_types.hpp"

namespace kubeopera::inline v1::testing::api {

/// Errors: 400 for a malformed patch, 422 where an operation cannot be done.
outcome<json::object> json_patch(const json::object& target, const json::value& patch);
/// Objects that the patch touches come out with sorted keys, as Go's library leaves them.
json::object merge_patch(const json::object& target, const json::object& patch);
/// Lists merge by the keys of their type; understands $patch, $retainKeys, $deleteFromPrimitiveList and $setElementOrder.
outcome<json::object> strategic_patch(const type& t, const json::object& target, const json::object& patch);

}  // namespace kubeopera::inline v1::testing::api
