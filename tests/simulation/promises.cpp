#include "tests/simulation/promises.hpp"

#include "server/services/app_controller/step.hpp"

#include <kubeopera/gitops/fleet.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/resources.hpp>

namespace kubeopera::simulation {
namespace {

std::string app_of(const object& resource) { return std::string(json::get_string(resource, {"spec", "app_id"})); }
std::int64_t revision_of(const object& resource) { return json::get_int(resource, {"spec", "revision"}); }

std::string spec_text(const manifest::app_spec& spec) { return json::write_canonical(json::encode(spec)); }

std::string directory_of(const api::app_row& row) {
  auto d = gitops::app_directory(row.vcluster, row.name);
  return d ? *d : "?";
}

std::string trailer(const gitops::change& c, std::string_view name) {
  for (const auto& [key, value] : c.trailers)
    if (key == name) return value;
  return {};
}

}  // namespace

void promises::host_changed(const actor& who, const kube::resource_type& type, const object_ptr& before, const object_ptr& now) {
  if (type.kind != "KubeOperaApp" || !now) return;
  auto id = app_of(*now);
  auto name = std::string(kube::name_of(*now));
  if (!before) {
    auto [it, fresh] = resource_of_.emplace(id, name);
    if (!fresh && it->second != name)
      s_.e->broken("one resource an app", name + " is made for app " + id + ", which has had " + it->second);
  }
  auto revision = revision_of(*now);
  auto& newest = newest_resource_[id];
  if (revision < newest)
    s_.e->broken("never an older revision over a newer",
                 who.name + " writes revision " + std::to_string(revision) + " of " + name + " over " + std::to_string(newest));
  newest = std::max(newest, revision);
  auto ever = s_.db->ever().find(id);
  if (ever != s_.db->ever().end()) {
    auto accepted = ever->second.revisions.find(revision);
    auto* spec = json::get_object(*now, {"spec", "app"});
    if (accepted == ever->second.revisions.end() || !spec || json::write_canonical(*spec) != spec_text(accepted->second))
      s_.e->broken("the resource says what was accepted", name + ", revision " + std::to_string(revision));
  }
  bool had = before && has_finalizer(*before, manifest::finalizer_name);
  if (had && !has_finalizer(*now, manifest::finalizer_name)) finalizer_gone(*now);
}

void promises::finalizer_gone(const object& app) {
  auto id = app_of(app);
  for (const auto& [path, d] : s_.git->tree())
    if (d->app == id) s_.e->broken("the finalizer outlives the manifests", path + " is still in the repository");
  auto v = s_.vclusters.find(std::string(json::get_string(app, {"spec", "tenant_ref"})));
  if (v == s_.vclusters.end() || v->second.inside->gone()) return;
  auto name = std::string(json::get_string(app, {"spec", "app", "name"}));
  if (v->second.inside->get(kube::types::kustomizations(), {app_controller::flux_namespace, name}))
    s_.e->broken("the finalizer outlives the manifests", "Kustomization " + name + " is still there");
  if (v->second.inside->get(kube::types::namespaces(), {"", name}))
    s_.e->broken("the finalizer outlives the manifests", "namespace " + name + " is still there");
}

void promises::deleting(const actor& who, const cluster& where, const kube::resource_type& type, const object& obj) {
  if (!who.ours) return;
  auto name = std::string(kube::name_of(obj));
  const api::app_row* row = nullptr;
  if (type.kind == "KubeOperaApp") row = s_.db->app_of_resource(name);
  if (type.kind == "Kustomization" || type.kind == "Namespace") row = s_.db->app_named(where.name(), name);
  if (row && !row->deleting)
    s_.e->broken("nothing is deleted that was not asked for",
                 who.name + " deletes " + type.kind + " " + name + " of live app " + row->id);
  if (type.kind == "KubeOperaTenant") {
    auto v = s_.db->vclusters().find(name);
    if (v != s_.db->vclusters().end() && !v->second.deleting)
      s_.e->broken("nothing is deleted that was not asked for", who.name + " deletes vCluster " + name);
  }
}

void promises::pushed(const fleet_tree& before, const fleet_commit& now) {
  for (const auto& c : now.told) {
    auto id = trailer(c, "Kubeopera-App");
    auto revision = std::stoll("0" + trailer(c, "Kubeopera-Revision"));
    auto was = before.find(c.directory);
    auto what = now.id + " (app " + id + ", revision " + std::to_string(revision) + ")";
    const auto& apps = s_.db->apps();
    if (was != before.end() && was->second->app != id) {
      auto owner = apps.find(was->second->app);
      if (owner != apps.end() && !owner->second.deleting)
        s_.e->broken("nothing is deleted that was not asked for",
                     what + " replaces or removes the directory of live app " + owner->first);
    }
    auto row = apps.find(id);
    if (c.files.empty()) {
      if (row != apps.end() && !row->second.deleting)
        s_.e->broken("nothing is deleted that was not asked for", what + " removes the directory of a live app");
      continue;
    }
    if (row == apps.end()) s_.e->broken("a deleted app leaves nothing", what + " commits manifests of an app whose row is gone");
    auto& newest = newest_commit_[id];
    if (revision < newest)
      s_.e->broken("never an older revision over a newer", what + " is committed over revision " + std::to_string(newest));
    newest = std::max<std::int64_t>(newest, revision);
    if (++commits_[{id, revision}] > 1) s_.e->broken("at most one commit a revision", what + " is committed again");
    auto ever = s_.db->ever().find(id);
    if (ever == s_.db->ever().end() || !ever->second.revisions.contains(revision)) continue;
    if (c.files.begin()->second.find(spec_text(ever->second.revisions.at(revision))) == std::string::npos)
      s_.e->broken("the commit holds what was accepted", what);
  }
}

void promises::delivered(const outbox_record& r) {
  if (r.row.topic != "app") return;
  for (const auto& [id, h] : s_.db->ever()) {
    if (h.last.resource != r.row.aggregate) continue;
    auto there = s_.host->get(kube::types::kubeopera_apps(), {system_namespace, r.row.aggregate});
    bool going = !there || kube::being_deleted(*there);
    auto newest = newest_resource_.find(id);
    bool written = newest != newest_resource_.end() && newest->second >= r.revision;
    bool good = r.deletes ? going : written || (h.asked_to_go && going);
    if (!good)
      s_.e->broken("the outbox loses nothing", r.row.id + " of " + r.row.aggregate + " (revision " + std::to_string(r.revision) +
                                                   (r.deletes ? ", deletion" : "") + ") is marked as done, and is not");
  }
}

void promises::given_up(const outbox_record& r) {
  s_.e->broken("the outbox loses nothing", r.row.id + " of " + r.row.aggregate + " is a dead letter");
}

// ---- when all is still ----------------------------------------------------------------------------------------------

std::string promises::not_delivered(const api::app_row& row) const {
  auto there = s_.host->get(kube::types::kubeopera_apps(), {system_namespace, row.resource});
  if (!there) return "it has no resource";
  if (kube::being_deleted(*there)) return "its resource is being deleted";
  if (revision_of(*there) != row.revision) return "its resource is at another revision";
  if (!has_finalizer(*there, manifest::finalizer_name)) return "its resource has no finalizer";
  auto status = json::get_object(*there, {"status"});
  if (!status || json::get_int(*status, {"revision"}) != row.revision) return "its status is at another revision";
  if (json::get_string(*status, {"phase"}) != "Delivered")
    return "its phase is " + std::string(json::get_string(*status, {"phase"}));
  if (!s_.git->contains(std::string(json::get_string(*status, {"commit"})))) return "its commit is not on the branch";
  auto d = s_.git->tree().find(directory_of(row));
  if (d == s_.git->tree().end()) return "it has no directory";
  if (d->second->app != row.id || d->second->revision != row.revision) return "its directory is at another revision";
  auto v = s_.vclusters.find(row.vcluster);
  if (v == s_.vclusters.end() || v->second.inside->gone()) return "its vCluster is gone";
  auto k = v->second.inside->get(kube::types::kustomizations(), {app_controller::flux_namespace, row.name});
  if (!k) return "it has no Kustomization";
  if (kube::annotation_of(*k, app_controller::resource_annotation) != std::string(system_namespace) + "/" + row.resource)
    return "its Kustomization belongs to another";
  const auto* files = v->second.delivery->deployed(row.name);
  if (!files || *files != d->second->files) return "what runs is not what was committed";
  return {};
}

std::string promises::leftover_of(const std::string& id, const app_history& h) const {
  if (s_.db->apps().contains(id)) return "its row is still there";
  if (s_.host->get(kube::types::kubeopera_apps(), {system_namespace, h.last.resource})) return "its resource is still there";
  for (const auto& [path, d] : s_.git->tree())
    if (d->app == id) return "its directory is still there";
  auto v = s_.vclusters.find(h.last.vcluster);
  if (v == s_.vclusters.end() || v->second.inside->gone()) return {};
  auto k = v->second.inside->get(kube::types::kustomizations(), {app_controller::flux_namespace, h.last.name});
  if (k && kube::annotation_of(*k, app_controller::resource_annotation) == std::string(system_namespace) + "/" + h.last.resource)
    return "its Kustomization is still there";
  bool renewed = s_.db->app_named(h.last.vcluster, h.last.name);
  if (!renewed && v->second.inside->get(kube::types::namespaces(), {"", h.last.name})) return "its namespace is still there";
  return {};
}

std::string promises::unsettled_app(const std::string& id, const app_history& h) const {
  auto row = s_.db->apps().find(id);
  auto why = h.asked_to_go ? leftover_of(id, h) : not_delivered(row->second);
  if (why.empty()) return why;
  return (h.asked_to_go ? "deleted app " : "app ") + h.last.resource + ": " + why;
}

std::string promises::unsettled() const {
  for (const auto& r : s_.db->outbox())
    if (r.open()) return "outbox " + r.row.id + " of " + r.row.aggregate + " is open";
  for (const auto& [id, h] : s_.db->ever())
    if (auto why = unsettled_app(id, h); !why.empty()) return why;
  for (const auto& [name, v] : s_.db->vclusters())
    if (v.deleting) return "vCluster " + name + " is still there";
  for (const auto& [name, v] : s_.vclusters)
    if (!s_.db->vclusters().contains(name) && !v.inside->gone()) return "vCluster " + name + " outlives its row";
  return {};
}

}  // namespace kubeopera::simulation
