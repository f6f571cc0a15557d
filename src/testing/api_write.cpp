// POST, PUT and PATCH: from a body to a stored object.
#include "src/testing/api_codec.hpp"
#include "src/testing/api_managed.hpp"
#include "src/testing/api_patch.hpp"
#include "src/testing/api_state.hpp"
#include "src/testing/api_strategy.hpp"
#include "src/testing/api_validation.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

std::string meta_text(const json::object& o, std::string_view key) { return std::string(json::get_string(o, {"metadata", key})); }

std::optional<refusal> settle_namespace(const request& r, json::object& o) {
  auto& meta = json::ensure_object(o, "metadata");
  std::string ns(json::get_string(meta, {"namespace"}));
  if (ns.empty() && !r.ns.empty()) meta["namespace"] = r.ns;
  if (!ns.empty() && ns != r.ns) {
    return bad_request(r.ns.empty() ? "the namespace of the provided object does not match the namespace sent on the request"
                                    : "the namespace of the provided object does not match the namespace sent on the request");
  }
  return std::nullopt;
}

field_writer writer_of(const server& s, const request& r) { return {r.manager, r.subresource, s.now()}; }

json::object empty_object(const kind_info& kind) {
  json::object o = kind.custom ? json::object() : zero_object(*kind.t);
  o["kind"] = kind.kind;
  o["apiVersion"] = kind.api_version();
  return o;
}

std::optional<refusal> name_mismatch(const request& r, const json::object& o) {
  std::string name = meta_text(o, "name");
  if (name == r.name) return std::nullopt;
  return bad_request("the name of the object (" + name + ") does not match the name on the URL (" + r.name + ")");
}

http::response finish(const server& s, const request& r, int status, const record& rec) {
  return respond(s, r, status, *r.kind, rec);
}

// Of a PATCH: the UID that it makes is checked with the rest of the metadata, and is no precondition.
std::optional<refusal> check_uid(const kind_info& kind, const json::object& live, const json::object& given) {
  std::string uid = meta_text(given, "uid");
  if (uid.empty() || uid == meta_text(live, "uid")) return std::nullopt;
  auto one = invalid_value("metadata.uid", go_quote(uid), words::immutable);
  return invalid(kind.group, kind.kind, meta_text(live, "name"), {one, one});  // two strategies say it
}

std::optional<refusal> check_version(const kind_info& kind, const json::object& live, const json::object& given) {
  std::string rv = meta_text(given, "resourceVersion");
  if (rv.empty() || rv == "0" || rv == meta_text(live, "resourceVersion")) return std::nullopt;
  return conflict(kind, meta_text(live, "name"),
                  "the object has been modified; please apply your changes to the latest version and try again");
}

std::optional<refusal> check_preconditions(const kind_info& kind, const json::object& live, const json::object& given) {
  std::string uid = meta_text(given, "uid"), name = meta_text(live, "name"), ns = meta_text(live, "namespace");
  if (!uid.empty() && uid != meta_text(live, "uid")) {
    std::string key =
        "/registry/" + (kind.group.empty() || !kind.custom ? "" : kind.group + "/") + kind.plural + "/" + storage_name(ns, name);
    return conflict(kind, name,
                    "StorageError: invalid object, Code: 4, Key: " + key +
                        ", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: " + uid +
                        ", UID in object meta: " + meta_text(live, "uid"));
  }
  return check_version(kind, live, given);
}

// An object whose last finalizer has gone is removed by the update that took it.
bool finished(const kind_info& kind, const json::object& o) {
  if (!json::find(o, {"metadata", "deletionTimestamp"})) return false;
  const auto* f = json::get_array(o, {"metadata", "finalizers"});
  if (f && !f->empty()) return false;
  if (kind.is("", "namespaces")) {
    const auto* spec = json::get_array(o, {"spec", "finalizers"});
    return !spec || spec->empty();
  }
  return json::get_int(o, {"metadata", "deletionGracePeriodSeconds"}) == 0;
}

