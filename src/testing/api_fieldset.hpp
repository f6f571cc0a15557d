// Sets of field paths, as managedFields keep them (FieldsV1): f:name, k:{keys}, v:value.
#pragma once

#include "src/testing/api_types.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::testing::api {

/// A tree of path elements; `member` says that the path to here is in the set.
class field_set {
 public:
  bool member = false;
  std::map<std::string, field_set, std::less<>> children;

  bool empty() const noexcept;
  bool has(const std::vector<std::string>& path) const;
  void insert(const std::vector<std::string>& path);
  field_set union_with(const field_set& o) const;
  field_set minus(const field_set& o) const;
  /// minus() in place: costs what o holds.
  void subtract(const field_set& o);
  /// union_with() in place.
  void add(const field_set& o);
  field_set intersect(const field_set& o) const;
  /// Fields of structures that have children become members themselves.
  field_set with_named_parents(const type& t) const;
  /// Calls f with every member path.
  void each(const std::function<void(const std::vector<std::string>&)>& f) const;
  friend bool operator==(const field_set& a, const field_set& b) noexcept {
    return a.member == b.member && a.children == b.children;
  }

  json::object to_json() const;
  static field_set from_json(const json::object& o);
  /// True where a FieldsV1 document and the set have a member in common.
  static bool overlaps(const json::object& fields_v1, const field_set& o);

 private:
  void walk(std::vector<std::string>& path, const std::function<void(const std::vector<std::string>&)>& f) const;
};

/// The element of a list item: k:{...} or v:... ; empty where the item lacks its keys.
std::string item_element(const type& list, const json::value& item);
/// ".spec.containers[name=\"c\"].image"
std::string printed_path(const std::vector<std::string>& path);
/// The type that an element leads to; null where it is not known.
const type* descend(const type& t, const std::string& element);

}  // namespace kubeopera::inline v1::testing::api
