// Applies patches to plain documents; what comes out is decoded again by the caller.
#include "src/testing/api_patch.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::api {
namespace {

refusal cannot(std::string_view) {
  refusal r(422, "Invalid", "the server rejected our request due to an error in our request");
  r.details.emplace();
  return r;
}

std::vector<std::string> steps_of(std::string_view pointer) {
  std::vector<std::string> out;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    auto end = std::min(pointer.find('/'), pointer.size());
    std::string step;
    for (std::size_t i = 0; i < end; ++i) {
      if (pointer[i] == '~' && i + 1 < end) {
        step += pointer[++i] == '1' ? '/' : '~';
      } else {
        step += pointer[i];
      }
    }
    out.push_back(std::move(step));
    pointer.remove_prefix(end);
  }
  return out;
}

bool index_of(const std::string& step, std::size_t& out) {
  auto [p, ec] = std::from_chars(step.data(), step.data() + step.size(), out);
  return ec == std::errc() && p == step.data() + step.size();
}

json::value* walk(json::value& root, const std::vector<std::string>& steps, std::size_t count) {
  json::value* at = &root;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t n = 0;
    if (auto* o = at->if_object()) {
      at = o->if_contains(steps[i]);
    } else if (auto* a = at->if_array(); a && index_of(steps[i], n) && n < a->size()) {
      at = &(*a)[n];
    } else {
      return nullptr;
    }
    if (!at) return nullptr;
  }
  return at;
}

// Takes the value at a pointer out of the document.
bool take(json::value& root, const std::vector<std::string>& steps, json::value* out) {
  json::value* parent = steps.empty() ? nullptr : walk(root, steps, steps.size() - 1);
  if (!parent) return false;
  std::size_t n = 0;
  if (auto* o = parent->if_object()) {
    auto it = o->find(steps.back());
    if (it == o->end()) return false;
    if (out) *out = it->value();
    o->erase(it);
    return true;
  }
  auto* a = parent->if_array();
  if (!a || !index_of(steps.back(), n) || n >= a->size()) return false;
  if (out) *out = (*a)[n];
  a->erase(a->begin() + static_cast<std::ptrdiff_t>(n));
  return true;
}

bool put(json::value& root, const std::vector<std::string>& steps, const json::value& v, bool replace) {
  if (steps.empty()) {
    root = v;
    return true;
  }
  json::value* parent = walk(root, steps, steps.size() - 1);
  if (!parent) return false;
  std::size_t n = 0;
  if (auto* o = parent->if_object()) {
    if (replace && !o->contains(steps.back())) return false;
    (*o)[steps.back()] = v;
    return true;
  }
  auto* a = parent->if_array();
  if (!a) return false;
  if (steps.back() == "-" && !replace) {
    a->push_back(v);
    return true;
  }
  if (!index_of(steps.back(), n) || n > a->size() || (replace && n == a->size())) return false;
  if (replace) {
    (*a)[n] = v;
  } else {
    a->insert(a->begin() + static_cast<std::ptrdiff_t>(n), v);
  }
  return true;
}

bool run(json::value& root, const json::object& op) {
  auto word = json::get_string(op, {"op"});
  auto path = steps_of(json::get_string(op, {"path"}));
  const json::value* v = op.if_contains("value");
  static const json::value nothing;
  if (word == "add") return put(root, path, v ? *v : nothing, false);
  if (word == "replace") return put(root, path, v ? *v : nothing, true);
  if (word == "remove") return take(root, path, nullptr);
  if (word == "test") {
    const json::value* at = walk(root, path, path.size());
    return at ? *at == (v ? *v : nothing) : (!v || v->is_null());
  }
  auto from = steps_of(json::get_string(op, {"from"}));
  json::value moved;
  if (word == "move") return take(root, from, &moved) && put(root, path, moved, false);
  if (word == "copy") {
    const json::value* at = walk(root, from, from.size());
    if (!at) return false;
    moved = *at;
    return put(root, path, moved, false);
  }
  return false;
}

json::value merged(const json::value* target, const json::value& patch) {
  const auto* p = patch.if_object();
  if (!p) return patch;
  const auto* t = target ? target->if_object() : nullptr;
  return merge_patch(t ? *t : json::object(), *p);
}

class strategist {
 public:
  outcome<json::object> object(const type* t, const json::object& target, const json::object& patch) {
    auto directive = json::get_string(patch, {"$patch"});
    if (directive == "delete") return json::object();
    json::object out = directive == "replace" ? json::object() : target;
    if (const auto* keep = json::get_array(patch, {"$retainKeys"})) {
      json::object kept;
      for (const auto& kv : out) {
        bool listed = std::any_of(keep->begin(), keep->end(), [&](const json::value& k) { return json::as_view(k) == kv.key(); });
        if (listed) kept.emplace(kv.key(), kv.value());
      }
      out = std::move(kept);
    }
    for (const auto& kv : patch) {
      std::string_view key = kv.key();
      if (key == "$patch" || key == "$retainKeys" || key.rfind("$setElementOrder/", 0) == 0) continue;
      if (key.rfind("$deleteFromPrimitiveList/", 0) == 0) {
        remove_primitives(out, key.substr(25), kv.value());
        continue;
      }
      if (kv.value().is_null()) {
        out.erase(key);
        continue;
      }
      KUBEOPERA_TRY(json::value v, value(field(t, key), out.if_contains(key), kv.value()));
      out[key] = std::move(v);
    }
    for (const auto& kv : patch) {
      std::string_view key = kv.key();
      if (key.rfind("$setElementOrder/", 0) == 0) reorder(field(t, key.substr(17)), out.if_contains(key.substr(17)), kv.value());
    }
    return out;
  }

