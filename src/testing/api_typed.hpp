// What server-side apply does with typed values: compare two, list the fields of one, merge one into another, remove fields.
// The rules are those of the structured-merge-diff algorithm.
#pragma once

#include "src/testing/api_fieldset.hpp"

#include <string>
#include <vector>

namespace kubeopera::inline v1::testing::api {

struct comparison {
  field_set added, modified, removed;
};

comparison compare(const type& t, const json::object& before, const json::object& after);
field_set fields_of(const type& t, const json::object& o);
/// live with what config says laid over it; lists merge by their keys.
json::object merge(const type& t, const json::object& live, const json::object& config);
/// o without the fields and items in the set.
json::object remove_fields(const type& t, const json::object& o, const field_set& fields);
/// What a schema finds wrong with a configuration (".spec.x: field not declared in schema"); empty when nothing.
std::vector<std::string> schema_errors(const type& t, const json::object& o);

bool equal_values(const json::value& a, const json::value& b) noexcept;

}  // namespace kubeopera::inline v1::testing::api
