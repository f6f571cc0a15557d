#include "server/services/app_controller/reconciler.hpp"

#include "server/services/app_controller/step.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <algorithm>

namespace kubeopera::inline v1::app_controller {

using control::outcome;

// ---- delivery_watch -------------------------------------------------------------------------------------------------

delivery_watch::delivery_watch(asio::any_io_executor executor, std::function<void(const std::string& key)> wake,
                               std::function<bool(const std::string& key)> settled, kube::informer_options like)
    : executor_(std::move(executor)), wake_(std::move(wake)), settled_(std::move(settled)), like_(std::move(like)) {}

namespace {

asio::awaitable<void> run_informer(std::shared_ptr<kube::informer> cache) {
  auto ended = co_await cache->run();
  static_cast<void>(ended);  // it only ever ends by being cancelled
}

}  // namespace

void delivery_watch::ensure(const std::string& tenant, std::shared_ptr<kube::client> client) {
  std::lock_guard lock(mutex_);
  auto& e = all_[tenant];
  if (e.cache) return;
  auto o = like_;
  o.ns = flux_namespace;
  o.label_selector = "app.kubernetes.io/managed-by=kubeopera";
  e.cache = std::make_shared<kube::informer>(std::move(client), kube::types::kustomizations(), o);
  auto tell = [wake = wake_](const kube::object_ptr& k) {
    auto key = kube::annotation_of(*k, resource_annotation);
    if (!key.empty()) wake(std::string(key));
  };
  kube::informer_handler h;
  h.added = tell;
  h.updated = [tell, settled = settled_](const kube::object_ptr& before, const kube::object_ptr& now) {
    auto key = kube::annotation_of(*now, resource_annotation);
    if (kube::annotation_of(*before, resource_annotation) != key) tell(before);
    if (undoes_delivery(*before, *now) || !settled(std::string(key))) tell(now);
  };
  h.deleted = tell;
  e.cache->add_handler(std::move(h));
  e.running = background::start(executor_, run_informer(e.cache));
}

void delivery_watch::forget(const std::string& tenant) {
  std::lock_guard lock(mutex_);
  auto it = all_.find(tenant);
  if (it == all_.end()) return;
  // Counters never go back.
  auto s = it->second.cache->stats();
  ended_.lists += s.lists;
  ended_.events += s.events;
  ended_.errors += s.errors;
  all_.erase(it);
}

void delivery_watch::stop() {
  std::lock_guard lock(mutex_);
  for (auto& [name, e] : all_) e.running.stop();
  all_.clear();
}

std::pair<std::size_t, kube::informer_stats> delivery_watch::stats() {
  std::lock_guard lock(mutex_);
  kube::informer_stats sum = ended_;
  for (const auto& [name, e] : all_) {
    auto s = e.cache->stats();
    sum.objects += s.objects;
    sum.lists += s.lists;
    sum.events += s.events;
    sum.errors += s.errors;
    if (s.quiet && (!sum.quiet || *s.quiet > *sum.quiet)) sum.quiet = s.quiet;
  }
  return {all_.size(), sum};
}

// ---- reconciler -----------------------------------------------------------------------------------------------------

reconciler::reconciler(std::shared_ptr<kube::client> host, vcluster_lookup vcluster,
                       std::shared_ptr<app_service::client> manifests, std::shared_ptr<gitops::committer> git,
                       std::shared_ptr<delivery_watch> watch, options o, clock& clk, logger& log)
    : host_(std::move(host)),
      vcluster_(std::move(vcluster)),
      manifests_(std::move(manifests)),
      git_(std::move(git)),
      watch_(std::move(watch)),
      options_(std::move(o)),
      clock_(clk),
      log_(log) {}

task<outcome> reconciler::reconcile(const std::string& key) {
  step s;
  auto slash = key.find('/');
  s.key = {key.substr(0, slash), key.substr(slash + 1)};
  auto found = co_await host_->get(kube::types::kubeopera_apps(), s.key);
  if (!found && found.error().code() == errc::not_found) co_return outcome::done();
  if (!found) co_return found.error();
  s.object = std::move(*found);
  if (auto* status = json::get_object(s.object, {"status"})) {
    auto decoded = json::decode<manifest::app_resource_status>(*status);
    if (decoded) s.before = std::move(*decoded);
  }
  s.status = s.before;
  auto* spec = s.object.if_contains("spec");
  auto decoded = json::decode<manifest::app_resource_spec>(spec ? *spec : json::value());
  if (!decoded) co_return co_await stop_at(s, "ManifestsRendered", decoded.error());
  s.spec = std::move(*decoded);
  auto directory = gitops::app_directory(s.spec.tenant_ref, s.spec.app.name);
  if (!directory) co_return co_await stop_at(s, "ManifestsRendered", directory.error());
  s.directory = std::move(*directory);
  if (kube::being_deleted(s.object)) co_return co_await retire(s);
  co_return co_await deliver(s);
}

// Writes a status that says where it stopped: for good (the spec is wrong) or until the next try. A refusal by Git or a cluster
// is somebody's to lift, elsewhere: it is told as stalled, and asked for again with growing delays.
task<outcome> reconciler::stop_at(step& s, const char* condition, const error& e) {
  auto generation = kube::generation_of(s.object);
  bool for_good = e.code() == errc::invalid_argument;
  bool stalled = for_good || e.code() == errc::permission_denied;
  auto message = e.message();
  auto violations = e.violations();
  for (const auto& v : violations) message += "; " + v.pointer + ": " + v.message;
  set_condition(s.status, condition, "False", e.reason(), message, generation, clock_.now());
  set_summary(s.status, "False", !stalled, stalled, e.reason(), message, generation, clock_.now());
  bool news = json::encode(s.status) != json::encode(s.before);
  KUBEOPERA_CO_CHECK(co_await save_status(s));
  if (news) {
    auto ids = s.ids();
    log_.log(stalled ? level::error : level::warn, "app delivery stopped",
             {field(ids), {"step", condition}, {"reason", e.reason()}, {"error", e}});
  }
  if (for_good) co_return outcome::stalled(e);
  co_return e;
}

namespace {

bool has_finalizer(const kube::object& o) {
  auto* all = json::get_array(o, {"metadata", "finalizers"});
  return all && std::any_of(all->begin(), all->end(), [](const auto& f) { return json::as_view(f) == manifest::finalizer_name; });
}

}  // namespace

task<bool> reconciler::ensure_finalizer(step& s) {
  if (has_finalizer(s.object)) co_return true;
  auto* all = json::get_array(s.object, {"metadata", "finalizers"});
  json::array next = all ? *all : json::array();
  next.emplace_back(manifest::finalizer_name);
  json::object meta{{"resourceVersion", kube::resource_version_of(s.object)}, {"finalizers", std::move(next)}};
  json::object patch{{"metadata", std::move(meta)}};
  kube::write_options o;
  o.field_manager = field_manager;
  KUBEOPERA_CO_TRY(auto updated, co_await host_->patch(kube::types::kubeopera_apps(), s.key, kube::patch_kind::merge, patch, o));
  s.object = std::move(updated);
  co_return true;
}

task<outcome> reconciler::deliver(step& s) {
  KUBEOPERA_CO_CHECK(co_await ensure_finalizer(s));
  auto generation = kube::generation_of(s.object);
  auto resolved = co_await resolve(s);
  if (!resolved) {
    auto e = resolved.error();
    bool waiting = e.reason() == "VClusterNotReady";
    auto stopped = co_await stop_at(s, "VClusterResolved", e);
    if (waiting) co_return outcome::again_after(std::chrono::seconds(1));
    co_return std::move(stopped);
  }
  set_condition(s.status, "VClusterResolved", "True", "Resolved", "", generation, clock_.now());
  auto rendered = co_await render(s);
  if (!rendered) co_return co_await stop_at(s, "ManifestsRendered", rendered.error());
  set_condition(s.status, "ManifestsRendered", "True", "Rendered", "", generation, clock_.now());
  auto committed = co_await commit(s);
  if (!committed) co_return co_await stop_at(s, "Committed", committed.error());
  set_condition(s.status, "Committed", "True", "Pushed", s.status.commit, generation, clock_.now());
  auto configured = co_await configure_flux(s);
  if (!configured) co_return co_await stop_at(s, "FluxConfigured", configured.error());
  set_condition(s.status, "FluxConfigured", "True", "Configured", "", generation, clock_.now());
  co_return co_await observe_delivery(s);
}

task<void> reconciler::resolve(step& s) {
  KUBEOPERA_CO_TRY(s.inside, co_await vcluster_(s.spec.tenant_ref));
  s.status.vcluster = s.spec.tenant_ref;
  watch_->ensure(s.spec.tenant_ref, s.inside);
  co_return result<void>();
}

task<void> reconciler::render(step& s) {
  app_service::render_request request;
  request.app = s.spec.app;
  auto& c = request.context;
  c.app_id = s.spec.app_id;
  c.revision = s.spec.revision;
  c.host = s.spec.host;
  c.tenant_id = s.spec.tenant_id;
  c.cloudspace = s.spec.cloudspace;
  c.ingress_class = options_.ingress_class;
  c.wildcard_tls_secret = options_.wildcard_tls_secret;
  c.previous_template_hash = s.before.template_hash;
  c.previous_template_revision = s.before.template_revision;
  KUBEOPERA_CO_TRY(s.rendered, co_await manifests_->render(request));
  s.status.address = (s.spec.app.tls ? "https://" : "http://") + s.spec.host;
  co_return result<void>();
}

task<void> reconciler::commit(step& s) {
  bool same =
      s.before.revision == s.spec.revision && s.before.content_hash == s.rendered.content_hash && !s.before.commit.empty();
  if (same) co_return result<void>();
  gitops::change change;
  change.directory = s.directory;
  change.files = s.rendered.files;
  change.subject = "Deploy " + s.spec.app.name + " to " + s.spec.tenant_ref + ", revision " + std::to_string(s.spec.revision);
  change.trailers = s.trailers();
  KUBEOPERA_CO_TRY(auto receipt, co_await git_->submit(std::move(change)));
  s.status.commit = receipt.commit;
  s.status.revision = s.spec.revision;
  s.status.template_hash = s.rendered.template_hash;
  s.status.template_revision = s.rendered.template_revision;
  s.status.content_hash = s.rendered.content_hash;
  auto ids = s.ids();
  log_.info("app committed", {field(ids), {"commit", receipt.commit}});
  co_return result<void>();
}

task<void> reconciler::configure_flux(step& s) {
  kube::write_options o;
  o.field_manager = field_manager;
  o.force = true;
  const auto& sources = kube::types::git_repositories();
  const auto& kustomizations = kube::types::kustomizations();
  auto source = make_source(options_);
  auto live = co_await s.inside->get(sources, {flux_namespace, source_name});
  if (!live && live.error().code() != errc::not_found) co_return live.error();
  if (!live || !covers(*live, source)) live = co_await s.inside->apply(sources, source, o);
  if (!live) co_return live.error();
  KUBEOPERA_CO_CHECK(co_await poke(s, *live));
  auto wanted = make_kustomization(options_, s.key, s.spec.app.name, s.directory);
  auto there = co_await s.inside->get(kustomizations, {flux_namespace, s.spec.app.name});
  if (!there && there.error().code() != errc::not_found) co_return there.error();
  if (!there || !covers(*there, wanted)) KUBEOPERA_CO_CHECK(co_await s.inside->apply(kustomizations, wanted, o));
  co_return result<void>();
}

// Asks Flux to fetch now, unless its artifact holds our commit already or this commit was asked for before.
task<bool> reconciler::poke(step& s, const kube::object& source) {
  auto seen = revision_commit(json::get_string(source, {"status", "artifact", "revision"}));
  if (seen == s.status.commit) co_return false;
  if (kube::annotation_of(source, "reconcile.fluxcd.io/requestedAt") == s.status.commit) co_return false;
  if (!seen.empty()) {
    auto held = co_await git_->is_ancestor(s.status.commit, seen);
    if (held && *held) co_return false;
  }
  json::object meta{{"annotations", json::object{{"reconcile.fluxcd.io/requestedAt", s.status.commit}}}};
  json::object patch{{"metadata", std::move(meta)}};
  kube::write_options o;
  o.field_manager = field_manager;
  KUBEOPERA_CO_CHECK(co_await s.inside->patch(kube::types::git_repositories(), {flux_namespace, source_name},
                                              kube::patch_kind::merge, patch, o));
  co_return true;
}

task<outcome> reconciler::observe_delivery(step& s) {
  auto k = co_await s.inside->get(kube::types::kustomizations(), {flux_namespace, s.spec.app.name});
  if (!k) co_return co_await stop_at(s, "Applied", k.error());
  auto applied_commit = revision_commit(json::get_string(*k, {"status", "lastAppliedRevision"}));
  auto attempted_commit = revision_commit(json::get_string(*k, {"status", "lastAttemptedRevision"}));
  bool applied = false, attempted = false;
  if (!applied_commit.empty()) {
    KUBEOPERA_CO_TRY(applied, co_await git_->is_ancestor(s.status.commit, applied_commit));
  }
  if (!attempted_commit.empty()) {
    KUBEOPERA_CO_TRY(attempted, co_await git_->is_ancestor(s.status.commit, attempted_commit));
  }
  auto d = judge_delivery(*k, applied, attempted);
  auto generation = kube::generation_of(s.object);
  auto now = clock_.now();
  bool ok = d.what == delivery::kind::applied;
  bool failed = d.what == delivery::kind::failed || d.what == delivery::kind::suspended;
  set_condition(s.status, "Applied", ok ? "True" : failed ? "False" : "Unknown", d.reason, d.message, generation, now);
  set_summary(s.status, ok ? "True" : failed ? "False" : "Unknown", !ok, false, d.reason, d.message, generation, now);
  bool news = ok && s.before.observedGeneration != generation;
  KUBEOPERA_CO_CHECK(co_await save_status(s));
  if (news) {
    auto ids = s.ids();
    log_.info("app delivered", {field(ids), {"commit", s.status.commit}});
  }
  if (ok) co_return outcome::done();
  // The watch wakes this at the change; the delay is the safety net.
  co_return outcome::again_after(failed ? std::chrono::seconds(10) : std::chrono::seconds(2));
}

task<void> reconciler::save_status(step& s) {
  auto next = json::encode(s.status);
  if (next == json::encode(s.before)) co_return result<void>();
  // Only over the state that this step has read: a slower step must not say what a faster one has overtaken.
  json::object meta{{"resourceVersion", kube::resource_version_of(s.object)}};
  json::object patch{{"metadata", std::move(meta)}, {"status", next}};
  kube::write_options o;
  o.field_manager = field_manager;
  o.subresource = "status";
  auto saved = co_await host_->patch(kube::types::kubeopera_apps(), s.key, kube::patch_kind::merge, patch, o);
  if (!saved && saved.error().code() != errc::not_found) co_return saved.error();
  if (saved) s.object = std::move(*saved);
  s.before = s.status;
  co_return result<void>();
}

// ---- deletion -------------------------------------------------------------------------------------------------------

namespace {

// Deletes the very object that was read, not a later one of its name: the request may arrive late.
task<void> remove_this(kube::client& inside, const kube::resource_type& type, const kube::object& obj) {
  kube::delete_options o;
  o.uid = std::string(kube::uid_of(obj));
  auto gone = co_await inside.remove(type, kube::key_of(obj), o);
  if (!gone && gone.error().code() != errc::not_found) co_return gone.error();
  co_return result<void>();
}

// Deletes the Kustomization, resumed so that Flux prunes. True when it and the app's namespace are gone.
task<bool> take_down(kube::client& inside, const std::string& app) {
  const auto& type = kube::types::kustomizations();
  kube::object_key key{flux_namespace, app};
  auto k = co_await inside.get(type, key);
  if (k) {
    if (kube::being_deleted(*k)) co_return false;
    if (json::get_bool(*k, {"spec", "suspend"})) {
      json::object patch{{"spec", json::object{{"suspend", false}}}};
      kube::write_options o;
      o.field_manager = field_manager;
      KUBEOPERA_CO_CHECK(co_await inside.patch(type, key, kube::patch_kind::merge, patch, o));
    }
    KUBEOPERA_CO_CHECK(co_await remove_this(inside, type, *k));
    co_return false;
  }
  if (k.error().code() != errc::not_found) co_return k.error();
  auto ns = co_await inside.get(kube::types::namespaces(), {"", app});
  if (!ns && ns.error().code() == errc::not_found) co_return true;
  if (!ns) co_return ns.error();
  if (!kube::being_deleted(*ns)) {
    // Made for the app's Secrets before Flux ever applied anything: nobody else will remove it.
    KUBEOPERA_CO_CHECK(co_await remove_this(inside, kube::types::namespaces(), *ns));
  }
  co_return false;
}

}  // namespace

// Takes the directory away, once. The commit is made also where there is no directory, so that no push of an earlier process that
// is still under way can bring it back.
task<void> reconciler::remove_directory(step& s) {
  bool removed = !s.before.commit.empty() && s.before.content_hash.empty();
  if (removed) co_return result<void>();
  gitops::change removal;
  removal.directory = s.directory;
  removal.always = true;
  removal.subject = "Remove " + s.spec.app.name + " from " + s.spec.tenant_ref;
  removal.trailers = s.trailers();
  KUBEOPERA_CO_TRY(auto receipt, co_await git_->submit(std::move(removal)));
  s.status.commit = receipt.commit;
  s.status.revision = s.spec.revision;
  s.status.template_hash.clear();
  s.status.content_hash.clear();
  s.status.template_revision = 0;
  auto ids = s.ids();
  log_.info("app removed from the fleet repository", {field(ids), {"commit", receipt.commit}});
  co_return co_await save_status(s);
}

task<outcome> reconciler::retire(step& s) {
  if (!has_finalizer(s.object)) co_return outcome::done();
  auto removed = co_await remove_directory(s);
  if (!removed) co_return co_await stop_at(s, "Committed", removed.error());
  auto inside = co_await vcluster_(s.spec.tenant_ref);
  // A vCluster that is gone took everything with it.
  bool no_vcluster = !inside && inside.error().code() == errc::not_found;
  if (!inside && !no_vcluster) co_return co_await stop_at(s, "VClusterResolved", inside.error());
  if (inside) {
    watch_->ensure(s.spec.tenant_ref, *inside);
    auto down = co_await take_down(**inside, s.spec.app.name);
    if (!down) co_return co_await stop_at(s, "Applied", down.error());
    if (!*down) co_return outcome::again_after(std::chrono::milliseconds(100));
  }
  json::array rest;
  for (const auto& f : *json::get_array(s.object, {"metadata", "finalizers"}))
    if (json::as_view(f) != manifest::finalizer_name) rest.push_back(f);
  json::object meta{{"resourceVersion", kube::resource_version_of(s.object)}, {"finalizers", std::move(rest)}};
  json::object patch{{"metadata", std::move(meta)}};
  kube::write_options o;
  o.field_manager = field_manager;
  auto done = co_await host_->patch(kube::types::kubeopera_apps(), s.key, kube::patch_kind::merge, patch, o);
  if (!done && done.error().code() != errc::not_found) co_return done.error();
  co_return outcome::done();
}

}  // namespace kubeopera::inline v1::app_controller
