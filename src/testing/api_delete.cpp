// DELETE of one object and of collections: preconditions, finalizers, propagation, grace.
#include "src/testing/api_state.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

constexpr const char* foreground = "foregroundDeletion";
constexpr const char* orphan = "orphan";

std::string text_at(const json::object& o, std::initializer_list<std::string_view> path) {
  return std::string(json::get_string(o, path));
}

std::optional<refusal> check_preconditions(const kind_info& kind, const json::object& live, const json::object& options,
                                           std::string_view name) {
  auto differs = [&](const char* field, const char* word, std::string_view tail) -> std::optional<refusal> {
    std::string wanted = text_at(options, {"preconditions", field}), is = text_at(live, {"metadata", field});
    if (wanted.empty() || wanted == is) return std::nullopt;
    refusal r(409, "Conflict",
              "Operation cannot be fulfilled on " + qualified(kind.kind, kind.group) + " " + go_quote(name) + ": the " + word +
                  " in the precondition (" + wanted + ") does not match the " + word + " in record (" + is + "). " +
                  std::string(tail));
    json::object d;
    d["name"] = name;
    if (!kind.group.empty()) d["group"] = kind.group;
    d["kind"] = kind.kind;
    r.details = std::move(d);
    return r;
  };
  if (auto no = differs("uid", "UID", "The object might have been deleted and then recreated")) return no;
  return differs("resourceVersion", "ResourceVersion", "The object might have been modified");
}

// "Background", "Foreground" or "Orphan".
outcome<std::string> propagation_of(request& r, const kind_info& kind, const json::object& options) {
  std::string given = text_at(options, {"propagationPolicy"});
  if (!given.empty()) {
    if (given != "Background" && given != "Foreground" && given != "Orphan") {
      return invalid("meta.k8s.io", "DeleteOptions", "",
                     {unsupported_value("propagationPolicy", go_quote(given), {"Background", "Foreground", "Orphan"})});
    }
    return given;
  }
  if (const auto* flag = options.if_contains("orphanDependents"); flag && flag->is_bool())
    return std::string(flag->get_bool() ? "Orphan" : "Background");
  if (kind.is("batch", "jobs")) {
    r.warnings.push_back(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
        "propagationPolicy=Orphan to suppress this warning");
    return std::string("Orphan");
  }
  return std::string("Background");
}

// Finalizers for the garbage collector, as the policy asks for them.
void set_gc_finalizers(json::object& meta, const std::string& policy, bool explicit_policy) {
  auto* v = meta.if_contains("finalizers");
  json::array all = v && v->is_array() ? v->get_array() : json::array();
  auto has = [&](const char* f) { return std::find(all.begin(), all.end(), json::value(f)) != all.end(); };
  auto drop = [&](const char* f) { all.erase(std::remove(all.begin(), all.end(), json::value(f)), all.end()); };
  if (policy == "Foreground") {
    drop(orphan);
    if (!has(foreground)) all.emplace_back(foreground);
  } else if (policy == "Orphan") {
    drop(foreground);
    if (!has(orphan)) all.emplace_back(orphan);
  } else if (explicit_policy) {
    drop(orphan);
    drop(foreground);
  }
  if (all.empty()) {
    meta.erase("finalizers");
  } else {
    meta["finalizers"] = std::move(all);
  }
}

