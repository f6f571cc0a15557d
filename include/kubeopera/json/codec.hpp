// Structs described once: reading (closed world, every violation at once), writing and JSON Schema from one description.
//
//   struct port { std::string name; int number = 0; std::optional<std::string> note;
//                 static void rules(json::rule_set& r) { r("number").doc("TCP port").range(1, 65535).required(); } };
//   KUBEOPERA_DESCRIBE(port, (name, number, note))
//
// Member types: bool, integers, double, std::string, described enums, described structs, std::optional, std::vector,
// std::map<std::string, T>, json::value, json::object. A member that is missing keeps its default; an unknown one is an error.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/json/value.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Describes a struct's members; use in the struct's namespace.
#define KUBEOPERA_DESCRIBE(type, members)  \
  BOOST_DESCRIBE_STRUCT(type, (), members) \
  [[maybe_unused]] inline const char* kubeopera_type_name(const type*) noexcept { return #type; }
/// The same for a struct that adds members to described bases: KUBEOPERA_DESCRIBE_DERIVED(b, (a), (more)).
#define KUBEOPERA_DESCRIBE_DERIVED(type, bases, members) \
  BOOST_DESCRIBE_STRUCT(type, bases, members)            \
  [[maybe_unused]] inline const char* kubeopera_type_name(const type*) noexcept { return #type; }
/// Describes an enum; its values are written as their names.
#define KUBEOPERA_DESCRIBE_ENUM(type, ...) BOOST_DESCRIBE_ENUM(type, __VA_ARGS__)

namespace kubeopera::inline v1::json {

/// What holds for one member beyond its type.
class rule {
 public:
  rule& doc(std::string text) {
    doc_ = std::move(text);
    return *this;
  }
  rule& range(std::int64_t low, std::int64_t high) {
    min_ = low;
    max_ = high;
    return *this;
  }
  rule& length(std::size_t low, std::size_t high) {
    min_length_ = low;
    max_length_ = high;
    return *this;
  }
  rule& items(std::size_t most) {
    max_items_ = most;
    return *this;
  }
  /// ECMA regular expression for the schema; checking it is the job of check().
  rule& pattern(std::string text) {
    pattern_ = std::move(text);
    return *this;
  }
  rule& one_of(std::vector<std::string> words) {
    words_ = std::move(words);
    return *this;
  }
  /// An extra check of strings: returns what is wrong, or an empty string.
  rule& check(std::string (*f)(std::string_view)) {
    check_ = f;
    return *this;
  }
  rule& required() {
    required_ = true;
    return *this;
  }
  /// Marks what is accepted but never written back.
  rule& write_only() {
    write_only_ = true;
    return *this;
  }
  rule& example(value v) {
    example_ = std::move(v);
    return *this;
  }
  /// A keyed list, for CRDs: x-kubernetes-list-map-keys.
  rule& list_map(std::string key) {
    list_map_key_ = std::move(key);
    return *this;
  }

  bool is_required() const noexcept { return required_; }
  bool is_write_only() const noexcept { return write_only_; }
  const std::string& text() const noexcept { return doc_; }
  /// What is wrong with v (already of the right type), or an empty string.
  std::string verdict(const value& v) const;
  /// Adds the keywords to a schema.
  void describe(object& schema) const;

 private:
  std::string doc_, pattern_, list_map_key_;
  std::optional<std::int64_t> min_, max_;
  std::optional<std::size_t> min_length_, max_length_, max_items_;
  std::vector<std::string> words_;
  std::string (*check_)(std::string_view) = nullptr;
  bool required_ = false, write_only_ = false;
  value example_;
};

class rule_set {
 public:
  /// The rule of a member, made on first use.
  rule& operator()(std::string_view member) { return all_[std::string(member)]; }
  /// The text for the type itself.
  void type_doc(std::string text) { doc_ = std::move(text); }
  const rule* find(std::string_view member) const {
    auto it = all_.find(member);
    return it == all_.end() ? nullptr : &it->second;
  }
  const std::string& type_text() const noexcept { return doc_; }

 private:
  std::map<std::string, rule, std::less<>> all_;
  std::string doc_;
};

/// Where a read is, and what was wrong so far.
class read_context {
 public:
  void fail(std::string message) { violations_.push_back({pointer_, std::move(message)}); }
  void enter(std::string_view key) { pointer_ = pointer_step(pointer_, key); }
  void enter(std::size_t index) { pointer_ = pointer_step(pointer_, index); }
  void leave(std::size_t size) { pointer_.resize(size); }
  std::size_t depth() const noexcept { return pointer_.size(); }
  std::vector<violation>& violations() noexcept { return violations_; }

 private:
  std::string pointer_;
  std::vector<violation> violations_;
};

/// Collects named schemas, or writes them inline (custom resources).
class schema_set {
 public:
  explicit schema_set(bool inline_all = false) : inline_(inline_all) {}
  bool inline_all() const noexcept { return inline_; }
  object& named() noexcept { return named_; }

 private:
  bool inline_;
  object named_;
};

namespace detail {

/// One member, type-erased.
struct member {
  const char* name;
  void (*read)(const value& v, void* object, read_context& at);
  /// Returns false where the member is left out (an empty optional).
  bool (*write)(const void* object, value& out);
  object (*schema)(schema_set& set);
};

void read_struct(const value& v, void* target, const member* members, std::size_t count, const rule_set& rules, read_context& at);
object write_struct(const void* source, const member* members, std::size_t count, const rule_set& rules);
object struct_schema(const char* type_name, const member* members, std::size_t count, const rule_set& rules, schema_set& set);
std::string camel_case(std::string_view snake);

bool read_integer(const value& v, std::int64_t low, std::uint64_t high, std::int64_t& out, read_context& at);
bool read_double(const value& v, double& out, read_context& at);
const char* kind_name(const value& v);

}  // namespace detail

template <class T, class = void>
struct codec;

template <>
struct codec<bool> {
  static void read(const value& v, bool& out, read_context& at) {
    if (auto* b = v.if_bool())
      out = *b;
    else
      at.fail(std::string("must be a boolean, not ") + detail::kind_name(v));
  }
  static value write(bool v) { return v; }
  static object schema(schema_set&) { return {{"type", "boolean"}}; }
};

template <class T>
struct codec<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static void read(const value& v, T& out, read_context& at) {
    std::int64_t i = 0;
    auto high = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    if (high > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      high = std::numeric_limits<std::int64_t>::max();
    auto low = std::is_signed_v<T> ? static_cast<std::int64_t>(std::numeric_limits<T>::min()) : 0;
    if (detail::read_integer(v, low, high, i, at)) out = static_cast<T>(i);
  }
  static value write(T v) { return v; }
  static object schema(schema_set&) { return {{"type", "integer"}, {"format", sizeof(T) > 4 ? "int64" : "int32"}}; }
};

template <>
struct codec<double> {
  static void read(const value& v, double& out, read_context& at) { detail::read_double(v, out, at); }
  static value write(double v) { return v; }
  static object schema(schema_set&) { return {{"type", "number"}}; }
};

template <>
struct codec<std::string> {
  static void read(const value& v, std::string& out, read_context& at) {
    if (v.is_string())
      out = as_view(v);
    else
      at.fail(std::string("must be a string, not ") + detail::kind_name(v));
  }
  static value write(const std::string& v) { return value(v); }
  static object schema(schema_set&) { return {{"type", "string"}}; }
};

template <>
struct codec<value> {
  static void read(const value& v, value& out, read_context&) { out = v; }
  static value write(const value& v) { return v; }
  static object schema(schema_set&) { return {}; }
};

template <>
struct codec<object> {
  static void read(const value& v, object& out, read_context& at) {
    if (auto* o = v.if_object())
      out = *o;
    else
      at.fail(std::string("must be an object, not ") + detail::kind_name(v));
  }
  static value write(const object& v) { return v; }
  static object schema(schema_set&) { return {{"type", "object"}, {"additionalProperties", true}}; }
};

template <class T>
struct codec<std::optional<T>> {
  static void read(const value& v, std::optional<T>& out, read_context& at) {
    if (v.is_null())
      out.reset();
    else
      codec<T>::read(v, out.emplace(), at);
  }
  static value write(const std::optional<T>& v) { return v ? codec<T>::write(*v) : value(); }
  static object schema(schema_set& set) { return codec<T>::schema(set); }
};

template <class T>
struct codec<std::vector<T>> {
  static void read(const value& v, std::vector<T>& out, read_context& at) {
    auto* a = v.if_array();
    if (!a) return at.fail(std::string("must be an array, not ") + detail::kind_name(v));
    out.clear();
    auto depth = at.depth();
    for (std::size_t i = 0; i < a->size(); ++i) {
      at.enter(i);
      T element{};
      codec<T>::read((*a)[i], element, at);
      out.push_back(std::move(element));
      at.leave(depth);
    }
  }
  static value write(const std::vector<T>& v) {
    array out;
    out.reserve(v.size());
    for (const auto& e : v) out.push_back(codec<T>::write(e));
    return out;
  }
  static object schema(schema_set& set) { return {{"type", "array"}, {"items", codec<T>::schema(set)}}; }
};

template <class T>
struct codec<std::map<std::string, T>> {
  static void read(const value& v, std::map<std::string, T>& out, read_context& at) {
    auto* o = v.if_object();
    if (!o) return at.fail(std::string("must be an object, not ") + detail::kind_name(v));
    out.clear();
    auto depth = at.depth();
    for (const auto& m : *o) {
      at.enter(m.key());
      codec<T>::read(m.value(), out[std::string(m.key())], at);
      at.leave(depth);
    }
  }
  static value write(const std::map<std::string, T>& v) {
    object out;
    for (const auto& [k, e] : v) out[k] = codec<T>::write(e);
    return out;
  }
  static object schema(schema_set& set) { return {{"type", "object"}, {"additionalProperties", codec<T>::schema(set)}}; }
};

template <class T>
struct codec<T, std::enable_if_t<std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value>> {
  static std::vector<std::string> words() {
    std::vector<std::string> out;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto d) { out.emplace_back(trim(d.name)); });
    return out;
  }
  static void read(const value& v, T& out, read_context& at) {
    bool found = false;
    if (v.is_string()) {
      boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto d) {
        if (as_view(v) == trim(d.name)) {
          out = d.value;
          found = true;
        }
      });
    }
    if (found) return;
    std::string all;
    for (const auto& w : words()) all += (all.empty() ? "" : ", ") + w;
    at.fail("must be one of " + all);
  }
  static value write(T v) { return value(word(v)); }
  static std::string_view word(T v) { return trim(boost::describe::enum_to_string(v, "")); }
  static object schema(schema_set&) {
    array all;
    for (const auto& w : words()) all.emplace_back(w);
    return {{"type", "string"}, {"enum", std::move(all)}};
  }

 private:
  // A trailing underscore keeps C++ keywords usable as enumerators: delete_ is written "delete".
  static std::string_view trim(std::string_view name) {
    if (name.ends_with('_')) name.remove_suffix(1);
    return name;
  }
};

