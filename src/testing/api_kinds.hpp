// The kinds that are served: where they live, what may be done with them, which fields select them.
#pragma once

#include "src/testing/api_types.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::testing::api {

struct subresource_info {
  std::string name, group, version, kind;
  std::vector<std::string> verbs;
};

struct custom_version;  // api_crd.hpp

/// One kind in one version. Immutable; shared with requests in flight.
struct kind_info {
  std::string group, version, plural, singular, kind, list_kind;
  bool namespaced = true;
  std::vector<std::string> short_names, categories, verbs;
  std::vector<subresource_info> subresources;
  std::vector<std::string> field_labels;  ///< beside metadata.name and metadata.namespace
  const type* t = nullptr;
  bool generation = false;       ///< metadata.generation counts changes of the specification
  bool returns_deleted = false;  ///< DELETE answers with the object
  std::shared_ptr<const custom_version> custom;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  std::string storage_key() const { return group + "/" + plural; }
  bool has_verb(std::string_view verb) const noexcept;
  const subresource_info* subresource(std::string_view name) const noexcept;
  bool is(std::string_view g, std::string_view p) const noexcept { return group == g && plural == p; }
  /// {"kind":"K","apiVersion":"v",  -- or the other way round for custom kinds
  std::string head() const;
};

using kind_ptr = std::shared_ptr<const kind_info>;

struct group_version {
  std::string version;
  std::vector<kind_ptr> kinds;  ///< sorted by plural
};

struct group_info {
  std::string name;
  std::vector<group_version> versions;  ///< the preferred one first
};

/// What is served, in the order of discovery. A value: CRDs make a new one.
struct kind_table {
  std::vector<group_info> groups;  ///< the core group ("") first
  kind_ptr find(std::string_view group, std::string_view version, std::string_view plural) const;
  bool serves(std::string_view group, std::string_view version) const;
  /// Replaces all custom kinds of a group's plural by these (possibly none).
  void replace_custom(const std::string& group, const std::string& plural, const std::vector<kind_ptr>& kinds);
};

/// The built-in kinds; made once.
const kind_table& builtin_kinds();
/// The shortest way to a built-in kind; throws std::logic_error for unknown ones.
kind_ptr builtin_kind(std::string_view group, std::string_view plural);

}  // namespace kubeopera::inline v1::testing::api
