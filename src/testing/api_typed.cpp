// Walkers over typed values. A null value is present but empty; an absent one is a null pointer.
#include "src/testing/api_typed.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <unordered_map>

namespace kubeopera::inline v1::testing::api {

bool equal_values(const json::value& a, const json::value& b) noexcept { return a == b; }

namespace {

enum class walk_as { leaf, map, list };

// nil takes the form of the other side; untyped values are maps or leaves by what they are.
walk_as form_of(const type& t, const json::value* a, const json::value* b) {
  auto holds_object = [](const json::value* v) { return v && v->is_object(); };
  switch (t.form) {
    case shape::scalar:
      return walk_as::leaf;
    case shape::any:
      return holds_object(a) || holds_object(b) ? walk_as::map : walk_as::leaf;
    case shape::structure:
    case shape::map:
      return t.atomic ? walk_as::leaf : walk_as::map;
    case shape::list:
      return t.atomic ? walk_as::leaf : walk_as::list;
  }
  return walk_as::leaf;
}

bool blank(const json::value* v) {
  if (!v || v->is_null()) return true;
  if (const auto* o = v->if_object()) return o->empty();
  if (const auto* a = v->if_array()) return a->empty();
  return false;
}

const json::object* object_of(const json::value* v) { return v ? v->if_object() : nullptr; }
const json::array* array_of(const json::value* v) { return v ? v->if_array() : nullptr; }

const type& field_type(const type& t, std::string_view key) {
  static const type free_form;
  if (t.form == shape::any) return t;
  if (t.form == shape::map) return *t.element;
  const auto* f = t.find(key);
  return f ? *f->t : free_form;
}

using item_map = std::unordered_map<std::string, const json::value*>;

item_map by_element(const type& t, const json::array* a) {
  item_map out;
  if (a) {
    for (const auto& item : *a) out.emplace(item_element(t, item), &item);
  }
  return out;
}

class comparer {
 public:
  comparison out;

  void children(const type& t, const json::object* before, const json::object* after) {
    if (before) {
      for (const auto& kv : *before) step(t, kv.key(), &kv.value(), after ? after->if_contains(kv.key()) : nullptr);
    }
    if (after) {
      for (const auto& kv : *after) {
        if (!before || !before->if_contains(kv.key())) step(t, kv.key(), nullptr, &kv.value());
      }
    }
  }

 private:
  void step(const type& t, std::string_view key, const json::value* before, const json::value* after) {
    if (before && after && *before == *after) return;
    if (key == "managedFields" && path_.size() == 1 && path_[0] == "f:metadata") return;  // nobody owns the bookkeeping
    path_.push_back("f:" + std::string(key));
    value(field_type(t, key), before, after);
    path_.pop_back();
  }

  void value(const type& t, const json::value* before, const json::value* after) {
    walk_as how = form_of(t, before, after);
    if (how != walk_as::leaf && blank(before) && blank(after)) how = walk_as::leaf;
    if (how == walk_as::leaf) return leaf(before, after);
    if (how == walk_as::map) {
      children(t, object_of(before), object_of(after));
    } else {
      items(t, array_of(before), array_of(after));
    }
    if (!before) out.added.insert(path_);
    if (!after) out.removed.insert(path_);
  }

  void items(const type& t, const json::array* before, const json::array* after) {
    item_map old_items = by_element(t, before), new_items = by_element(t, after);
    auto one = [&](const std::string& e, const json::value* b, const json::value* a) {
      if (b && a && *b == *a) return;
      path_.push_back(e);
      value(*t.element, b, a);
      path_.pop_back();
    };
    for (const auto& [e, v] : old_items) {
      auto it = new_items.find(e);
      one(e, v, it == new_items.end() ? nullptr : it->second);
    }
    for (const auto& [e, v] : new_items) {
      if (!old_items.count(e)) one(e, nullptr, v);
    }
  }

  void leaf(const json::value* before, const json::value* after) {
    if (!before) {
      out.added.insert(path_);
    } else if (!after) {
      out.removed.insert(path_);
    } else if (!equal_values(*before, *after)) {
      out.modified.insert(path_);
    }
  }

