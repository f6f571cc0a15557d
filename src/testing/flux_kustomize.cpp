// kustomize-controller: a Kustomization's pass and the status it writes on the way.
#include "src/testing/flux_kustomize.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <filesystem>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

const std::string manager = "kustomize-controller";

class kustomize_controller final : public worker_controller {
 public:
  kustomize_controller(environment& e, fetched_sources& s, type_registry& r) : worker_controller(e), sources_(s), registry_(r) {}
  std::string_view name() const override { return "kustomize-controller"; }
  std::vector<resource_type> watches() const override { return {kube::types::kustomizations(), kube::types::git_repositories()}; }
  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override;

 protected:
  task<std::optional<duration>> pass(object_key key) override;

 private:
  // One run over a revision.
  struct attempt {
    attempt(flux_status st, object_key k) : s(std::move(st)), key(std::move(k)) {}
    flux_status s;
    object_key key;
    std::string revision, commit, digest, limit;
    duration timeout{};
    steady_time began = std::chrono::steady_clock::now();
  };
  using next = std::optional<duration>;
  task<next> finish_off(object_key key, const object& obj);
  task<next> not_ready(flux_status& s, std::string reason, std::string message);
  task<bool> dependencies_ready(flux_status& s);
  task<next> reconcile_revision(attempt& a);
  task<next> failed(attempt& a, std::string reason, std::string message);
  task<next> succeeded(attempt& a);
  task<void> stage(attempt& a, std::string_view what);
  // The directory of a revision; its files only where they differ from what was built last.
  struct directory {
    std::string tree, where;
    bool known = false;
    source_files files;
  };
  result<directory> fetch(const attempt& a);
  result<built> build(const object_key& key, const directory& d);
  task<void> check_health(attempt& a, std::vector<inventory_entry> what, bool changed);
  std::vector<inventory_entry> health_targets(const attempt& a, const std::vector<inventory_entry>& applied) const;
  void remember(attempt& a, std::string_view status);
  void tell(const flux_status& s, const std::string& revision, std::string reason, std::string message, bool warning = false);
  duration retry_of(const object& obj) const;

  fetched_sources& sources_;
  type_registry& registry_;
  settled_objects settled_;
  struct built_from {
    std::string tree;  // the directory's id in Git
    built made;
  };
  bool may_be_quiet(const attempt& a) const;
  std::map<object_key, built_from> built_;  // most commits leave most directories as they were
};

object_key source_key(const object& k) {
  object_key key;
  key.ns = std::string(json::get_string(k, {"spec", "sourceRef", "namespace"}, kube::namespace_of(k)));
  key.name = std::string(json::get_string(k, {"spec", "sourceRef", "name"}));
  return key;
}

void kustomize_controller::on_change(const resource_type& type, const shared_object& before, const shared_object& after) {
  if (type == kube::types::git_repositories()) {
    if (!after) return;
    auto revision = json::get_string(*after, {"status", "artifact", "revision"});
    if (revision.empty() || (before && json::get_string(*before, {"status", "artifact", "revision"}) == revision)) return;
    for (const auto& k : env.objects.list(kube::types::kustomizations())) {
      if (source_key(*k) != kube::key_of(*after)) continue;
      bool has = json::get_string(*k, {"status", "lastAttemptedRevision"}) == revision && kube::condition_true(*k, "Ready");
      if (!has || before) enqueue(kube::key_of(*k));
    }
    return;
  }
  if (type != kube::types::kustomizations() || !after) return;
  bool woken = !before || kube::generation_of(*before) != kube::generation_of(*after) ||
               kube::annotation_of(*before, flux_request) != kube::annotation_of(*after, flux_request) ||
               (kube::being_deleted(*after) && !kube::being_deleted(*before));
  if (woken) enqueue(kube::key_of(*after));
}

void kustomize_controller::tell(const flux_status& s, const std::string& revision, std::string reason, std::string message,
                                bool warning) {
  happening h;
  h.key = kube::key_of(s.obj());
  h.api_version = kube::types::kustomizations().api_version();
  h.kind = "Kustomization";
  h.uid = std::string(kube::uid_of(s.obj()));
  h.resource_version = std::string(kube::resource_version_of(s.obj()));
  h.type = warning ? "Warning" : "Normal";
  h.reason = std::move(reason);
  h.message = std::move(message);
  h.component = h.manager = manager;
  if (!revision.empty()) h.annotations["kustomize.toolkit.fluxcd.io/revision"] = revision;
  env.record(std::move(h));
}