// How long a pod may take to end; 0 for everything else.
std::int64_t grace_of(const kind_info& kind, const json::object& live, const json::object& options) {
  if (!kind.is("", "pods")) return 0;
  std::string phase = text_at(live, {"status", "phase"});
  if (text_at(live, {"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") return 0;
  if (const auto* g = options.if_contains("gracePeriodSeconds"); g && g->is_int64())
    return std::max<std::int64_t>(g->get_int64(), 0);
  return json::get_int(live, {"spec", "terminationGracePeriodSeconds"}, 30);
}

// Marks an object as being deleted; false when nothing changes.
bool mark(const server& s, const kind_info& kind, json::object& o, std::int64_t grace) {
  auto& meta = json::ensure_object(o, "metadata");
  bool marked = meta.if_contains("deletionTimestamp");
  std::int64_t before = json::get_int(meta, {"deletionGracePeriodSeconds"}, 0);
  if (marked && grace >= before) return false;
  meta["deletionTimestamp"] = format_rfc3339(s.options.time->now() + std::chrono::seconds(grace));
  meta["deletionGracePeriodSeconds"] = grace;
  if (kind.generation && !marked) meta["generation"] = json::get_int(meta, {"generation"}) + 1;
  return true;
}

outcome<deletion> remove_namespace(server& s, request& r, const kind_info& kind, const std::string& name) {
  auto change = [&](const json::object& live) -> outcome<json::object> {
    if (json::find(live, {"metadata", "deletionTimestamp"})) {
      return conflict(kind, name,
                      "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace will "
                      "automatically be "
                      "purged by the system.");
    }
    json::object next = live;
    json::ensure_object(next, "metadata")["deletionTimestamp"] = s.now();
    json::ensure_object(next, "status")["phase"] = "Terminating";
    return next;
  };
  KUBEOPERA_TRY(record_ptr rec, store_change(s, r, kind, {}, name, change));
  return deletion{rec, false};
}

bool answers_with_object(const kind_info& kind, const deletion& d) {
  return !d.gone || kind.returns_deleted || kind.is("", "namespaces");
}

}  // namespace

outcome<deletion> remove_object(server& s, request& r, const kind_info& kind, const std::string& ns, const std::string& name,
                                const json::object& options) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    record_ptr live_record = s.store.get(kind, storage_name(ns, name));
    if (!live_record) return not_found(kind, name);
    json::object live = parse_record(kind, *live_record);
    if (auto no = check_preconditions(kind, live, options, name)) return std::move(*no);
    if (kind.is("", "namespaces")) return remove_namespace(s, r, kind, name);
    KUBEOPERA_TRY(std::string policy, propagation_of(r, kind, options));
    bool explicit_policy = options.if_contains("propagationPolicy") || options.if_contains("orphanDependents");
    json::object next = live;
    set_gc_finalizers(json::ensure_object(next, "metadata"), policy, explicit_policy);
    std::int64_t grace = grace_of(kind, live, options);
    const auto* finalizers = json::get_array(next, {"metadata", "finalizers"});
    bool stays = grace > 0 || (finalizers && !finalizers->empty());
    store::write w;
    w.key = storage_name(ns, name);
    w.expected = live_record;
    if (stays) {
      bool marked = mark(s, kind, next, grace);
      if ((!marked && next == live) || r.dry_run) return deletion{make_record(kind, next, live_record->rv), false};
      w.object = std::move(next);
    } else if (r.dry_run) {
      return deletion{live_record, true};
    } else {
      w.object = live;
      w.remove = true;
    }
    record_ptr out;
    KUBEOPERA_TRY(bool done, s.store.commit(kind, std::move(w), out));
    if (!done) continue;
    if (!stays && kind.plural == "customresourcedefinitions") crd_removed(s, live);
    return deletion{out, !stays};
  }
  return conflict(kind, name, "the object has been modified; please apply your changes to the latest version and try again");
}

outcome<http::response> delete_object(server& s, request& r) {
  KUBEOPERA_TRY(json::object options, read_delete_options(r));
  KUBEOPERA_TRY(deletion d, remove_object(s, r, *r.kind, r.ns, r.name, options));
  if (answers_with_object(*r.kind, d)) return respond(s, r, 200, *r.kind, *d.rec);
  return json_response(200, success_status(*r.kind, r.name, d.rec->uid));
}

outcome<http::response> delete_collection(server& s, request& r) {
  KUBEOPERA_TRY(json::object options, read_delete_options(r));
  KUBEOPERA_TRY(filter wanted, read_filter(r));
  auto state = s.store.list(*r.kind, r.ns, 0, {});
  std::string items;
  for (const auto& rec : state->records) {
    if (!wanted.matches(*r.kind, *rec)) continue;
    auto d = remove_object(s, r, *r.kind, rec->ns, rec->name, options);
    if (!d && d.error().code != 404) return std::move(d).error();
    if (!items.empty()) items += ',';
    items += (r.kind->custom ? r.kind->head() : "{") + rec->text;
  }
  json::object meta;
  meta["resourceVersion"] = std::to_string(state->rv);
  std::string head = "{\"kind\":\"" + r.kind->list_kind + "\",\"apiVersion\":\"" + r.kind->api_version() + "\",\"metadata\":";
  return http::response(200, "application/json", head + json::write(meta) + ",\"items\":[" + items + "]}");
}

}  // namespace kubeopera::inline v1::testing::api
