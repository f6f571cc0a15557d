// Label and field selectors as the query parameters spell them.
#pragma once

#include "src/testing/api_status.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::testing::api {

using string_pairs = std::vector<std::pair<std::string, std::string>>;  ///< sorted by key

/// A conjunction of requirements on labels.
class label_selector {
 public:
  static outcome<label_selector> parse(std::string_view text);
  /// From a LabelSelector object (matchLabels, matchExpressions); null or empty matches everything.
  static label_selector from_object(const json::object* o);
  bool matches(const string_pairs& labels) const noexcept;
  bool empty() const noexcept { return all_.empty(); }

  enum class op : std::uint8_t { in, not_in, exists, absent, greater, less };
  struct requirement {
    std::string key;
    op what = op::exists;
    std::vector<std::string> values;
  };

 private:
  std::vector<requirement> all_;
};

/// A conjunction of field=value and field!=value.
class field_selector {
 public:
  struct term {
    std::string field, value;
    bool equal = true;
  };
  static outcome<field_selector> parse(std::string_view text);
  const std::vector<term>& terms() const noexcept { return terms_; }
  bool empty() const noexcept { return terms_.empty(); }

 private:
  std::vector<term> terms_;
};

/// "app=web" of a matchLabels selector, as the scale subresource and tables write it.
std::string format_label_selector(const json::object* selector);

}  // namespace kubeopera::inline v1::testing::api
