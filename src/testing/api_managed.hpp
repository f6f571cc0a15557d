// metadata.managedFields: who owns which field, kept up to date by writes (Update) and by server-side apply (Apply).
#pragma once

#include "src/testing/api_fieldset.hpp"
#include "src/testing/api_kinds.hpp"
#include "src/testing/api_status.hpp"

#include <string>
#include <vector>

namespace kubeopera::inline v1::testing::api {

/// Who writes.
struct field_writer {
  std::string manager, subresource, now;  ///< now: RFC 3339
};

/// Puts managedFields into `after`, which replaces `before` (for a create: the empty object of the kind).
/// creating: `before` was never stored.
void track_update(const kind_info& kind, const json::object& before, json::object& after, const field_writer& who, bool creating);

struct applied {
  json::object object;  ///< with managedFields
  bool changed = true;
};

/// Lays config over live. Refusals: 500 for what the schema does not allow, 409 for conflicts unless forced.
outcome<applied> apply_config(const kind_info& kind, const json::object& live, const json::object& config,
                              const field_writer& who, bool force, bool creating);

/// True where two objects differ at most in the times of their managedFields.
bool same_but_times(const json::object& a, const json::object& b);

}  // namespace kubeopera::inline v1::testing::api