template <class T>
struct codec<T, std::enable_if_t<boost::describe::has_describe_members<T>::value>> {
  using members_of = boost::describe::describe_members<T, boost::describe::mod_any_access | boost::describe::mod_inherited>;
  static constexpr std::size_t count = boost::mp11::mp_size<members_of>::value;

  static const detail::member* members() {
    static const auto table = make();
    return table.data();
  }
  static const rule_set& rules() {
    static const rule_set r = [] {
      rule_set s;
      if constexpr (requires { T::rules(s); }) T::rules(s);
      return s;
    }();
    return r;
  }
  static void read(const value& v, T& out, read_context& at) { detail::read_struct(v, &out, members(), count, rules(), at); }
  static value write(const T& v) { return detail::write_struct(&v, members(), count, rules()); }
  static object schema(schema_set& set) {
    return detail::struct_schema(kubeopera_type_name(static_cast<const T*>(nullptr)), members(), count, rules(), set);
  }

 private:
  template <class D>
  static detail::member make_one() {
    using M = std::remove_reference_t<decltype(std::declval<T&>().*D::pointer)>;
    return {D::name, [](const value& v, void* o, read_context& at) { codec<M>::read(v, static_cast<T*>(o)->*D::pointer, at); },
            [](const void* o, value& out) {
              out = codec<M>::write(static_cast<const T*>(o)->*D::pointer);
              if constexpr (requires(M m) { m.has_value(); })
                return (static_cast<const T*>(o)->*D::pointer).has_value();
              else
                return true;
            },
            [](schema_set& set) { return codec<M>::schema(set); }};
  }
  static std::vector<detail::member> make() {
    std::vector<detail::member> all;
    boost::mp11::mp_for_each<members_of>([&](auto d) { all.push_back(make_one<decltype(d)>()); });
    return all;
  }
};

/// Reads a T. Errors: invalid_argument (reason InvalidBody) with every violation.
template <class T>
result<T> decode(const value& v) {
  T out{};
  read_context at;
  codec<T>::read(v, out, at);
  if (at.violations().empty()) return out;
  auto count = at.violations().size();
  return error(errc::invalid_argument, "InvalidBody",
               count == 1 ? "1 field is not valid" : std::to_string(count) + " fields are not valid")
      .with_violations(std::move(at.violations()));
}

/// Writes a T; empty optionals and write-only members are left out.
template <class T>
value encode(const T& v) {
  return codec<T>::write(v);
}

/// The JSON Schema of T with everything inline.
template <class T>
object schema() {
  schema_set set(true);
  return codec<T>::schema(set);
}

}  // namespace kubeopera::inline v1::json