// After the new object is known: strategy, admission, validation.
outcome<json::object> check_change(server& s, request& r, const kind_info& kind, const json::object& live, json::object next) {
  prepare_update(kind, live, next, r.subresource);
  if (auto no = admit_update(s, r, kind, live, next)) return std::move(*no);
  if (auto all = validate_update(kind, live, next, r.subresource); !all.empty())
    return invalid(kind.group, kind.kind, meta_text(live, "name"), all);
  return next;
}

}  // namespace

std::string random_suffix() {
  static constexpr char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (std::uint64_t bits = random_u64(); out.size() < 5; bits /= 27) out += alphabet[bits % 27];
  return out;
}

outcome<record_ptr> store_new(server& s, request& r, const kind_info& kind, json::object object, bool managed) {
  auto& meta = json::ensure_object(object, "metadata");
  std::string ns(json::get_string(meta, {"namespace"}));
  if (meta_text(object, "name").empty()) {
    std::string prefix(json::get_string(meta, {"generateName"}));
    if (!prefix.empty()) meta["name"] = prefix.substr(0, 58) + random_suffix();
  }
  if (!managed) track_update(kind, empty_object(kind), object, writer_of(s, r), true);
  std::string name = meta_text(object, "name");
  if (auto no = check_namespace(s, kind, ns, name)) return std::move(*no);
  if (auto no = admit_create(s, r, kind, object)) return std::move(*no);
  prepare_create(kind, object, s.now());
  if (kind.custom) default_object(kind, object);  // a default of status counts although a status that was sent does not
  if (auto all = validate_create(kind, object); !all.empty()) return invalid(kind.group, kind.kind, name, all);
  if (r.dry_run) {
    if (s.store.get(kind, storage_name(ns, name))) return already_exists(kind, name);
    return make_record(kind, std::move(object), 0);
  }
  store::write w;
  w.key = storage_name(ns, name);
  const json::object copy = object;
  w.object = std::move(object);
  w.check = [&s, &kind, &copy] { return check_quota(s, kind, copy); };
  record_ptr out;
  KUBEOPERA_TRY(bool stored, s.store.commit(kind, std::move(w), out));
  if (!stored) return already_exists(kind, name);
  return out;
}

outcome<http::response> create_object(server& s, request& r) {
  if (r.kind->group.starts_with("auth")) return serve_review(s, r);
  KUBEOPERA_TRY(body b, read_object(r, *r.kind));
  if (auto no = settle_findings(r, *r.kind, b.findings)) return std::move(*no);
  if (auto no = settle_namespace(r, b.object)) return std::move(*no);
  if (!meta_text(b.object, "resourceVersion").empty()) {
    return refusal(500, "", "resourceVersion should not be set on objects to be created");
  }
  default_object(*r.kind, b.object);
  KUBEOPERA_TRY(record_ptr rec, store_new(s, r, *r.kind, std::move(b.object), false));
  http::response out = finish(s, r, 201, *rec);
  if (r.kind->plural == "customresourcedefinitions" && !r.dry_run) crd_written(s, rec->name);
  return out;
}

outcome<record_ptr> store_change(server& s, request& r, const kind_info& kind, const std::string& ns, const std::string& name,
                                 const change_object& change) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    record_ptr live_record = s.store.get(kind, storage_name(ns, name));
    if (!live_record) return not_found(kind, name);
    json::object live = parse_record(kind, *live_record);
    KUBEOPERA_TRY(json::object next, change(live));
    if (same_but_times(live, next)) return live_record;
    bool gone = finished(kind, next);
    if (r.dry_run || gone) {
      record_ptr shown = make_record(kind, next, live_record->rv);
      if (r.dry_run) return shown;
      store::write removal;
      removal.key = storage_name(ns, name);
      removal.expected = live_record;
      removal.object = std::move(live);
      removal.remove = true;
      record_ptr deleted;
      KUBEOPERA_TRY(bool done, s.store.commit(kind, std::move(removal), deleted));
      if (!done) continue;
      if (kind.plural == "customresourcedefinitions") crd_removed(s, next);
      return shown;
    }
    store::write w;
    w.key = storage_name(ns, name);
    w.expected = live_record;
    w.object = std::move(next);
    record_ptr out;
    KUBEOPERA_TRY(bool stored, s.store.commit(kind, std::move(w), out));
    if (!stored) continue;
    if (kind.plural == "customresourcedefinitions" && r.subresource.empty()) crd_written(s, name);
    return out;
  }
  return conflict(kind, name, "the object has been modified; please apply your changes to the latest version and try again");
}