 private:
  static const type* field(const type* t, std::string_view key) {
    if (!t) return nullptr;
    if (t->form == shape::map) return t->element;
    const auto* f = t->find(key);
    return f ? f->t : nullptr;
  }

  // Lists of scalars that merge, and the key by which lists of objects do.
  static bool merges(const type* t) { return t && t->form == shape::list && (t->set || !t->keys.empty() || patch_key(*t)); }
  static const char* patch_key(const type& t) {
    if (!t.keys.empty()) return t.keys.front().c_str();
    if (t.element && (t.element->name == "JobCondition")) return "type";
    return nullptr;
  }

  outcome<json::value> value(const type* t, const json::value* target, const json::value& patch) {
    if (const auto* p = patch.if_object()) {
      const auto* o = target ? target->if_object() : nullptr;
      KUBEOPERA_TRY(json::object out, object(t, o ? *o : json::object(), *p));
      return json::value(std::move(out));
    }
    const auto* p = patch.if_array();
    const auto* a = target ? target->if_array() : nullptr;
    if (!p || !merges(t)) return patch;
    if (t->set) return json::value(merge_scalars(a, *p));
    KUBEOPERA_TRY(json::array out, merge_items(*t, a ? *a : json::array(), *p));
    return json::value(std::move(out));
  }

  static json::array merge_scalars(const json::array* target, const json::array& patch) {
    json::array out = target ? *target : json::array();
    for (const auto& v : patch) {
      if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    }
    return out;
  }

  outcome<json::array> merge_items(const type& t, json::array target, const json::array& patch) {
    std::string key = patch_key(t);
    json::array fresh;
    for (const auto& v : patch) {
      const auto* p = v.if_object();
      if (!p) return bad_request("unable to find api field in struct: merge list item is not an object");
      auto directive = json::get_string(*p, {"$patch"});
      const auto* id = p->if_contains(key);
      if (directive == "replace" && !id) {
        target.clear();
        continue;
      }
      if (!id) return refusal(500, "", "map: map[] does not contain declared merge key: " + key);
      auto same = [&](const json::value& x) {
        return x.is_object() && x.get_object().if_contains(key) && x.get_object().at(key) == *id;
      };
      auto at = std::find_if(target.begin(), target.end(), same);
      if (directive == "delete") {
        if (at != target.end()) target.erase(at);
        continue;
      }
      KUBEOPERA_TRY(json::object item, object(t.element, at == target.end() ? json::object() : at->get_object(), *p));
      if (at == target.end()) {
        fresh.push_back(std::move(item));
      } else {
        *at = std::move(item);
      }
    }
    // New items come first, in the patch's order, as the real merge leaves them without an element order.
    for (auto& v : target) fresh.push_back(std::move(v));
    return fresh;
  }

  static void remove_primitives(json::object& out, std::string_view key, const json::value& gone) {
    auto* v = out.if_contains(key);
    auto* a = v ? v->if_array() : nullptr;
    const auto* g = gone.if_array();
    if (!a || !g) return;
    json::array rest;
    for (auto& x : *a) {
      if (std::find(g->begin(), g->end(), x) == g->end()) rest.push_back(x);
    }
    *a = std::move(rest);
  }

  static void reorder(const type* t, json::value* list, const json::value& order) {
    auto* a = list ? list->if_array() : nullptr;
    const auto* o = order.if_array();
    if (!a || !o || !merges(t)) return;
    auto same = [&](const json::value& item, const json::value& wanted) {
      if (t->set) return item == wanted;
      std::string key = patch_key(*t);
      const auto *x = item.if_object(), *y = wanted.if_object();
      return x && y && x->if_contains(key) && y->if_contains(key) && x->at(key) == y->at(key);
    };
    json::array sorted, rest;
    for (const auto& wanted : *o) {
      for (const auto& item : *a) {
        if (same(item, wanted)) sorted.push_back(item);
      }
    }
    for (const auto& item : *a) {
      if (std::none_of(o->begin(), o->end(), [&](const auto& w) { return same(item, w); })) rest.push_back(item);
    }
    for (auto& v : rest) sorted.push_back(std::move(v));
    *a = std::move(sorted);
  }
};

}  // namespace

outcome<json::object> json_patch(const json::object& target, const json::value& patch) {
  const auto* ops = patch.if_array();
  if (!ops) return bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  if (ops->size() > 10000)
    return bad_request("The allowed maximum operations in a JSON patch is 10000, got " + std::to_string(ops->size()));
  json::value root(target);
  for (const auto& v : *ops) {
    const auto* op = v.if_object();
    if (!op || !run(root, *op)) return cannot(json::write(v));
  }
  auto* o = root.if_object();
  if (!o) return cannot("not an object");
  return std::move(*o);
}

json::object merge_patch(const json::object& target, const json::object& patch) {
  std::vector<std::string_view> keys;
  for (const auto& kv : target) keys.push_back(kv.key());
  for (const auto& kv : patch) {
    if (!target.if_contains(kv.key())) keys.push_back(kv.key());
  }
  std::sort(keys.begin(), keys.end());
  json::object out;
  for (auto key : keys) {
    const json::value* p = patch.if_contains(key);
    const json::value* t = target.if_contains(key);
    if (p && p->is_null()) continue;
    out.emplace(key, p ? merged(t, *p) : *t);
  }
  return out;
}

outcome<json::object> strategic_patch(const type& t, const json::object& target, const json::object& patch) {
  return strategist().object(&t, target, patch);
}

}  // namespace kubeopera::inline v1::testing::api