duration kustomize_controller::retry_of(const object& obj) const {
  auto interval = parse_go_duration(json::get_string(obj, {"spec", "interval"}, "10m")).value_or(10min);
  return parse_go_duration(json::get_string(obj, {"spec", "retryInterval"})).value_or(interval);
}

task<kustomize_controller::next> kustomize_controller::finish_off(object_key key, const object& obj) {
  if (!has_finalizer(obj, flux_finalizer)) co_return next();
  built_.erase(key);
  flux_status s(env, kube::types::kustomizations(), obj, manager);
  auto began = std::chrono::steady_clock::now();
  if (json::get_bool(obj, {"spec", "prune"}) && !json::get_bool(obj, {"spec", "suspend"})) {
    if (registry_.all().empty()) KUBEOPERA_CO_CHECK(co_await registry_.refresh(*env.api));
    applier a(env, registry_, settled_, key);
    KUBEOPERA_CO_CHECK(co_await a.prune(inventory_of(s.rest())));
    std::string text;
    for (const auto& c : a.changes) text += (text.empty() ? "" : "\n") + c;
    if (!text.empty()) tell(s, {}, "ReconciliationSucceeded", text);
  }
  auto copy = obj;
  remove_finalizer(copy, flux_finalizer);
  const auto* left = json::get_array(copy, {"metadata", "finalizers"});
  array rest;
  if (left) rest = *left;
  KUBEOPERA_CO_CHECK(co_await s.set_finalizers(rest));
  tell(s, {}, "ReconciliationSucceeded",
       "Reconciliation finished in " + format_go_duration(std::chrono::steady_clock::now() - began) + ", next run in " +
           format_go_duration(parse_go_duration(json::get_string(obj, {"spec", "interval"}, "10m")).value_or(10min)));
  co_return next();
}

task<kustomize_controller::next> kustomize_controller::not_ready(flux_status& s, std::string reason, std::string message) {
  s.set("Ready", "False", reason, std::move(message));
  auto asked = kube::annotation_of(s.obj(), flux_request);
  if (!asked.empty()) s.rest()["lastHandledReconcileAt"] = asked;
  KUBEOPERA_CO_CHECK(co_await s.patch());
  co_return next(env.options.flux_dependency_retry);
}

task<bool> kustomize_controller::dependencies_ready(flux_status& s) {
  const auto* all = json::get_array(s.obj(), {"spec", "dependsOn"});
  if (!all) co_return true;
  for (const auto& d : *all) {
    object_key key;
    key.ns = std::string(json::get_string(d.as_object(), {"namespace"}, kube::namespace_of(s.obj())));
    key.name = std::string(json::get_string(d.as_object(), {"name"}));
    auto other = env.objects.get(kube::types::kustomizations(), key);
    std::string why;
    if (!other)
      why = "dependency '" + key.str() + "' not found";
    else if (!kube::condition_true(*other, "Ready") ||
             json::get_int(*other, {"status", "observedGeneration"}, -1) != kube::generation_of(*other)) {
      why = "dependency '" + key.str() + "' is not ready";
    }
    if (why.empty()) continue;
    auto waiting = co_await not_ready(s, "DependencyNotReady", why);
    if (!waiting) co_return waiting.error();
    tell(s, {}, "DependencyNotReady",
         "Dependencies do not meet ready condition, retrying in " + format_go_duration(env.options.flux_dependency_retry));
    co_return false;
  }
  co_return true;
}