  std::vector<std::string> path_;
};

void collect(const type& t, const json::value& v, field_set& here);

void collect_object(const type& t, const json::object& o, field_set& here) {
  for (const auto& kv : o) {
    std::string element = "f:" + std::string(kv.key());
    const type& ft = field_type(t, kv.key());
    field_set child;
    collect(ft, kv.value(), child);
    bool named = t.form == shape::structure && t.find(kv.key());
    const auto* inner = kv.value().if_object();
    if (kv.value().is_null() || (inner && inner->empty()) || !named) child.member = true;
    if (!child.empty()) here.children.emplace(std::move(element), std::move(child));
  }
}

void collect(const type& t, const json::value& v, field_set& here) {
  walk_as how = form_of(t, &v, nullptr);
  if (how == walk_as::leaf) {
    here.member = true;
  } else if (how == walk_as::map) {
    if (const auto* o = v.if_object()) collect_object(t, *o, here);
  } else if (const auto* a = v.if_array()) {
    for (const auto& item : *a) {
      field_set& child = here.children[item_element(t, item)];
      collect(*t.element, item, child);
      child.member = true;
    }
  }
}

json::value merge_value(const type& t, const json::value* live, const json::value* config);

json::object merge_objects(const type& t, const json::object* live, const json::object* config) {
  json::object out;
  if (live) {
    for (const auto& kv : *live) {
      out.emplace(kv.key(), merge_value(field_type(t, kv.key()), &kv.value(), config ? config->if_contains(kv.key()) : nullptr));
    }
  }
  if (config) {
    for (const auto& kv : *config) {
      if (!live || !live->if_contains(kv.key()))
        out.emplace(kv.key(), merge_value(field_type(t, kv.key()), nullptr, &kv.value()));
    }
  }
  return out;
}

// Shared items keep the configuration's order; items of the live list alone stay where they were between them.
json::array merge_lists(const type& t, const json::array* live, const json::array* config) {
  item_map live_items = by_element(t, live), config_items = by_element(t, config);
  json::array out;
  std::size_t l = 0, c = 0, live_size = live ? live->size() : 0, config_size = config ? config->size() : 0;
  while (l < live_size || c < config_size) {
    if (l < live_size) {
      std::string le = item_element(t, (*live)[l]);
      if (c < config_size && item_element(t, (*config)[c]) == le) {
        out.push_back(merge_value(*t.element, &(*live)[l++], &(*config)[c++]));
        continue;
      }
      if (!config_items.count(le)) {
        out.push_back((*live)[l++]);
        continue;
      }
      // In both, but elsewhere in the configuration: it comes when that is reached.
      bool still_to_come = false;
      for (std::size_t i = c; i < config_size && !still_to_come; ++i) still_to_come = item_element(t, (*config)[i]) == le;
      if (!still_to_come) {
        ++l;
        continue;
      }
    }
    if (c >= config_size) {
      ++l;
      continue;
    }
    auto it = live_items.find(item_element(t, (*config)[c]));
    out.push_back(merge_value(*t.element, it == live_items.end() ? nullptr : it->second, &(*config)[c]));
    ++c;
  }
  return out;
}

json::value merge_value(const type& t, const json::value* live, const json::value* config) {
  if (!config) return *live;
  if (!live) return *config;
  walk_as how = form_of(t, live, config);
  if (how == walk_as::leaf || (blank(live) && blank(config))) return *config;
  if (how == walk_as::map) return merge_objects(t, object_of(live), object_of(config));
  return merge_lists(t, array_of(live), array_of(config));
}

json::value remove_value(const type& t, const json::value& v, const field_set& fields);

json::object remove_from_object(const type& t, const json::object& o, const field_set& fields) {
  json::object out;
  for (const auto& kv : o) {
    auto it = fields.children.find("f:" + std::string(kv.key()));
    if (it == fields.children.end()) {
      out.emplace(kv.key(), kv.value());
    } else if (!it->second.member) {
      json::value rest = remove_value(field_type(t, kv.key()), kv.value(), it->second);
      if (!rest.is_null()) out.emplace(kv.key(), std::move(rest));
    }
  }
  return out;
}

json::value remove_value(const type& t, const json::value& v, const field_set& fields) {
  walk_as how = form_of(t, &v, nullptr);
  if (how == walk_as::leaf || blank(&v)) return v;
  if (how == walk_as::map) {
    const auto* o = v.if_object();
    if (!o) return v;
    json::object rest = remove_from_object(t, *o, fields);
    if (rest.empty()) return nullptr;
    return rest;
  }
  const auto* a = v.if_array();
  if (!a) return v;
  json::array rest;
  for (const auto& item : *a) {
    auto it = fields.children.find(item_element(t, item));
    if (it == fields.children.end()) {
      rest.push_back(item);
    } else if (!it->second.member) {
      rest.push_back(remove_value(*t.element, item, it->second));
    }
  }
  if (rest.empty()) return nullptr;
  return rest;
}

std::string printed_go(const json::value& v) {
  if (v.is_string()) return std::string(json::as_view(v));
  return json::write(v);
}

class schema_checker {
 public:
  std::vector<std::string> out;

