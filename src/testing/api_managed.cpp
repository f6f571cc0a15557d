// The field manager: decoding and encoding of managedFields, ownership on update, conflicts and pruning on apply.
#include "src/testing/api_managed.hpp"

#include "src/testing/api_typed.hpp"

#include <algorithm>
#include <map>

namespace kubeopera::inline v1::testing::api {
namespace {

struct owner_key {
  std::string operation, manager, api_version, subresource;
  auto operator<=>(const owner_key&) const = default;
};

// Fields stay as they are written until somebody needs them as a set: most writes touch one owner of many.
class owner {
 public:
  owner() = default;
  owner(const json::object* raw, std::string when) : time(std::move(when)), raw_(raw) {}
  std::string time;

  bool overlaps(const field_set& s) const { return raw_ ? field_set::overlaps(*raw_, s) : !set_.intersect(s).empty(); }
  bool empty() const { return raw_ ? raw_->empty() : set_.empty(); }
  field_set& fields() {
    if (raw_) {
      set_ = field_set::from_json(*raw_);
      set_.member = false;
      raw_ = nullptr;
    }
    return set_;
  }
  json::object to_json() const { return raw_ ? *raw_ : set_.to_json(); }

 private:
  const json::object* raw_ = nullptr;  ///< in the object that was decoded, which outlives this
  field_set set_;
};

using owners = std::map<owner_key, owner>;

constexpr const char* self_word = "current-operation";

owners decode(const json::object& o) {
  owners out;
  const auto* list = json::get_array(o, {"metadata", "managedFields"});
  if (!list) return out;
  for (const auto& v : *list) {
    const auto* e = v.if_object();
    if (!e) continue;
    const auto* fields = json::get_object(*e, {"fieldsV1"});
    if (!fields) continue;
    owner_key key{std::string(json::get_string(*e, {"operation"})), std::string(json::get_string(*e, {"manager"})),
                  std::string(json::get_string(*e, {"apiVersion"})), std::string(json::get_string(*e, {"subresource"}))};
    out.insert_or_assign(std::move(key), owner(fields, std::string(json::get_string(*e, {"time"}))));
  }
  return out;
}

// Fields that nobody owns: identity and bookkeeping.
void strip_meta(field_set& s) {
  for (const char* f : {"f:apiVersion", "f:kind"}) s.children.erase(f);
  auto meta = s.children.find("f:metadata");
  if (meta == s.children.end()) return;
  meta->second.member = false;
  for (const char* f : {"f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:generation", "f:managedFields",
                        "f:resourceVersion"}) {
    meta->second.children.erase(f);
  }
  if (meta->second.empty()) s.children.erase(meta);
}

// What a write to this (sub)resource may not own.
void strip_reset(const kind_info& kind, std::string_view subresource, field_set& s) {
  if (subresource == "status") {
    s.children.erase("f:spec");
  } else if (subresource.empty() && kind.subresource("status")) {
    s.children.erase("f:status");
  }
}

void encode(const owners& all, const kind_info& kind, json::object& o) {
  struct row {
    const owner_key* key;
    const owner* value;
  };
  std::vector<row> rows;
  for (const auto& [k, v] : all) rows.push_back({&k, &v});
  std::sort(rows.begin(), rows.end(), [](const row& a, const row& b) {
    return std::tie(a.key->operation, a.value->time, a.key->manager, a.key->api_version, a.key->subresource) <
           std::tie(b.key->operation, b.value->time, b.key->manager, b.key->api_version, b.key->subresource);
  });
  auto& meta = json::ensure_object(o, "metadata");
  meta.erase("managedFields");
  json::array list;
  for (const auto& r : rows) {
    json::object e;
    if (kind.custom) {  // unstructured objects are written with sorted keys
      e["apiVersion"] = r.key->api_version;
      e["fieldsType"] = "FieldsV1";
      e["fieldsV1"] = r.value->to_json();
      e["manager"] = r.key->manager;
      e["operation"] = r.key->operation;
      if (!r.key->subresource.empty()) e["subresource"] = r.key->subresource;
      if (!r.value->time.empty()) e["time"] = r.value->time;
    } else {
      e["manager"] = r.key->manager;
      e["operation"] = r.key->operation;
      e["apiVersion"] = r.key->api_version;
      if (!r.value->time.empty()) e["time"] = r.value->time;
      e["fieldsType"] = "FieldsV1";
      e["fieldsV1"] = r.value->to_json();
      if (!r.key->subresource.empty()) e["subresource"] = r.key->subresource;
    }
    list.push_back(std::move(e));
  }
  if (!list.empty()) meta["managedFields"] = std::move(list);
}

// {"metadata":{"managedFields":...}} of an object, so that it can be replaced while it is read.
json::object managed_of(const json::object& o) {
  json::object out;
  if (const auto* m = json::find(o, {"metadata", "managedFields"})) json::ensure_object(out, "metadata")["managedFields"] = *m;
  return out;
}

json::object without_managed(json::object o) {
  if (auto* m = o.if_contains("metadata"); m && m->is_object()) m->get_object().erase("managedFields");
  return o;
}

void drop_empty(owners& all) {
  std::erase_if(all, [](const auto& e) { return e.second.empty(); });
}

struct clash {
  owner_key key;
  std::vector<std::string> path;
};

// Takes changed fields from everyone but `self` and removed ones from everyone. Returns who would lose what.
std::vector<clash> settle(owners& all, const comparison& diff, const owner_key& self, bool force) {
  field_set touched = diff.modified.union_with(diff.added);
  std::vector<clash> clashes;
  for (auto& [key, o] : all) {
    if (key == self || force || !o.overlaps(touched)) continue;
    o.fields().intersect(touched).each([&, &k = key](const auto& path) { clashes.push_back({k, path}); });
  }
  if (!clashes.empty()) return clashes;
  for (auto& [key, o] : all) {
    if (key != self && o.overlaps(touched)) o.fields().subtract(touched);
    if (o.overlaps(diff.removed)) o.fields().subtract(diff.removed);
  }
  drop_empty(all);
  return {};
}

std::string printed(const owner_key& k) {
  std::string out = go_quote(k.manager);
  if (!k.subresource.empty()) out += " with subresource " + go_quote(k.subresource);
  if (k.operation == "Update") out += " using " + k.api_version;
  return out;
}

refusal apply_conflict(const std::vector<clash>& clashes) {
  json::array causes;
  std::map<std::string, std::string> by_manager;
  for (const auto& c : clashes) {
    json::object cause;
    cause["reason"] = "FieldManagerConflict";
    cause["message"] = "conflict with " + printed(c.key);
    cause["field"] = printed_path(c.path);
    causes.push_back(std::move(cause));
    by_manager[printed(c.key)] += "\n- " + printed_path(c.path);
  }
  std::string message;
  if (clashes.size() == 1) {
    message = "Apply failed with 1 conflict: conflict with " + printed(clashes[0].key) + ": " + printed_path(clashes[0].path);
  } else {
    message = "Apply failed with " + std::to_string(clashes.size()) + " conflicts: ";
    bool first = true;
    for (const auto& [who, paths] : by_manager) {
      if (!first) message += "\n";
      first = false;
      message += "conflicts with " + who + ":" + paths;
    }
  }
  refusal r(409, "Conflict", message);
  r.details.emplace();
  (*r.details)["causes"] = std::move(causes);
  return r;
}

// Removes what this manager owned before and no longer applies, unless somebody else owns it or it was never owned.
json::object prune(const type& t, const json::object& merged, owners& all, const field_set& last) {
  if (last.empty()) return merged;
  json::object pruned = remove_fields(t, merged, last.with_named_parents(t));
  field_set managed;
  for (auto& [key, o] : all) managed.add(o.fields());
  field_set merged_fields = fields_of(t, merged).with_named_parents(t);
  field_set keep = fields_of(t, pruned).with_named_parents(t).union_with(managed.with_named_parents(t));
  pruned = remove_fields(t, merged, merged_fields.minus(keep));
  field_set left = fields_of(t, pruned).with_named_parents(t);
  return remove_fields(t, merged, merged_fields.minus(left).intersect(last.with_named_parents(t)));
}

bool resets_managed(const json::object& o) {
  const auto* list = json::get_array(o, {"metadata", "managedFields"});
  return list && list->size() == 1 && (*list)[0].is_object() && (*list)[0].get_object().empty();
}

owners update_owners(const kind_info& kind, owners all, const json::object& before, const json::object& after,
                     const field_writer& who) {
  comparison diff = compare(*kind.t, before, after);
  for (field_set* s : {&diff.added, &diff.modified, &diff.removed}) strip_reset(kind, who.subresource, *s);
  owner_key self{"Update", self_word, kind.api_version(), who.subresource};
  settle(all, diff, self, true);
  field_set taken = diff.added.union_with(diff.modified).minus(diff.removed);
  strip_meta(taken);
  if (!taken.empty()) {
    owner& mine = all[{"Update", who.manager, kind.api_version(), who.subresource}];
    mine.fields().add(taken);
    mine.time = who.now;
  }
  return all;
}

std::string joined(const std::vector<std::string>& errors) {
  if (errors.size() == 1) return errors[0];
  std::string out = "errors:";
  for (const auto& e : errors) out += "\n  " + e;
  return out;
}

}  // namespace

void track_update(const kind_info& kind, const json::object& before, json::object& after, const field_writer& who,
                  bool creating) {
  bool reset = resets_managed(after);
  const json::object given = managed_of(after);
  owners all = decode(given);
  if (all.empty()) all = decode(before);
  if (reset || (all.empty() && !creating)) {  // an object that nobody tracks is not tracked by an update
    encode({}, kind, after);
    return;
  }
  encode(update_owners(kind, std::move(all), before, after, who), kind, after);
}

outcome<applied> apply_config(const kind_info& kind, const json::object& live, const json::object& config,
                              const field_writer& who, bool force, bool creating) {
  if (json::find(config, {"metadata", "managedFields"})) return bad_request("metadata.managedFields must be nil");
  if (auto errors = schema_errors(*kind.t, config); !errors.empty()) {
    std::string ns(json::get_string(config, {"metadata", "namespace"})), name(json::get_string(config, {"metadata", "name"}));
    std::string gvk = kind.group + "/" + kind.version + ", Kind=" + kind.kind;
    return refusal(500, "", "failed to create typed patch object (" + ns + "/" + name + "; " + gvk + "): " + joined(errors));
  }
  owners all = decode(live);
  json::object base = without_managed(live);
  if (all.empty() && !creating) {
    json::object nothing = kind.custom ? json::object() : zero_object(*kind.t);
    all = update_owners(kind, {}, nothing, base, {"before-first-apply", "", who.now});
  }
  owner_key self{"Apply", who.manager, kind.api_version(), who.subresource};
  field_set last = all.count(self) ? all[self].fields() : field_set();
  json::object merged = merge(*kind.t, base, config);
  field_set mine = fields_of(*kind.t, config);
  strip_reset(kind, who.subresource, mine);
  all[self].fields() = mine;
  json::object result = prune(*kind.t, merged, all, last);
  comparison diff = compare(*kind.t, base, result);
  for (field_set* s : {&diff.added, &diff.modified, &diff.removed}) strip_reset(kind, who.subresource, *s);
  if (auto clashes = settle(all, diff, self, force); !clashes.empty()) return apply_conflict(clashes);
  if (auto it = all.find(self); it != all.end()) strip_meta(it->second.fields());
  drop_empty(all);
  applied out;
  if (auto it = all.find(self); it != all.end()) it->second.time = who.now;
  out.object = std::move(result);
  encode(all, kind, out.object);
  return out;
}

namespace {
bool same_entries(const json::value* a, const json::value* b) {
  const auto *x = a ? a->if_array() : nullptr, *y = b ? b->if_array() : nullptr;
  if (!x || !y) return (!x || x->empty()) && (!y || y->empty());
  if (x->size() != y->size()) return false;
  for (std::size_t i = 0; i < x->size(); ++i) {
    const auto *p = (*x)[i].if_object(), *q = (*y)[i].if_object();
    if (!p || !q || p->size() != q->size()) return false;
    for (const auto& kv : *p) {
      const auto* v = q->if_contains(kv.key());
      if (!v || (kv.key() != "time" && *v != kv.value())) return false;
    }
  }
  return true;
}

bool same_meta(const json::object& a, const json::object& b) {
  auto rest = [](const json::object& o) { return o.size() - (o.if_contains("managedFields") ? 1 : 0); };
  if (rest(a) != rest(b)) return false;
  for (const auto& kv : a) {
    if (kv.key() == "managedFields") continue;
    const auto* v = b.if_contains(kv.key());
    if (!v || *v != kv.value()) return false;
  }
  return same_entries(a.if_contains("managedFields"), b.if_contains("managedFields"));
}
}  // namespace

bool same_but_times(const json::object& a, const json::object& b) {
  if (a.size() != b.size()) return false;
  for (const auto& kv : a) {
    const auto* v = b.if_contains(kv.key());
    if (!v) return false;
    bool meta = kv.key() == "metadata" && v->is_object() && kv.value().is_object();
    if (meta ? !same_meta(kv.value().get_object(), v->get_object()) : *v != kv.value()) return false;
  }
  return true;
}

}  // namespace kubeopera::inline v1::testing::api
