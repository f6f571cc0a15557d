// Reads the type notation and answers questions about types. The notation:
//   Name field:type ... ; a type is s i l b n q is t mt by x, Name, {T}, [T], followed by ! atomic, * set, /k1,k2 map-like list,
//   ~ always written, ? keeps zero values, =json default. @Name is a kind: it has kind, apiVersion and metadata. Lines that begin
//   with a blank continue the definition before.
#include "src/testing/api_types.hpp"

#include "src/testing/api_schema.hpp"

#include <boost/json/parse.hpp>

#include <cctype>
#include <stdexcept>

namespace kubeopera::inline v1::testing::api {

const type_field* type::find(std::string_view field) const {
  auto it = index.find(field);
  return it == index.end() ? nullptr : &fields[it->second];
}

void type::add(type_field f) {
  index[f.name] = fields.size();
  fields.push_back(std::move(f));
}

namespace {
struct leaf_word {
  std::string_view word;
  scalar leaf;
};
constexpr leaf_word leaf_words[] = {
    {"s", scalar::string},      {"i", scalar::int32},    {"l", scalar::int64},          {"b", scalar::boolean},
    {"n", scalar::number},      {"q", scalar::quantity}, {"is", scalar::int_or_string}, {"t", scalar::time},
    {"mt", scalar::micro_time}, {"by", scalar::bytes},
};

[[noreturn]] void mistake(std::string_view text) { throw std::logic_error("type notation: " + std::string(text)); }

// The length of a balanced {...} or [...] at the start of text.
std::size_t bracketed(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ']') --depth;
    if (depth == 0) return i + 1;
  }
  mistake(text);
}

std::vector<std::string> split_keys(std::string_view text) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (c == ',') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}
}  // namespace

type& type_registry::make() {
  owned_.push_back(std::make_unique<type>());
  return *owned_.back();
}

type& type_registry::structure(const std::string& name) {
  type*& t = structures_[name];
  if (!t) {
    t = &make();
    t->form = shape::structure;
    t->name = name;
  }
  return *t;
}

const type* type_registry::find(std::string_view name) const {
  auto it = structures_.find(std::string(name));
  return it == structures_.end() ? nullptr : it->second;
}

// Reads a type with its suffixes; what belongs to the field goes to *field.
const type* type_registry::reference(std::string_view text, type_field* field) {
  std::size_t head = text.empty() ? 0 : (text[0] == '{' || text[0] == '[') ? bracketed(text) : text.find_first_of("!*/~?=");
  if (head == std::string_view::npos) head = text.size();
  std::string_view base = text.substr(0, head), rest = text.substr(head);
  bool atomic = false, set = false;
  std::vector<std::string> keys;
  while (!rest.empty()) {
    char c = rest[0];
    rest.remove_prefix(1);
    if (c == '!') {
      atomic = true;
    } else if (c == '*') {
      set = true;
    } else if (c == '/') {
      auto end = std::min(rest.find_first_of("~?="), rest.size());
      keys = split_keys(rest.substr(0, end));
      rest.remove_prefix(end);
    } else if (c == '~' && field) {
      field->always = true;
    } else if (c == '?' && field) {
      field->pointer = true;
    } else if (c == '=' && field) {
      field->fallback = boost::json::parse(rest);
      rest = {};
    } else {
      mistake(text);
    }
  }
  if (base == "x") return &any_;
  std::string id(base);
  id += atomic ? "!" : set ? "*" : "";
  for (const auto& k : keys) id += "/" + k;
  if (auto it = derived_.find(id); it != derived_.end()) return it->second;
  for (const auto& w : leaf_words) {
    if (w.word != base) continue;
    type& t = make();
    t.form = shape::scalar;
    t.leaf = w.leaf;
    return derived_[id] = &t;
  }
  if (base.empty()) mistake(text);
  if (base[0] == '{' || base[0] == '[') {
    const type* element = reference(base.substr(1, base.size() - 2), nullptr);
    type& t = make();
    t.form = base[0] == '{' ? shape::map : shape::list;
    t.element = element;
    t.set = set;
    t.keys = keys;
    t.atomic = atomic || (t.form == shape::list && !set && keys.empty());
    return derived_[id] = &t;
  }
  type& s = structure(std::string(base));
  if (!atomic) return &s;
  // An atomic use of a structure: the same fields, owned as a whole. Copied when everything has been read.
  type& a = structure(id);
  a.atomic = true;
  return derived_[id] = &a;
}