outcome<http::response> update_object(server& s, request& r) {
  const kind_info& kind = *r.kind;
  KUBEOPERA_TRY(body b, read_object(r, kind));
  if (auto no = settle_findings(r, kind, b.findings)) return std::move(*no);
  if (auto no = settle_namespace(r, b.object)) return std::move(*no);
  if (auto no = name_mismatch(r, b.object)) return std::move(*no);
  default_object(kind, b.object);
  const json::object given = std::move(b.object);
  auto change = [&](const json::object& live) -> outcome<json::object> {
    if (auto no = check_preconditions(kind, live, given)) return std::move(*no);
    std::string rv = meta_text(given, "resourceVersion");
    if (rv.empty() && needs_version(kind)) {
      return invalid(kind.group, kind.kind, r.name,
                     {invalid_value("metadata.resourceVersion", "0", "must be specified for an update")});
    }
    json::object next = given;
    json::ensure_object(next, "metadata")["resourceVersion"] = meta_text(live, "resourceVersion");
    if (r.subresource == "status") prepare_update(kind, live, next, "status");
    track_update(kind, live, next, writer_of(s, r), false);
    return check_change(s, r, kind, live, std::move(next));
  };
  KUBEOPERA_TRY(record_ptr rec, store_change(s, r, kind, r.ns, r.name, change));
  return finish(s, r, 200, *rec);
}

