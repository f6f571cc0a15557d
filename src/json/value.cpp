// Lookups in JSON documents.
#include <kubeopera/json/value.hpp>

#include <charconv>

namespace kubeopera::inline v1::json {

const value* find(const object& o, std::initializer_list<std::string_view> path) noexcept {
  const object* at = &o;
  const value* v = nullptr;
  for (auto step : path) {
    if (!at) return nullptr;
    v = at->if_contains(step);
    if (!v) return nullptr;
    at = v->if_object();
  }
  return v;
}

const value* find(const value& v, std::initializer_list<std::string_view> path) noexcept {
  if (path.size() == 0) return &v;
  auto* o = v.if_object();
  return o ? find(*o, path) : nullptr;
}

const value* find_pointer(const value& v, std::string_view pointer) {
  const value* at = &v;
  while (!pointer.empty()) {
    if (pointer.front() != '/') return nullptr;
    pointer.remove_prefix(1);
    auto raw = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(raw.size());
    std::string step;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '~' && i + 1 < raw.size())
        step += raw[++i] == '1' ? '/' : '~';
      else
        step += raw[i];
    }
    if (auto* o = at->if_object()) {
      at = o->if_contains(step);
      if (!at) return nullptr;
    } else if (auto* a = at->if_array()) {
      std::size_t index = 0;
      auto [end, ec] = std::from_chars(step.data(), step.data() + step.size(), index);
      if (ec != std::errc() || end != step.data() + step.size() || index >= a->size()) return nullptr;
      at = &(*a)[index];
    } else {
      return nullptr;
    }
  }
  return at;
}

std::string_view get_string(const object& o, std::initializer_list<std::string_view> path, std::string_view fallback) noexcept {
  auto* v = find(o, path);
  return v && v->is_string() ? as_view(*v) : fallback;
}

std::int64_t get_int(const object& o, std::initializer_list<std::string_view> path, std::int64_t fallback) noexcept {
  auto* v = find(o, path);
  if (!v) return fallback;
  if (auto* i = v->if_int64()) return *i;
  if (auto* u = v->if_uint64()) return static_cast<std::int64_t>(*u);
  return fallback;
}

bool get_bool(const object& o, std::initializer_list<std::string_view> path, bool fallback) noexcept {
  auto* v = find(o, path);
  auto* b = v ? v->if_bool() : nullptr;
  return b ? *b : fallback;
}

const object* get_object(const object& o, std::initializer_list<std::string_view> path) noexcept {
  auto* v = find(o, path);
  return v ? v->if_object() : nullptr;
}

const array* get_array(const object& o, std::initializer_list<std::string_view> path) noexcept {
  auto* v = find(o, path);
  return v ? v->if_array() : nullptr;
}

object& ensure_object(object& parent, std::string_view key) {
  auto& v = parent[key];
  return v.is_object() ? v.get_object() : v.emplace_object();
}

array& ensure_array(object& parent, std::string_view key) {
  auto& v = parent[key];
  return v.is_array() ? v.get_array() : v.emplace_array();
}

std::string_view as_view(const value& v) noexcept {
  auto* s = v.if_string();
  return s ? std::string_view(s->data(), s->size()) : std::string_view();
}

std::string pointer_step(std::string_view base, std::string_view key) {
  std::string out(base);
  out += '/';
  for (char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::string pointer_step(std::string_view base, std::size_t index) { return std::string(base) + "/" + std::to_string(index); }

}  // namespace kubeopera::inline v1::json
