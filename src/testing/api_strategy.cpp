// Creation and update strategies: server-side fields, what a subresource may touch, generations.
#include "src/testing/api_strategy.hpp"

#include "src/testing/api_types.hpp"

#include <kubeopera/core/id.hpp>

namespace kubeopera::inline v1::testing::api {
namespace {

void set_status(const kind_info& kind, json::object& o) {
  if (kind.custom) {
    if (kind.subresource("status")) o.erase("status");
    return;
  }
  const auto* f = kind.t->find("status");
  if (!f || !kind.subresource("status") || kind.is("", "nodes")) return;
  o["status"] = zero_object(*f->t);
  auto& status = o.at("status").get_object();
  if (kind.is("", "pods")) {
    status["phase"] = "Pending";
    if (const auto* spec = json::get_object(o, {"spec"})) status["qosClass"] = qos_class(*spec);
  }
  if (kind.plural == "persistentvolumes" || kind.plural == "persistentvolumeclaims") status["phase"] = "Pending";
}

void label_job(json::object& o) {
  std::string uid(json::get_string(o, {"metadata", "uid"})), name(json::get_string(o, {"metadata", "name"}));
  auto& spec = json::ensure_object(o, "spec");
  if (json::get_bool(spec, {"manualSelector"})) return;
  auto& labels = json::ensure_object(json::ensure_object(json::ensure_object(spec, "template"), "metadata"), "labels");
  labels["batch.kubernetes.io/controller-uid"] = uid;
  labels["batch.kubernetes.io/job-name"] = name;
  labels["controller-uid"] = uid;
  labels["job-name"] = name;
  json::ensure_object(json::ensure_object(spec, "selector"), "matchLabels")["batch.kubernetes.io/controller-uid"] = uid;
}

void keep(const json::object& from, json::object& to, std::string_view key) {
  if (const auto* v = from.if_contains(key)) {
    to[key] = *v;
  } else {
    to.erase(key);
  }
}

// Identity and deletion state never change by an update.
void keep_meta(const json::object& before, json::object& after) {
  const auto* old = json::get_object(before, {"metadata"});
  auto& meta = json::ensure_object(after, "metadata");
  if (!old) return;
  for (const char* f : {"name", "generateName", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                        "deletionGracePeriodSeconds", "generation", "selfLink"}) {
    keep(*old, meta, f);
  }
}

// What counts for the generation: everything but metadata and (with a status subresource) status.
bool content_changed(const kind_info& kind, const json::object& before, const json::object& after) {
  bool status_apart = !kind.custom || kind.subresource("status");
  auto counts = [&](std::string_view key) { return key != "metadata" && !(key == "status" && status_apart); };
  auto differs = [&](const json::object& a, const json::object& b) {
    for (const auto& kv : a) {
      if (!counts(kv.key())) continue;
      const auto* v = b.if_contains(kv.key());
      if (!v || *v != kv.value()) return true;
    }
    return false;
  };
  return differs(before, after) || differs(after, before);
}

void prepare_status(const kind_info& kind, const json::object& before, json::object& after) {
  json::value status;
  if (auto* v = after.if_contains("status")) status = *v;
  json::value managed;
  if (const auto* m = json::find(after, {"metadata", "managedFields"})) managed = *m;
  json::object given_meta = json::ensure_object(after, "metadata");
  json::object out = before;
  if (status.is_null()) {
    out.erase("status");
  } else {
    out["status"] = std::move(status);
  }
  auto& meta = json::ensure_object(out, "metadata");
  bool status_only = kind.custom || kind.plural == "customresourcedefinitions";
  if (!status_only) {
    for (const char* f : {"labels", "annotations", "finalizers", "ownerReferences"}) {
      if (std::string_view(f) == "labels" && kind.is("apps", "deployments")) continue;
      if (std::string_view(f) == "ownerReferences" && kind.is("", "pods")) continue;
      keep(given_meta, meta, f);
    }
  }
  keep(given_meta, meta, "resourceVersion");
  if (managed.is_null()) {
    meta.erase("managedFields");
  } else {
    meta["managedFields"] = std::move(managed);
  }
  after = std::move(out);
}

}  // namespace

bool needs_version(const kind_info& kind) noexcept {
  return kind.custom || kind.plural == "customresourcedefinitions" || kind.plural == "leases" ||
         kind.plural == "poddisruptionbudgets";
}

void prepare_create(const kind_info& kind, json::object& o, const std::string& now) {
  auto& meta = json::ensure_object(o, "metadata");
  for (const char* f : {"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"})
    meta.erase(f);
  meta["uid"] = make_uuid_v4();
  meta["creationTimestamp"] = now;
  if (kind.generation) meta["generation"] = 1;
  set_status(kind, o);
  if (kind.is("", "namespaces")) {
    auto& finalizers = json::ensure_array(json::ensure_object(o, "spec"), "finalizers");
    if (finalizers.empty()) finalizers.emplace_back("kubernetes");
    json::ensure_object(o, "status")["phase"] = "Active";
  }
  if (kind.plural == "customresourcedefinitions") {
    auto& stored = json::ensure_array(json::ensure_object(o, "status"), "storedVersions");
    stored.clear();
    if (const auto* versions = json::get_array(o, {"spec", "versions"})) {
      for (const auto& v : *versions) {
        const auto* x = v.if_object();
        if (x && json::get_bool(*x, {"storage"})) stored.emplace_back(json::get_string(*x, {"name"}));
      }
    }
  }
  if (kind.is("batch", "jobs")) label_job(o);
}

void prepare_update(const kind_info& kind, const json::object& before, json::object& after, std::string_view subresource) {
  if (subresource == "status") {
    prepare_status(kind, before, after);
    keep_meta(before, after);
    return;
  }
  keep_meta(before, after);
  if (kind.subresource("status") && subresource.empty() && !kind.is("", "nodes")) keep(before, after, "status");
  if (kind.is("", "namespaces") && subresource.empty())
    json::ensure_object(after, "spec")["finalizers"] = before.at("spec").at("finalizers");
  if (kind.is("", "namespaces") && subresource == "finalize") keep(before, after, "status");
  if (!kind.generation) return;
  bool changed = content_changed(kind, before, after);
  if (kind.is("apps", "deployments") && !changed) {
    const auto *a = json::find(before, {"metadata", "annotations"}), *b = json::find(after, {"metadata", "annotations"});
    static const json::value none;
    changed = (a ? *a : none) != (b ? *b : none);
  }
  if (changed) json::ensure_object(after, "metadata")["generation"] = json::get_int(before, {"metadata", "generation"}) + 1;
}

}  // namespace kubeopera::inline v1::testing::api