namespace {

refusal patch_refused(const json::object& patched, const std::string& why) {
  std::string shown = go_quote(json::write(patched));
  return invalid("", "", "", {invalid_value("patch", shown, why)});
}

enum class patch_type { json, merge, strategic, apply };

outcome<patch_type> read_patch_type(const request& r) {
  std::string type(r.raw.headers.get("Content-Type").value_or(""));
  type = type.substr(0, type.find(';'));
  if (type == "application/json-patch+json") return patch_type::json;
  if (type == "application/merge-patch+json") return patch_type::merge;
  if (type == "application/apply-patch+yaml") return patch_type::apply;
  if (type == "application/strategic-merge-patch+json") {
    if (!r.kind->custom) return patch_type::strategic;
    return refusal(
        415, "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
        "application/merge-patch+json, application/apply-patch+yaml");
  }
  refusal no(415, "UnsupportedMediaType", "415: Unsupported Media Type");
  no.details.emplace();
  return no;
}

outcome<json::object> apply_patch(const kind_info& kind, patch_type how, const json::object& live, const json::value& patch) {
  if (how == patch_type::json) return json_patch(live, patch);
  const auto* o = patch.if_object();
  if (!o)
    return bad_request("json: cannot unmarshal " + std::string(patch.is_array() ? "array" : "string") +
                       " into Go value of type map[string]interface {}");
  if (how == patch_type::merge) return merge_patch(live, *o);
  return strategic_patch(*kind.t, live, *o);
}

outcome<http::response> plain_patch(server& s, request& r, patch_type how) {
  const kind_info& kind = *r.kind;
  std::vector<std::string> duplicates;
  KUBEOPERA_TRY(json::value patch, parse_body(r, kind, duplicates));
  bool warned = false;
  auto change = [&](const json::object& live) -> outcome<json::object> {
    KUBEOPERA_TRY(json::object patched, apply_patch(kind, how, live, patch));
    auto b = decode_patched(kind, patched);
    if (!b) return patch_refused(patched, b.error().message);
    b->findings.insert(b->findings.begin(), duplicates.begin(), duplicates.end());
    if (!warned || r.field_validation == "Strict") {
      if (auto no = settle_findings(r, kind, b->findings)) return std::move(*no);
      warned = true;
    }
    if (auto no = name_mismatch(r, b->object)) return std::move(*no);
    if (auto no = check_version(kind, live, b->object)) return std::move(*no);
    if (auto no = check_uid(kind, live, b->object)) return std::move(*no);
    default_object(kind, b->object);
    json::ensure_object(b->object, "metadata")["resourceVersion"] = meta_text(live, "resourceVersion");
    if (r.subresource == "status") prepare_update(kind, live, b->object, "status");
    track_update(kind, live, b->object, writer_of(s, r), false);
    return check_change(s, r, kind, live, std::move(b->object));
  };
  KUBEOPERA_TRY(record_ptr rec, store_change(s, r, kind, r.ns, r.name, change));
  return finish(s, r, 200, *rec);
}

// Decodes and defaults what apply made, keeping its managedFields.
outcome<json::object> complete_applied(const kind_info& kind, json::object o) {
  KUBEOPERA_TRY(body b, decode_patched(kind, o));
  default_object(kind, b.object);
  return std::move(b.object);
}

outcome<http::response> apply_create(server& s, request& r, const json::object& config) {
  const kind_info& kind = *r.kind;
  if (!meta_text(config, "uid").empty()) {
    return conflict(
        kind, r.name,
        "uid mismatch: the provided object specified uid " + meta_text(config, "uid") + ", and no existing object was found");
  }
  KUBEOPERA_TRY(applied made, apply_config(kind, empty_object(kind), config, writer_of(s, r), true, true));
  if (auto no = name_mismatch(r, made.object)) return std::move(*no);
  if (auto no = settle_namespace(r, made.object)) return std::move(*no);
  KUBEOPERA_TRY(json::object o, complete_applied(kind, std::move(made.object)));
  KUBEOPERA_TRY(record_ptr rec, store_new(s, r, kind, std::move(o), true));
  http::response out = finish(s, r, 201, *rec);
  if (kind.plural == "customresourcedefinitions" && !r.dry_run) crd_written(s, rec->name);
  return out;
}

outcome<http::response> apply(server& s, request& r) {
  const kind_info& kind = *r.kind;
  if (r.query("fieldManager").empty()) {
    return invalid("meta.k8s.io", "PatchOptions", "", {required_value("fieldManager", "is required for apply patch")});
  }
  std::vector<std::string> duplicates;
  KUBEOPERA_TRY(json::value v, parse_body(r, kind, duplicates));
  const auto* config = v.if_object();
  if (!config) return bad_request("error decoding YAML: the body is not an object");
  bool force = r.flag("force");
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (!s.store.get(kind, storage_name(r.ns, r.name))) {
      if (!r.subresource.empty()) return not_found(kind, r.name);
      auto made = apply_create(s, r, *config);
      if (made || made.error().reason != "AlreadyExists") return made;
      continue;
    }
    auto change = [&](const json::object& live) -> outcome<json::object> {
      KUBEOPERA_TRY(applied made, apply_config(kind, live, *config, writer_of(s, r), force, false));
      if (auto no = name_mismatch(r, made.object)) return std::move(*no);
      if (auto no = settle_namespace(r, made.object)) return std::move(*no);
      if (auto no = check_version(kind, live, *config)) return std::move(*no);
      if (auto no = check_uid(kind, live, *config)) return std::move(*no);
      KUBEOPERA_TRY(json::object next, complete_applied(kind, std::move(made.object)));
      json::ensure_object(next, "metadata")["resourceVersion"] = meta_text(live, "resourceVersion");
      return check_change(s, r, kind, live, std::move(next));
    };
    auto rec = store_change(s, r, kind, r.ns, r.name, change);
    if (!rec && rec.error().reason == "NotFound" && r.subresource.empty()) continue;
    if (!rec) return std::move(rec).error();
    return finish(s, r, 200, **rec);
  }
  return conflict(kind, r.name, "the object has been modified; please apply your changes to the latest version and try again");
}

}  // namespace

outcome<http::response> patch_object(server& s, request& r) {
  KUBEOPERA_TRY(patch_type how, read_patch_type(r));
  return how == patch_type::apply ? apply(s, r) : plain_patch(s, r, how);
}

}  // namespace kubeopera::inline v1::testing::api