task<kustomize_controller::next> kustomize_controller::pass(object_key key) {
  auto stored = env.objects.get(kube::types::kustomizations(), key);
  if (!stored) co_return next();
  if (kube::being_deleted(*stored)) {
    auto copy = *stored;
    co_return co_await finish_off(key, copy);
  }
  if (!has_finalizer(*stored, flux_finalizer)) {
    flux_status s(env, kube::types::kustomizations(), *stored, manager);
    auto copy = *stored;
    add_finalizer(copy, flux_finalizer);
    KUBEOPERA_CO_CHECK(co_await s.set_finalizers(*json::get_array(copy, {"metadata", "finalizers"})));
    stored = env.objects.get(kube::types::kustomizations(), key);
    if (!stored) co_return next();
  }
  attempt a(flux_status(env, kube::types::kustomizations(), *stored, manager), key);
  if (json::get_bool(*stored, {"spec", "suspend"})) {
    a.s.rest()["observedGeneration"] = a.s.generation();
    KUBEOPERA_CO_CHECK(co_await a.s.patch());
    co_return next();
  }
  auto from = source_key(*stored);
  auto source = env.objects.get(kube::types::git_repositories(), from);
  if (!source) {
    co_return co_await not_ready(a.s, "ArtifactFailed", "GitRepository.source.toolkit.fluxcd.io \"" + from.name + "\" not found");
  }
  a.revision = std::string(json::get_string(*source, {"status", "artifact", "revision"}));
  if (a.revision.empty()) {
    co_return co_await not_ready(
        a.s, "ArtifactFailed", "Source artifact not found, retrying in " + format_go_duration(env.options.flux_dependency_retry));
  }
  auto met = co_await dependencies_ready(a.s);
  if (!met) co_return met.error();
  if (!*met) co_return next(env.options.flux_dependency_retry);
  a.commit = a.revision.substr(a.revision.rfind(':') + 1);
  auto asked = parse_go_duration(json::get_string(*stored, {"spec", "timeout"})).value_or(retry_of(*stored) - 30s);
  a.timeout = std::max(env.options.flux_minimum_timeout, asked);
  a.limit = format_go_duration(a.timeout);
  co_return co_await reconcile_revision(a);
}

task<void> kustomize_controller::stage(attempt& a, std::string_view what) {
  a.s.set("Reconciling", "True", "Progressing",
          std::string(what) + " for revision " + a.revision + " with a timeout of " + a.limit);
  if (!a.s.find("Ready") || json::get_string(*a.s.find("Ready"), {"status"}) != "Unknown") {
    a.s.set("Ready", "Unknown", "Progressing", "Reconciliation in progress");
  }
  co_return co_await a.s.patch();
}

