// The type-erased half of the codec: one loop for every struct.
#include <kubeopera/json/codec.hpp>

namespace kubeopera::inline v1::json {

std::string rule::verdict(const value& v) const {
  auto between = [](auto n, auto low, auto high, const char* what) -> std::string {
    if (low && n < *low) return std::string(what) + "must be at least " + std::to_string(*low);
    if (high && n > *high) return std::string(what) + "must be at most " + std::to_string(*high);
    return {};
  };
  if (v.is_string()) {
    auto text = as_view(v);
    if (auto bad = between(text.size(), min_length_, max_length_, "its length "); !bad.empty()) return bad;
    if (!words_.empty()) {
      std::string all;
      for (const auto& w : words_) {
        if (text == w) return {};
        all += (all.empty() ? "" : ", ") + w;
      }
      return "must be one of " + all;
    }
    return check_ ? check_(text) : std::string();
  }
  if (auto* i = v.if_int64()) return between(*i, min_, max_, "");
  if (auto* a = v.if_array(); a && max_items_ && a->size() > *max_items_)
    return "must have at most " + std::to_string(*max_items_) + " items";
  if (auto* o = v.if_object(); o && max_items_ && o->size() > *max_items_)
    return "must have at most " + std::to_string(*max_items_) + " entries";
  return {};
}

void rule::describe(object& schema) const {
  if (!doc_.empty()) schema["description"] = doc_;
  // The ends of the type are no boundary; Go reads a boundary as a double, and the upper end is then beyond int64.
  if (min_ && *min_ != INT64_MIN) schema["minimum"] = *min_;
  if (max_ && *max_ != INT64_MAX) schema["maximum"] = *max_;
  if (min_length_ && *min_length_ > 0) schema["minLength"] = *min_length_;
  if (max_length_) schema["maxLength"] = *max_length_;
  if (max_items_) schema[schema.contains("items") ? "maxItems" : "maxProperties"] = *max_items_;
  if (!pattern_.empty()) schema["pattern"] = pattern_;
  if (!words_.empty()) {
    array all;
    for (const auto& w : words_) all.emplace_back(w);
    schema["enum"] = std::move(all);
  }
  if (write_only_) schema["writeOnly"] = true;
  if (!example_.is_null()) schema["example"] = example_;
  if (!list_map_key_.empty()) {
    schema["x-kubernetes-list-type"] = "map";
    schema["x-kubernetes-list-map-keys"] = array{value(list_map_key_)};
  }
}

namespace detail {

const char* kind_name(const value& v) {
  switch (v.kind()) {
    case kind::null:
      return "null";
    case kind::bool_:
      return "a boolean";
    case kind::int64:
    case kind::uint64:
      return "an integer";
    case kind::double_:
      return "a number";
    case kind::string:
      return "a string";
    case kind::array:
      return "an array";
    case kind::object:
      return "an object";
  }
  return "a value";
}

bool read_integer(const value& v, std::int64_t low, std::uint64_t high, std::int64_t& out, read_context& at) {
  if (auto* i = v.if_int64()) {
    if (*i >= low && (*i < 0 || static_cast<std::uint64_t>(*i) <= high)) {
      out = *i;
      return true;
    }
    at.fail("is out of range");
    return false;
  }
  if (v.is_uint64())
    at.fail("is out of range");
  else
    at.fail(std::string("must be an integer, not ") + kind_name(v));
  return false;
}

bool read_double(const value& v, double& out, read_context& at) {
  if (auto* d = v.if_double())
    out = *d;
  else if (auto* i = v.if_int64())
    out = static_cast<double>(*i);
  else if (auto* u = v.if_uint64())
    out = static_cast<double>(*u);
  else {
    at.fail(std::string("must be a number, not ") + kind_name(v));
    return false;
  }
  return true;
}

namespace {

void read_member(const member& m, const value& v, void* target, const rule_set& rules, read_context& at) {
  auto before = at.violations().size();
  m.read(v, target, at);
  if (at.violations().size() != before || v.is_null()) return;
  auto* r = rules.find(m.name);
  if (!r) return;
  if (auto bad = r->verdict(v); !bad.empty()) at.fail(std::move(bad));
}

}  // namespace

void read_struct(const value& v, void* target, const member* members, std::size_t count, const rule_set& rules,
                 read_context& at) {
  auto* o = v.if_object();
  if (!o) return at.fail(std::string("must be an object, not ") + kind_name(v));
  auto depth = at.depth();
  for (const auto& entry : *o) {
    const member* m = nullptr;
    for (std::size_t i = 0; i < count && !m; ++i)
      if (entry.key() == members[i].name) m = &members[i];
    at.enter(entry.key());
    if (m)
      read_member(*m, entry.value(), target, rules, at);
    else
      at.fail("unknown field");
    at.leave(depth);
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto* r = rules.find(members[i].name);
    if (!r || !r->is_required()) continue;
    auto* given = o->if_contains(members[i].name);
    if (given && !given->is_null()) continue;
    at.enter(members[i].name);
    at.fail("is required");
    at.leave(depth);
  }
}

object write_struct(const void* source, const member* members, std::size_t count, const rule_set& rules) {
  object out;
  for (std::size_t i = 0; i < count; ++i) {
    auto* r = rules.find(members[i].name);
    if (r && r->is_write_only()) continue;
    value v;
    if (members[i].write(source, v)) out[members[i].name] = std::move(v);
  }
  return out;
}

std::string camel_case(std::string_view snake) {
  std::string out;
  bool upper = true;
  for (char c : snake.substr(snake.rfind(':') == std::string_view::npos ? 0 : snake.rfind(':') + 1)) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return out;
}

object struct_schema(const char* type_name, const member* members, std::size_t count, const rule_set& rules, schema_set& set) {
  auto name = camel_case(type_name);
  object ref{{"$ref", "#/components/schemas/" + name}};
  if (!set.inline_all()) {
    if (set.named().contains(name)) return ref;
    set.named()[name] = nullptr;  // seen: recursion ends here
  }
  object schema{{"type", "object"}};
  if (!rules.type_text().empty()) schema["description"] = rules.type_text();
  object properties;
  array required;
  for (std::size_t i = 0; i < count; ++i) {
    auto one = members[i].schema(set);
    if (auto* r = rules.find(members[i].name)) {
      if (one.contains("$ref") && !r->text().empty())
        one["description"] = r->text();
      else if (!one.contains("$ref"))
        r->describe(one);
      if (r->is_required()) required.emplace_back(members[i].name);
    }
    properties[members[i].name] = std::move(one);
  }
  schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = std::move(required);
  if (set.inline_all()) return schema;
  schema["additionalProperties"] = false;
  set.named()[name] = std::move(schema);
  return ref;
}

}  // namespace detail
}  // namespace kubeopera::inline v1::json
