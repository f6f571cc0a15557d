// Server-side apply in stages, the inventory, and pruning.
#include "src/testing/flux_kustomize.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

const std::string manager = "kustomize-controller";

error failure(std::string message) { return {errc::failed_precondition, "ReconciliationFailed", std::move(message)}; }

// What a comparison between what is there and what would be there looks at.
std::string essence(object o) {
  o.erase("status");
  if (auto* m = o.if_contains("metadata"); m && m->is_object()) {
    for (auto key : {"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"})
      m->get_object().erase(key);
  }
  return json::write_canonical(value(std::move(o)));
}

std::string group_of(const object& o) {
  auto api = json::get_string(o, {"apiVersion"});
  auto slash = api.find('/');
  return slash == std::string_view::npos ? std::string() : std::string(api.substr(0, slash));
}

std::string version_of(const object& o) {
  auto api = json::get_string(o, {"apiVersion"});
  auto slash = api.find('/');
  return std::string(slash == std::string_view::npos ? api : api.substr(slash + 1));
}

}  // namespace

std::optional<inventory_entry> inventory_entry::parse(std::string_view id, std::string_view version) {
  inventory_entry e;
  auto kind = id.rfind('_');
  if (kind == std::string_view::npos || kind == 0) return std::nullopt;
  auto group = id.rfind('_', kind - 1);
  auto ns = id.find('_');
  if (group == std::string_view::npos || ns == std::string_view::npos || ns >= group) return std::nullopt;
  e.key.ns = std::string(id.substr(0, ns));
  e.key.name = std::string(id.substr(ns + 1, group - ns - 1));
  e.group = std::string(id.substr(group + 1, kind - group - 1));
  e.kind = std::string(id.substr(kind + 1));
  e.version = std::string(version);
  return e;
}

std::vector<inventory_entry> inventory_of(const object& status) {
  std::vector<inventory_entry> out;
  if (const auto* all = json::get_array(status, {"inventory", "entries"})) {
    for (const auto& e : *all) {
      auto parsed = inventory_entry::parse(json::get_string(e.as_object(), {"id"}), json::get_string(e.as_object(), {"v"}));
      if (parsed) out.push_back(std::move(*parsed));
    }
  }
  return out;
}

object inventory_json(const std::vector<inventory_entry>& entries) {
  array all;
  for (const auto& e : entries) {
    object one;
    one["id"] = e.id();
    one["v"] = e.version;
    all.push_back(std::move(one));
  }
  object out;
  out["entries"] = std::move(all);
  return out;
}

bool settled_objects::holds(const resource_type& type, const object& now, const std::string& wanted) const {
  auto it = all_.find({type.plural + "." + type.group, kube::key_of(now)});
  return it != all_.end() && it->second.uid == kube::uid_of(now) &&
         it->second.resource_version == kube::resource_version_of(now) && it->second.wanted == wanted;
}

void settled_objects::remember(const resource_type& type, const object& now, std::string wanted) {
  auto& s = all_[{type.plural + "." + type.group, kube::key_of(now)}];
  s.uid = std::string(kube::uid_of(now));
  s.resource_version = std::string(kube::resource_version_of(now));
  s.wanted = std::move(wanted);
}

applier::applier(environment& env, type_registry& registry, settled_objects& settled, object_key owner)
    : env_(env), registry_(registry), settled_(settled), owner_(std::move(owner)) {}

task<resource_type> applier::type_of(const object& o) {
  auto api = json::get_string(o, {"apiVersion"}), kind = json::get_string(o, {"kind"});
  auto type = registry_.find(api, kind);
  if (!type) {
    KUBEOPERA_CO_CHECK(co_await registry_.refresh(*env_.api));
    type = registry_.find(api, kind);
  }
  if (!type) {
    co_return failure(subject_of(o) + " dry-run failed: no matches for kind \"" + std::string(kind) + "\" in version \"" +
                      std::string(api) + "\"\n");
  }
  co_return *type;
}

task<void> applier::apply(std::vector<object> objects) {
  std::vector<object> first, then;
  for (auto& o : objects) {
    auto& labels = json::ensure_object(json::ensure_object(o, "metadata"), "labels");
    labels["kustomize.toolkit.fluxcd.io/name"] = owner_.name;
    labels["kustomize.toolkit.fluxcd.io/namespace"] = owner_.ns;
    (is_cluster_definition(o) ? first : then).push_back(std::move(o));
  }
  KUBEOPERA_CO_CHECK(co_await stage(first));
  KUBEOPERA_CO_CHECK(co_await wait_established(first));
  co_return co_await stage(then);
}