result<kustomize_controller::directory> kustomize_controller::fetch(const attempt& a) {
  auto from = source_key(a.s.obj());
  auto it = sources_.stores.find(from);
  if (it == sources_.stores.end()) {
    KUBEOPERA_TRY(auto store, gitops::open_store(env.options.flux_directory + "/" + from.ns + "." + from.name + ".git"));
    it = sources_.stores.emplace(from, store).first;
  }
  std::string path(json::get_string(a.s.obj(), {"spec", "path"}));
  while (path.starts_with("./")) path.erase(0, 2);
  while (path.starts_with("/")) path.erase(0, 1);
  while (path.ends_with("/")) path.pop_back();
  if (path == ".") path.clear();
  directory d;
  d.where = "/tmp/kustomization-" + std::to_string(random_u64() % 4'000'000'000ULL) + (path.empty() ? "" : "/" + path);
  auto missing = [&](const error& e) {
    if (e.code() != errc::not_found) return e;
    return error(errc::not_found, "ArtifactFailed",
                 "kustomization path not found: stat " + d.where + ": no such file or directory");
  };
  auto tree = path.empty() ? result<std::string>(a.commit) : it->second->id_at(a.commit, path);
  if (!tree) return missing(tree.error());
  d.tree = std::move(*tree);
  auto known = built_.find(a.key);
  d.known = known != built_.end() && known->second.tree == d.tree;
  if (d.known) return d;
  auto files = it->second->read_files(a.commit, path);
  if (!files) return missing(files.error());
  d.files = std::move(*files);
  return d;
}

result<built> kustomize_controller::build(const object_key& key, const directory& d) {
  if (d.known) return built_.at(key).made;
  KUBEOPERA_TRY(auto made, build_manifests(d.files, d.where));
  built_[key] = {d.tree, made};
  return made;
}

// A ready object that is looked at again for a new revision, and that waits for nothing.
bool kustomize_controller::may_be_quiet(const attempt& a) const {
  return env.options.flux_quiet && a.s.is_true("Ready") && built_.contains(a.key) &&
         json::get_int(a.s.obj(), {"status", "observedGeneration"}, -1) == a.s.generation() && health_targets(a, {}).empty() &&
         !json::get_bool(a.s.obj(), {"spec", "wait"});
}

task<kustomize_controller::next> kustomize_controller::reconcile_revision(attempt& a) {
  a.s.hold(may_be_quiet(a));
  KUBEOPERA_CO_CHECK(co_await stage(a, "Fetching manifests"));
  auto files = fetch(a);
  if (!files) co_return co_await failed(a, "ArtifactFailed", files.error().message());
  if (!files->known) a.s.hold(false);
  a.s.rest()["lastAttemptedRevision"] = a.revision;
  KUBEOPERA_CO_CHECK(co_await stage(a, "Building manifests"));
  auto made = build(a.key, *files);
  if (!made) co_return co_await failed(a, "BuildFailed", made.error().message());
  auto target = json::get_string(a.s.obj(), {"spec", "targetNamespace"});
  for (auto& o : made->objects) {
    if (!target.empty() && !is_cluster_definition(o)) json::ensure_object(o, "metadata")["namespace"] = target;
  }
  a.digest = made->digest;
  KUBEOPERA_CO_CHECK(co_await stage(a, "Detecting drift"));
  applier apply(env, registry_, settled_, a.key);
  auto before = inventory_of(a.s.rest());
  auto applied = co_await apply.apply(std::move(made->objects));
  if (!applied && applied.error().code() == errc::cancelled) co_return applied.error();
  if (!applied) {
    // What was written before the failure is kept in the inventory, so that it can be pruned later.
    auto all = before;
    for (const auto& e : apply.entries) {
      bool known = std::any_of(before.begin(), before.end(), [&](const auto& b) { return b.id() == e.id(); });
      if (!known) all.push_back(e);
    }
    if (all.size() != before.size()) a.s.rest()["inventory"] = inventory_json(all);
    co_return co_await failed(a, "ReconciliationFailed", applied.error().message());
  }
  std::string text;
  for (const auto& c : apply.changes) text += (text.empty() ? "" : "\n") + c;
  if (!text.empty()) tell(a.s, a.revision, "Progressing", text);
  a.s.rest()["inventory"] = inventory_json(apply.entries);
  bool changed = !apply.changes.empty();
  if (json::get_bool(a.s.obj(), {"spec", "prune"})) {
    apply.changes.clear();
    auto pruned = co_await apply.prune(before);
    if (!pruned && pruned.error().code() == errc::cancelled) co_return pruned.error();
    if (!pruned) co_return co_await failed(a, "PruneFailed", pruned.error().message());
    text.clear();
    for (const auto& c : apply.changes) text += (text.empty() ? "" : "\n") + c;
    if (!text.empty()) tell(a.s, a.revision, "Progressing", text);
  }
  if (changed || !text.empty()) a.s.hold(false);
  auto healthy = co_await check_health(a, health_targets(a, apply.entries), changed);
  if (!healthy && healthy.error().code() == errc::cancelled) co_return healthy.error();
  if (!healthy) co_return co_await failed(a, "HealthCheckFailed", healthy.error().message());
  co_return co_await succeeded(a);
}

std::vector<inventory_entry> kustomize_controller::health_targets(const attempt& a,
                                                                  const std::vector<inventory_entry>& applied) const {
  if (json::get_bool(a.s.obj(), {"spec", "wait"})) return applied;
  std::vector<inventory_entry> out;
  if (const auto* all = json::get_array(a.s.obj(), {"spec", "healthChecks"})) {
    for (const auto& c : *all) {
      const auto& o = c.as_object();
      inventory_entry e;
      auto api = std::string(json::get_string(o, {"apiVersion"}));
      auto slash = api.find('/');
      e.group = slash == std::string::npos ? "" : api.substr(0, slash);
      e.version = slash == std::string::npos ? api : api.substr(slash + 1);
      e.kind = std::string(json::get_string(o, {"kind"}));
      e.key.ns = std::string(json::get_string(o, {"namespace"}));
      e.key.name = std::string(json::get_string(o, {"name"}));
      out.push_back(std::move(e));
    }
  }
  return out;
}

task<void> kustomize_controller::check_health(attempt& a, std::vector<inventory_entry> what, bool changed) {
  if (what.empty()) {
    a.s.drop("Healthy");
    co_return result<void>();
  }
  bool was_healthy = a.s.is_true("Healthy");
  auto message = "Running health checks for revision " + a.revision + " with a timeout of " + a.limit;
  a.s.set("Healthy", "Unknown", "Progressing", message);
  KUBEOPERA_CO_CHECK(co_await stage(a, "Running health checks"));
  auto began = std::chrono::steady_clock::now();
  while (true) {
    std::string waiting;
    for (const auto& e : what) {
      auto api = e.group.empty() ? e.version : e.group + "/" + e.version;
      auto type = registry_.find(api, e.kind);
      health h = health::unknown;
      if (type) {
        auto now = co_await env.api->get(*type, e.key);
        if (!now && now.error().code() == errc::cancelled) co_return now.error();
        h = now ? health_of(*now) : health::not_found;
      }
      if (h == health::current) continue;
      auto subject = e.kind + "/" + (e.key.ns.empty() ? "" : e.key.ns + "/") + e.key.name;
      waiting += (waiting.empty() ? "" : ", ") + subject + " status: '" + std::string(to_string(h)) + "'";
    }
    auto spent = std::chrono::steady_clock::now() - began;
    if (waiting.empty()) {
      auto text = "Health check passed in " + format_go_duration(spent);
      a.s.set("Healthy", "True", "Succeeded", text);
      KUBEOPERA_CO_CHECK(co_await a.s.patch());
      if (changed || !was_healthy) tell(a.s, a.revision, "Progressing", text);
      co_return result<void>();
    }
    if (spent >= a.timeout) {
      auto why = "timeout waiting for: [" + waiting + "]";
      a.s.set("Healthy", "False", "HealthCheckFailed", why);
      co_return error(errc::deadline_exceeded, "HealthCheckFailed",
                      "health check failed after " + format_go_duration(spent) + ": " + why);
    }
    KUBEOPERA_CO_CHECK(co_await sleep_for(std::min<duration>(env.options.flux_health_poll, a.timeout - spent)));
  }
}

void kustomize_controller::remember(attempt& a, std::string_view status) {
  if (a.digest.empty()) return;
  array before, now;
  if (const auto* h = json::get_array(a.s.rest(), {"history"})) before = *h;
  object entry;
  std::int64_t total = 0;
  std::string first = env.now();
  for (const auto& e : before) {
    if (json::get_string(e.as_object(), {"digest"}) != a.digest) continue;
    total = json::get_int(e.as_object(), {"totalReconciliations"});
    first = std::string(json::get_string(e.as_object(), {"firstReconciled"}));
  }
  entry["digest"] = a.digest;
  entry["firstReconciled"] = first;
  entry["lastReconciled"] = env.now();
  entry["lastReconciledDuration"] = format_go_duration(std::chrono::steady_clock::now() - a.began);
  entry["lastReconciledStatus"] = status;
  json::ensure_object(entry, "metadata")["revision"] = a.revision;
  entry["totalReconciliations"] = total + 1;
  now.push_back(std::move(entry));
  for (auto& e : before) {
    if (json::get_string(e.as_object(), {"digest"}) != a.digest && now.size() < 5) now.push_back(e);
  }
  a.s.rest()["history"] = std::move(now);
}

task<kustomize_controller::next> kustomize_controller::failed(attempt& a, std::string reason, std::string message) {
  a.s.hold(false);
  if (const auto* c = a.s.find("Reconciling")) {
    auto text = std::string(json::get_string(*c, {"message"}));
    a.s.set("Reconciling", "True", "ProgressingWithRetry", text);
  }
  a.s.set("Ready", "False", reason, message);
  remember(a, reason);
  auto asked = kube::annotation_of(a.s.obj(), flux_request);
  if (!asked.empty()) a.s.rest()["lastHandledReconcileAt"] = asked;
  KUBEOPERA_CO_CHECK(co_await a.s.patch());
  tell(a.s, a.revision, reason, message, true);
  co_return next(retry_of(a.s.obj()));
}

task<kustomize_controller::next> kustomize_controller::succeeded(attempt& a) {
  a.s.drop("Reconciling");
  a.s.set("Ready", "True", "ReconciliationSucceeded", "Applied revision: " + a.revision);
  remember(a, "ReconciliationSucceeded");
  a.s.rest()["lastAppliedRevision"] = a.revision;
  a.s.rest()["observedGeneration"] = a.s.generation();
  auto asked = kube::annotation_of(a.s.obj(), flux_request);
  if (!asked.empty()) a.s.rest()["lastHandledReconcileAt"] = asked;
  auto interval = parse_go_duration(json::get_string(a.s.obj(), {"spec", "interval"}, "10m")).value_or(10min);
  if (a.s.held()) {
    KUBEOPERA_CO_CHECK(co_await a.s.patch_at_once());
    co_return next(interval);
  }
  KUBEOPERA_CO_CHECK(co_await a.s.patch());
  tell(a.s, a.revision, "ReconciliationSucceeded",
       "Reconciliation finished in " + format_go_duration(std::chrono::steady_clock::now() - a.began) + ", next run in " +
           format_go_duration(interval));
  co_return next(interval);
}

}  // namespace

std::unique_ptr<controller> make_kustomize_controller(environment& env, fetched_sources& sources, type_registry& registry) {
  return std::make_unique<kustomize_controller>(env, sources, registry);
}

}  // namespace kubeopera::inline v1::testing::sim
