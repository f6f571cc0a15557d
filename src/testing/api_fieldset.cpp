// Set operations on field trees. Empty subtrees never stay.
#include "src/testing/api_fieldset.hpp"

#include <kubeopera/json/write.hpp>

#include <boost/json/parse.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {

bool field_set::empty() const noexcept {
  return !member && std::all_of(children.begin(), children.end(), [](const auto& c) { return c.second.empty(); });
}

bool field_set::has(const std::vector<std::string>& path) const {
  const field_set* at = this;
  for (const auto& e : path) {
    auto it = at->children.find(e);
    if (it == at->children.end()) return false;
    at = &it->second;
  }
  return at->member;
}

void field_set::insert(const std::vector<std::string>& path) {
  field_set* at = this;
  for (const auto& e : path) at = &at->children[e];
  at->member = true;
}

field_set field_set::union_with(const field_set& o) const {
  field_set out = *this;
  out.member = member || o.member;
  for (const auto& [e, c] : o.children) {
    auto it = out.children.find(e);
    if (it == out.children.end()) {
      out.children.emplace(e, c);
    } else {
      it->second = it->second.union_with(c);
    }
  }
  return out;
}

field_set field_set::minus(const field_set& o) const {
  field_set out;
  out.member = member && !o.member;
  for (const auto& [e, c] : children) {
    auto it = o.children.find(e);
    field_set rest = it == o.children.end() ? c : c.minus(it->second);
    if (!rest.empty()) out.children.emplace(e, std::move(rest));
  }
  return out;
}

void field_set::subtract(const field_set& o) {
  if (o.member) member = false;
  for (const auto& [e, c] : o.children) {
    auto it = children.find(e);
    if (it == children.end()) continue;
    it->second.subtract(c);
    if (it->second.empty()) children.erase(it);
  }
}

void field_set::add(const field_set& o) {
  member = member || o.member;
  for (const auto& [e, c] : o.children) children[e].add(c);
}

bool field_set::overlaps(const json::object& fields_v1, const field_set& o) {
  if (o.member && (fields_v1.empty() || fields_v1.if_contains("."))) return true;
  for (const auto& [e, c] : o.children) {
    const auto* v = fields_v1.if_contains(e);
    const auto* child = v ? v->if_object() : nullptr;
    if (child && overlaps(*child, c)) return true;
  }
  return false;
}

field_set field_set::intersect(const field_set& o) const {
  field_set out;
  out.member = member && o.member;
  for (const auto& [e, c] : children) {
    auto it = o.children.find(e);
    if (it == o.children.end()) continue;
    field_set both = c.intersect(it->second);
    if (!both.empty()) out.children.emplace(e, std::move(both));
  }
  return out;
}

field_set field_set::with_named_parents(const type& t) const {
  field_set out;
  out.member = member;
  for (const auto& [e, c] : children) {
    const type* next = descend(t, e);
    field_set deeper = next ? c.with_named_parents(*next) : c;
    if (t.form == shape::structure && e[0] == 'f' && t.find(std::string_view(e).substr(2)) && !c.children.empty())
      deeper.member = true;
    out.children.emplace(e, std::move(deeper));
  }
  return out;
}

void field_set::walk(std::vector<std::string>& path, const std::function<void(const std::vector<std::string>&)>& f) const {
  if (member && !path.empty()) f(path);
  for (const auto& [e, c] : children) {
    path.push_back(e);
    c.walk(path, f);
    path.pop_back();
  }
}

void field_set::each(const std::function<void(const std::vector<std::string>&)>& f) const {
  std::vector<std::string> path;
  walk(path, f);
}

json::object field_set::to_json() const {
  json::object out;
  if (member && !children.empty()) out["."] = json::object();
  for (const auto& [e, c] : children) out[e] = c.to_json();
  return out;
}

field_set field_set::from_json(const json::object& o) {
  field_set out;
  bool dot = false;
  for (const auto& kv : o) {
    if (kv.key() == ".") {
      dot = true;
      continue;
    }
    const auto* c = kv.value().if_object();
    out.children.emplace(std::string(kv.key()), c ? from_json(*c) : field_set());
  }
  out.member = dot || o.empty();
  return out;
}

std::string item_element(const type& list, const json::value& item) {
  if (list.set) return "v:" + json::write(item);
  const auto* o = item.if_object();
  if (!o) return {};
  json::object keys;
  std::vector<std::string> names = list.keys;
  std::sort(names.begin(), names.end());
  for (const auto& k : names) {
    const auto* v = o->if_contains(k);
    if (v && !v->is_null()) {
      keys[k] = *v;
      continue;
    }
    const auto* f = list.element->find(k);
    if (f && !f->fallback.is_null()) keys[k] = f->fallback;
  }
  if (keys.empty()) return {};
  return "k:" + json::write(keys);
}

std::string printed_path(const std::vector<std::string>& path) {
  std::string out;
  for (const auto& e : path) {
    if (e[0] == 'f') {
      out += "." + e.substr(2);
    } else if (e[0] == 'v') {
      out += "[=" + e.substr(2) + "]";
    } else if (e[0] == 'k') {
      out += "[";
      json::value keys = boost::json::parse(e.substr(2));
      bool first = true;
      for (const auto& kv : keys.as_object()) {
        if (!first) out += ",";
        first = false;
        out += std::string(kv.key()) + "=" + json::write(kv.value());
      }
      out += "]";
    } else {
      out += "[" + e.substr(2) + "]";
    }
  }
  return out;
}

const type* descend(const type& t, const std::string& element) {
  if (t.form == shape::any) return &t;
  if (element[0] == 'f') {
    if (t.form == shape::map) return t.element;
    const auto* f = t.find(std::string_view(element).substr(2));
    return f ? f->t : nullptr;
  }
  return t.form == shape::list ? t.element : nullptr;
}

}  // namespace kubeopera::inline v1::testing::api