task<object> applier::dry_run(resource_type type, const object& o) {
  kube::write_options w;
  w.field_manager = manager;
  w.force = true;
  w.dry_run = true;
  auto would = co_await env_.api->apply(type, o, w);
  if (would || would.error().code() == errc::cancelled) co_return would;
  auto e = would.error();
  co_return failure(subject_of(o) + " dry-run failed" + (e.reason().empty() ? "" : " (" + e.reason() + ")") + ": " + e.message() +
                    "\n");
}

task<void> applier::stage(std::vector<object> objects) {
  struct planned {
    resource_type type;
    object wanted;
    bool exists = false, drifted = false;
  };
  std::vector<planned> plan;
  for (auto& o : objects) {
    auto type = co_await type_of(o);
    if (!type) co_return type.error();
    planned p;
    p.type = *type;
    if (p.type.namespaced && kube::namespace_of(o).empty()) {
      co_return failure(subject_of(o) + " namespace not specified: the server could not find the requested resource\n");
    }
    auto key = kube::key_of(o);
    auto now = co_await env_.api->get(p.type, key);
    if (!now && now.error().code() != errc::not_found) co_return now.error();
    p.exists = now.has_value();
    auto wanted = json::write(value(o));
    if (!p.exists || !settled_.holds(p.type, *now, wanted)) {
      auto would = co_await dry_run(p.type, o);
      if (!would) co_return would.error();
      p.drifted = !p.exists || essence(*now) != essence(*would);
      if (!p.drifted) settled_.remember(p.type, *now, std::move(wanted));
    }
    p.wanted = std::move(o);
    plan.push_back(std::move(p));
  }
  for (auto& p : plan) {
    if (p.drifted) {
      kube::write_options w;
      w.field_manager = manager;
      w.force = true;
      auto done = co_await env_.api->apply(p.type, p.wanted, w);
      if (!done && done.error().code() == errc::cancelled) co_return done.error();
      if (!done) co_return failure(subject_of(p.wanted) + " apply failed: " + done.error().message() + "\n");
      env_.objects.observe(p.type, *done);
      changes.push_back(subject_of(p.wanted) + (p.exists ? " configured" : " created"));
    }
    inventory_entry e;
    e.key = kube::key_of(p.wanted);
    e.group = group_of(p.wanted);
    e.kind = p.type.kind;
    e.version = version_of(p.wanted);
    entries.push_back(std::move(e));
  }
  co_return result<void>();
}

task<void> applier::wait_established(std::vector<object> objects) {
  for (const auto& o : objects) {
    if (json::get_string(o, {"kind"}) != "CustomResourceDefinition") continue;
    auto key = kube::key_of(o);
    for (int tries = 0;; ++tries) {
      auto now = co_await env_.api->get(kube::types::custom_resource_definitions(), key);
      if (!now) co_return now.error();
      if (kube::condition_true(*now, "Established")) break;
      if (tries > 100) co_return failure(subject_of(o) + " is not established\n");
      KUBEOPERA_CO_CHECK(co_await sleep_for(20ms));
    }
    KUBEOPERA_CO_CHECK(co_await registry_.refresh(*env_.api));
  }
  co_return result<void>();
}

task<void> applier::prune(std::vector<inventory_entry> before) {
  // The reverse of the order of applying: definitions go last.
  for (auto it = before.rbegin(); it != before.rend(); ++it) {
    const auto& e = *it;
    bool kept = std::any_of(entries.begin(), entries.end(), [&](const auto& k) { return k.id() == e.id(); });
    if (kept) continue;
    auto api = e.group.empty() ? e.version : e.group + "/" + e.version;
    auto type = registry_.find(api, e.kind);
    if (!type) continue;
    auto now = co_await env_.api->get(*type, e.key);
    if (!now && now.error().code() == errc::not_found) continue;
    if (!now) co_return now.error();
    if (kube::label_of(*now, "kustomize.toolkit.fluxcd.io/name") != owner_.name ||
        kube::annotation_of(*now, "kustomize.toolkit.fluxcd.io/prune") == "disabled") {
      continue;
    }
    kube::delete_options how;
    how.propagation = "Background";
    how.uid = std::string(kube::uid_of(*now));
    settled_.forget(*type, e.key);
    auto gone = co_await env_.api->remove(*type, e.key, how);
    if (!gone && gone.error().code() != errc::not_found) co_return failure("delete failed: " + gone.error().message());
    changes.push_back(subject_of(*now) + " deleted");
  }
  co_return result<void>();
}

}  // namespace kubeopera::inline v1::testing::sim
