// The types of API objects: what a field may hold, how lists merge, what is always written and what is filled in.
// Built-in kinds come from a text in our own notation (api_schema_*.cpp), custom ones from their structural schemas.
#pragma once

#include <kubeopera/json/value.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kubeopera::inline v1::testing::api {

enum class shape : std::uint8_t { scalar, structure, map, list, any };
enum class scalar : std::uint8_t { string, int32, int64, boolean, number, quantity, int_or_string, time, micro_time, bytes };

/// Lookups by string_view without making a string.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const noexcept { return std::hash<std::string_view>{}(s); }
};

struct type;

struct type_field {
  std::string name;
  const type* t = nullptr;
  bool always = false;   ///< written even when empty, with its zero value
  bool pointer = false;  ///< a zero value that was given is kept
  json::value fallback;  ///< filled in where absent; null: nothing
};

/// Immutable once built; lives as long as its registry.
struct type {
  shape form = shape::any;
  scalar leaf = scalar::string;
  bool atomic = false;    ///< owned and merged as a whole
  bool set = false;       ///< list of distinct scalars
  bool preserve = false;  ///< structure: unknown fields stay
  bool custom = false;    ///< from a structural schema: keys are written sorted, nothing is zero-filled
  bool nullable = false;
  std::string name;  ///< Go's name of the structure
  std::vector<type_field> fields;
  std::unordered_map<std::string, std::size_t, text_hash, std::equal_to<>> index;
  const type* element = nullptr;  ///< of maps and lists
  std::vector<std::string> keys;  ///< of map-like lists

  const type_field* find(std::string_view field) const;
  void add(type_field f);
  bool map_list() const noexcept { return form == shape::list && !keys.empty(); }
  bool associative() const noexcept { return form == shape::list && !atomic && (set || !keys.empty()); }
};

/// Owns types. Not thread-safe while types are added.
class type_registry {
 public:
  /// Reads definitions; throws std::logic_error on a mistake in them.
  void parse(std::string_view text);
  /// After the last parse(): every structure that was named must have been defined.
  void finish();
  const type* find(std::string_view name) const;
  type& make();
  const type& any() const noexcept { return any_; }

 private:
  const type* reference(std::string_view text, type_field* field);
  type& structure(const std::string& name);
  void define(type& owner, std::string_view word);
  type any_;
  std::unordered_set<std::string> defined_;
  std::vector<std::unique_ptr<type>> owned_;
  std::unordered_map<std::string, type*> structures_;
  std::unordered_map<std::string, const type*> derived_;
};

/// All built-in types; made once.
const type_registry& builtin_types();

/// The object that Go writes for an empty structure.
json::object zero_object(const type& t);
json::value zero_value(const type& t);
/// True for "", 0, false, null and empty containers.
bool is_zero(const json::value& v) noexcept;

/// Fills in the defaults that a type declares, at every level.
void fill_defaults(const type& t, json::value& v);
void fill_defaults(const type& t, json::object& o);

}  // namespace kubeopera::inline v1::testing::api
