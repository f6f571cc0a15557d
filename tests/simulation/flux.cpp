#include "tests/simulation/flux.hpp"

namespace kubeopera::simulation {
namespace {

const actor flux_actor{"flux", false};
const actor operator_actor{"vcluster operator", false};
constexpr const char* flux_ns = "flux-system";
constexpr const char* flux_finalizer = "finalizers.fluxcd.io";
constexpr const char* tenant_finalizer = "tenancy.kubeopera.io/vcluster";

object condition(const char* status, const std::string& reason) {
  object c{{"type", "Ready"}, {"status", status}, {"reason", reason}, {"message", reason}};
  return c;
}

object finalizers_patch(json::array finalizers) {
  object meta{{"finalizers", std::move(finalizers)}};
  return object{{"metadata", std::move(meta)}};
}

}  // namespace

void flux::see(const kube::resource_type& type, const object_ptr& before, const object_ptr& now) {
  auto& d = inside_->world().chance();
  if (type.kind == "GitRepository" && now) {
    bool asked = !before || kube::annotation_of(*before, "reconcile.fluxcd.io/requestedAt") !=
                                kube::annotation_of(*now, "reconcile.fluxcd.io/requestedAt");
    if (asked) fetch_after(d.between(0ms, 1500ms));
    if (!polling_) {
      polling_ = true;
      fetch_after(60s);
    }
  }
  if (type.kind == "Kustomization" && now) {
    bool news = !before || kube::generation_of(*before) != kube::generation_of(*now) ||
                kube::being_deleted(*before) != kube::being_deleted(*now);
    if (news) look_after(d.between(0ms, 2s), std::string(kube::name_of(*now)));
  }
  if (type.kind == "Namespace" && !now) deployed_.erase(std::string(kube::name_of(*before)));
}

void flux::fetch_after(duration delay) {
  bool periodic = delay >= 60s;
  inside_->world().after(delay, [self = shared_from_this(), periodic] {
    if (self->inside_->gone()) return;
    self->fetch();
    if (periodic) self->fetch_after(60s);
  });
}

void flux::fetch() {
  kube::object_key key{flux_ns, "fleet"};
  if (!inside_->get(kube::types::git_repositories(), key) || origin_->tip().empty() || artifact_ == origin_->tip()) return;
  artifact_ = origin_->tip();
  object artifact{{"revision", "main@sha1:" + artifact_}};
  object status{{"artifact", std::move(artifact)}};
  auto done = inside_->patch(flux_actor, kube::types::git_repositories(), key, object{{"status", std::move(status)}}, true);
  if (!done) return;
  for (const auto& k : inside_->list(kube::types::kustomizations(), flux_ns).items)
    look_after(inside_->world().chance().between(0ms, 1s), std::string(kube::name_of(k)));
}

void flux::look_after(duration delay, const std::string& app) {
  inside_->world().after(delay, [self = shared_from_this(), app] {
    if (!self->inside_->gone()) self->look(app);
  });
}

void flux::look(const std::string& app) {
  auto k = inside_->get(kube::types::kustomizations(), {flux_ns, app});
  if (!k) return;
  if (kube::being_deleted(*k)) return prune(app, *k);
  if (json::get_bool(*k, {"spec", "suspend"})) return;
  if (!has_finalizer(*k, flux_finalizer)) {
    auto marked = inside_->patch(flux_actor, kube::types::kustomizations(), {flux_ns, app},
                                 finalizers_patch(json::array{flux_finalizer}), false);
    if (!marked) return;
  }
  if (!artifact_.empty()) apply(app, *k);
}

void flux::apply(const std::string& app, const object& k) {
  auto path = std::string(json::get_string(k, {"spec", "path"})).substr(2);
  const auto& tree = origin_->tree_of(artifact_);
  auto found = tree.find(path);
  if (found == tree.end()) {
    say(app, false, "ArtifactFailed", false);
    return look_after(10s, app);
  }
  auto ns = inside_->get(kube::types::namespaces(), {"", app});
  if (ns && kube::being_deleted(*ns)) {
    say(app, false, "ReconciliationFailed", false);
    return look_after(10s, app);
  }
  if (!ns) {
    auto made = inside_->create(flux_actor, kube::types::namespaces(), kube::make_object(kube::types::namespaces(), {"", app}));
    if (!made) return look_after(10s, app);
  }
  deployed_[app] = found->second->files;
  say(app, true, "ReconciliationSucceeded", true);
}

void flux::say(const std::string& app, bool ready, const std::string& reason, bool applied) {
  auto revision = "main@sha1:" + artifact_;
  object status{{"conditions", json::array{condition(ready ? "True" : "False", reason)}}, {"lastAttemptedRevision", revision}};
  if (applied) status["lastAppliedRevision"] = revision;
  auto done =
      inside_->patch(flux_actor, kube::types::kustomizations(), {flux_ns, app}, object{{"status", std::move(status)}}, true);
  static_cast<void>(done);  // it may be gone by now
}

void flux::prune(const std::string& app, const object& k) {
  bool applied = !json::get_string(k, {"status", "lastAppliedRevision"}).empty();
  if (applied) {
    auto ns = inside_->remove(flux_actor, kube::types::namespaces(), {"", app});
    static_cast<void>(ns);  // it may be gone already
  }
  auto freed = inside_->patch(flux_actor, kube::types::kustomizations(), {flux_ns, app}, finalizers_patch(json::array()), false);
  static_cast<void>(freed);
}

const std::map<std::string, std::string>* flux::deployed(const std::string& ns) const {
  auto it = deployed_.find(ns);
  return it == deployed_.end() ? nullptr : &it->second;
}

// ---- vClusters ------------------------------------------------------------------------------------------------------

void provisioner::set_ready(const std::string& name, bool ready) {
  object status{{"conditions", json::array{condition(ready ? "True" : "False", ready ? "Ready" : "Restarting")}},
                {"host_namespace", "vc-" + name}};
  auto said = host_->patch(operator_actor, kube::types::kubeopera_tenants(), {system_namespace, name},
                           object{{"status", std::move(status)}}, true);
  static_cast<void>(said);  // it may be gone
}

void provisioner::see(const object_ptr& before, const object_ptr& now) {
  if (!now) return;
  auto& world = host_->world();
  auto name = std::string(kube::name_of(*now));
  kube::object_key key{system_namespace, name};
  if (!before) {
    world.after(world.chance().between(0ms, 4s), [self = shared_from_this(), name, key] {
      auto there = self->host_->get(kube::types::kubeopera_tenants(), key);
      if (!there || kube::being_deleted(*there)) return;
      self->begin(name);
      auto marked = self->host_->patch(operator_actor, kube::types::kubeopera_tenants(), key,
                                       finalizers_patch(json::array{tenant_finalizer}), false);
      if (marked) self->set_ready(name, true);
    });
  } else if (kube::being_deleted(*now) && !kube::being_deleted(*before)) {
    world.after(world.chance().between(0ms, 4s), [self = shared_from_this(), name, key] {
      self->end(name);
      auto freed =
          self->host_->patch(operator_actor, kube::types::kubeopera_tenants(), key, finalizers_patch(json::array()), false);
      static_cast<void>(freed);
    });
  }
}

}  // namespace kubeopera::simulation