void type_registry::define(type& owner, std::string_view word) {
  auto colon = word.find(':');
  if (colon == std::string_view::npos) mistake(word);
  type_field f;
  f.name = word.substr(0, colon);
  f.t = reference(word.substr(colon + 1), &f);
  owner.add(std::move(f));
}

void type_registry::parse(std::string_view text) {
  type* current = nullptr;
  std::size_t at = 0;
  while (at < text.size()) {
    auto end = std::min(text.find_first_of(" \n", at), text.size());
    bool starts_line = at == 0 || text[at - 1] == '\n';
    std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (starts_line) {
      bool is_kind = word[0] == '@';
      std::string name(word.substr(is_kind ? 1 : 0));
      if (!defined_.insert(name).second) mistake(word);
      current = &structure(name);
      if (!is_kind) continue;
      for (const char* f : {"kind:s", "apiVersion:s", "metadata:ObjectMeta~"}) define(*current, f);
      continue;
    }
    if (!current) mistake(word);
    define(*current, word);
  }
}

void type_registry::finish() {
  for (auto& [name, t] : structures_) {
    bool atomic = name.back() == '!';
    auto plain = structures_.find(atomic ? name.substr(0, name.size() - 1) : name);
    if (plain == structures_.end() || !defined_.count(plain->first)) mistake(name);
    if (!atomic) continue;
    t->fields = plain->second->fields;
    t->index = plain->second->index;
    t->name = plain->second->name;
  }
}

const type_registry& builtin_types() {
  static const type_registry* all = [] {
    auto* r = new type_registry;
    for (std::string_view part : schema_texts()) r->parse(part);
    r->finish();
    return r;
  }();
  return *all;
}

json::value zero_value(const type& t) {
  switch (t.form) {
    case shape::structure:
      return zero_object(t);
    case shape::scalar:
      break;
    default:
      return nullptr;
  }
  switch (t.leaf) {
    case scalar::string:
      return "";
    case scalar::int32:
    case scalar::int64:
    case scalar::number:
    case scalar::int_or_string:
      return 0;
    case scalar::boolean:
      return false;
    case scalar::quantity:
      return "0";
    default:
      return nullptr;
  }
}

json::object zero_object(const type& t) {
  json::object out;
  for (const auto& f : t.fields) {
    if (f.always) out[f.name] = zero_value(*f.t);
  }
  return out;
}

bool is_zero(const json::value& v) noexcept {
  switch (v.kind()) {
    case json::kind::null:
      return true;
    case json::kind::bool_:
      return !v.get_bool();
    case json::kind::int64:
      return v.get_int64() == 0;
    case json::kind::uint64:
      return v.get_uint64() == 0;
    case json::kind::double_:
      return v.get_double() == 0;
    case json::kind::string:
      return v.get_string().empty();
    case json::kind::array:
      return v.get_array().empty();
    case json::kind::object:
      return v.get_object().empty();
  }
  return false;
}

void fill_defaults(const type& t, json::object& o) {
  if (t.form == shape::map && t.element) {
    for (auto& kv : o) fill_defaults(*t.element, kv.value());
    return;
  }
  for (const auto& f : t.fields) {
    auto* v = o.if_contains(f.name);
    if (!f.fallback.is_null() && (!v || v->is_null() || (!f.pointer && is_zero(*v) && !t.custom))) {
      if (v) {
        *v = f.fallback;
      } else {
        v = &o.emplace(f.name, f.fallback).first->value();
      }
    }
    if (v) fill_defaults(*f.t, *v);
  }
}

void fill_defaults(const type& t, json::value& v) {
  if (t.form == shape::scalar || t.form == shape::any) return;
  if (auto* o = v.if_object()) {
    fill_defaults(t, *o);
  } else if (auto* a = v.if_array(); a && t.element) {
    for (auto& item : *a) fill_defaults(*t.element, item);
  }
}

}  // namespace kubeopera::inline v1::testing::api