  void object(const type& t, const json::object& o, const std::string& path) {
    for (const auto& kv : o) {
      std::string here = path + "." + std::string(kv.key());
      if (t.form == shape::structure && !t.preserve && !t.find(kv.key())) {
        out.push_back(here + ": field not declared in schema");
        continue;
      }
      value(field_type(t, kv.key()), kv.value(), here);
    }
  }

 private:
  void value(const type& t, const json::value& v, const std::string& path) {
    if (v.is_null()) return;
    switch (t.form) {
      case shape::any:
        return;
      case shape::scalar:
        return leaf(t, v, path);
      case shape::structure:
      case shape::map:
        if (const auto* o = v.if_object()) return object(t, *o, path);
        return expected("map", v, path);
      case shape::list:
        break;
    }
    const auto* a = v.if_array();
    if (!a) return expected("list", v, path);
    item_map seen;
    for (std::size_t i = 0; i < a->size(); ++i) {
      const json::value& item = (*a)[i];
      if (!t.associative()) {
        value(*t.element, item, path + "[" + std::to_string(i) + "]");
        continue;
      }
      std::string e = item_element(t, item);
      if (e.empty()) {
        out.push_back(path + ": element " + std::to_string(i) +
                      ": associative list with keys has an element that omits key field " + go_quote(t.keys.front()) +
                      " (and doesn't have default value)");
        continue;
      }
      if (!seen.emplace(e, &item).second) out.push_back(path + ": duplicate entries for key " + printed_path({e}));
      value(*t.element, item, path + printed_path({e}));
    }
  }

  void leaf(const type& t, const json::value& v, const std::string& path) {
    bool number = v.is_int64() || v.is_uint64() || v.is_double();
    switch (t.leaf) {
      case scalar::quantity:
      case scalar::int_or_string:
        if (!number && !v.is_string()) expected("string", v, path);
        return;
      case scalar::int32:
      case scalar::int64:
      case scalar::number:
        if (!number) expected("numeric (int or float)", v, path);
        return;
      case scalar::boolean:
        if (!v.is_bool()) expected("boolean", v, path);
        return;
      default:
        if (!v.is_string()) expected("string", v, path);
    }
  }

  void expected(std::string_view what, const json::value& v, const std::string& path) {
    out.push_back(path + ": expected " + std::string(what) +
                  ", got &value.valueUnstructured{Value:" + (v.is_string() ? go_quote(json::as_view(v)) : printed_go(v)) + "}");
  }

  static std::string go_quote(std::string_view s) {
    std::string q;
    json::append_quoted(q, s);
    return q;
  }
};

}  // namespace

comparison compare(const type& t, const json::object& before, const json::object& after) {
  comparer c;
  c.children(t, &before, &after);
  return std::move(c.out);
}

field_set fields_of(const type& t, const json::object& o) {
  field_set out;
  collect_object(t, o, out);
  return out;
}

json::object merge(const type& t, const json::object& live, const json::object& config) {
  return merge_objects(t, &live, &config);
}

json::object remove_fields(const type& t, const json::object& o, const field_set& fields) {
  return remove_from_object(t, o, fields);
}

std::vector<std::string> schema_errors(const type& t, const json::object& o) {
  schema_checker c;
  c.object(t, o, {});
  return std::move(c.out);
}

}  // namespace kubeopera::inline v1::testing::api
