// Deployment to ReplicaSet: revisions, rolling update and recreate, pause, proportional scaling, history and status.
// It ends a step after a write that a real controller would follow by a conflict; the next step goes on from what is stored.
#include "src/testing/sim_deployment.hpp"

#include "src/testing/sim_rollout.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

namespace {

constexpr std::string_view revision_key = "deployment.kubernetes.io/revision";
constexpr std::string_view history_key = "deployment.kubernetes.io/revision-history";
constexpr std::string_view desired_key = "deployment.kubernetes.io/desired-replicas";
constexpr std::string_view max_key = "deployment.kubernetes.io/max-replicas";
constexpr std::string_view skipped_annotations[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                                    revision_key,
                                                    history_key,
                                                    desired_key,
                                                    max_key,
                                                    "deprecated.deployment.rollback.to"};

rs_counts counts_of(const object& rs) {
  rs_counts c;
  c.name = std::string(kube::name_of(rs));
  c.spec = static_cast<int>(json::get_int(rs, {"spec", "replicas"}, 1));
  c.replicas = static_cast<int>(json::get_int(rs, {"status", "replicas"}));
  c.ready = static_cast<int>(json::get_int(rs, {"status", "readyReplicas"}));
  c.available = static_cast<int>(json::get_int(rs, {"status", "availableReplicas"}));
  c.created = std::string(json::get_string(rs, {"metadata", "creationTimestamp"}));
  return c;
}

bool has_deadline(const object& d) { return json::find(d, {"spec", "progressDeadlineSeconds"}) != nullptr; }

const array& conditions_of(const object& o) {
  static const array none;
  const auto* a = json::get_array(o, {"status", "conditions"});
  return a ? *a : none;
}

class deployment_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "deployment"; }
  std::vector<resource_type> watches() const override {
    return {kube::types::deployments(), kube::types::replica_sets(), kube::types::pods()};
  }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    const auto& o = after ? *after : *before;
    if (type == kube::types::deployments()) {
      if (after) enqueue(kube::key_of(o));
    } else if (type == kube::types::replica_sets()) {
      // A set that its own controller has not looked at yet tells nothing new.
      if (after && !before && !json::find(*after, {"status", "observedGeneration"})) return;
      enqueue_owner(o, "Deployment");
    }
  }

  task<void> reconcile(const object_key& key) override;

 private:
  struct view {
    object d;
    std::vector<object> all;       // every ReplicaSet of it
    std::optional<object> newest;  // equal template
    std::vector<object> old;
    bool stop = false;  // something was written after which the state has to be read again
  };

  void enqueue_owner(const object& o, std::string_view kind) {
    const auto* ref = controller_ref(o);
    if (!ref || json::get_string(*ref, {"kind"}) != kind) return;
    object_key key;
    key.ns = std::string(kube::namespace_of(o));
    key.name = std::string(json::get_string(*ref, {"name"}));
    enqueue(key);
  }

  task<void> gather(view& v);
  task<void> adopt(const object& d, object rs);
  task<void> find_newest(view& v, bool create);
  task<void> create_newest(view& v);
  task<void> update_newest(view& v);
  void set_revision(object& d, std::string_view revision, bool& changed);
  bool annotate(const object& d, object& rs, long revision, bool exists);
  task<bool> check_paused(view& v);
  bool scaling_event(const view& v) const;
  task<void> sync_scale(view& v);
  task<bool> rolling(view& v);
  task<bool> recreate(view& v);
  task<bool> resize(view& v, object& rs, int to);
  task<void> cleanup(view& v);
  object status_of(const view& v) const;
  task<void> write_status(view& v, bool with_progress);
  void progress(const view& v, object& status) const;
  task<void> put_status(view& v, object status);
};

task<void> deployment_controller::gather(view& v) {
  auto uid = kube::uid_of(v.d);
  const auto* selector = json::get_object(v.d, {"spec", "selector"});
  for (const auto& rs : env.objects.list(kube::types::replica_sets(), std::string(kube::namespace_of(v.d)))) {
    if (controlled_by(*rs, uid)) {
      v.all.push_back(*rs);
    } else if (!controller_ref(*rs) && !kube::being_deleted(*rs) && !kube::being_deleted(v.d) && selector &&
               selects(*selector, labels_of(*rs))) {
      KUBEOPERA_CO_CHECK(co_await adopt(v.d, *rs));
      if (auto now = env.objects.get(kube::types::replica_sets(), kube::key_of(*rs))) v.all.push_back(*now);
    }
  }
  std::sort(v.all.begin(), v.all.end(), [](const object& a, const object& b) {
    auto a_made = json::get_string(a, {"metadata", "creationTimestamp"}),
         b_made = json::get_string(b, {"metadata", "creationTimestamp"});
    return a_made != b_made ? a_made < b_made : kube::name_of(a) < kube::name_of(b);
  });
  co_return result<void>();
}

task<void> deployment_controller::adopt(const object& d, object rs) {
  auto& refs = json::ensure_array(json::ensure_object(rs, "metadata"), "ownerReferences");
  refs.push_back(make_owner_ref(kube::types::deployments(), d, true, true));
  auto r = co_await env.replace(kube::types::replica_sets(), rs);
  if (!r) co_return r.error();
  co_return result<void>();
}

void deployment_controller::set_revision(object& d, std::string_view revision, bool& changed) {
  if (kube::annotation_of(d, revision_key) == revision) return;
  set_annotation(d, revision_key, revision);
  changed = true;
}

bool deployment_controller::annotate(const object& d, object& rs, long revision, bool exists) {
  bool changed = false;
  if (const auto* all = json::get_object(d, {"metadata", "annotations"})) {
    for (const auto& a : *all) {
      bool skip = std::find(std::begin(skipped_annotations), std::end(skipped_annotations), std::string_view(a.key())) !=
                  std::end(skipped_annotations);
      if (skip || kube::annotation_of(rs, a.key()) == json::as_view(a.value())) continue;
      set_annotation(rs, a.key(), json::as_view(a.value()));
      changed = true;
    }
  }
  auto before = std::string(kube::annotation_of(rs, revision_key));
  if (revision_of(rs) < revision) {
    set_annotation(rs, revision_key, std::to_string(revision));
    changed = true;
    if (exists && !before.empty()) {
      auto past = std::string(kube::annotation_of(rs, history_key));
      set_annotation(rs, history_key, past.empty() ? before : past + "," + before);
    }
  }
  if (!exists) {
    auto spec = rollout_spec_of(d);
    set_annotation(rs, desired_key, std::to_string(spec.replicas));
    set_annotation(rs, max_key, std::to_string(spec.replicas + spec.max_surge));
    changed = true;
  }
  return changed;
}

task<void> deployment_controller::find_newest(view& v, bool create) {
  v.old.clear();
  v.newest.reset();
  const auto* wanted = json::find(v.d, {"spec", "template"});
  for (const auto& rs : v.all) {
    if (!v.newest && same_template(wanted, json::find(rs, {"spec", "template"})))
      v.newest = rs;
    else
      v.old.push_back(rs);
  }
  if (v.newest) co_return co_await update_newest(v);
  if (create) co_return co_await create_newest(v);
  co_return result<void>();
}

task<void> deployment_controller::update_newest(view& v) {
  long highest = 0;
  for (const auto& rs : v.old) highest = std::max(highest, revision_of(rs));
  auto copy = *v.newest;
  bool changed = annotate(v.d, copy, highest + 1, true);
  auto wanted = json::get_int(v.d, {"spec", "minReadySeconds"});
  if (json::get_int(copy, {"spec", "minReadySeconds"}) != wanted) {
    json::ensure_object(copy, "spec")["minReadySeconds"] = wanted;
    changed = true;
  }
  if (changed) {
    auto r = co_await env.replace(kube::types::replica_sets(), copy);
    if (!r) co_return r.error();
    for (auto& rs : v.all) {
      if (kube::uid_of(rs) == kube::uid_of(*r)) rs = *r;
    }
    v.newest = *r;
    co_return result<void>();
  }
  bool update = false;
  set_revision(v.d, kube::annotation_of(*v.newest, revision_key), update);
  if (has_deadline(v.d) && !condition_in(conditions_of(v.d), "Progressing")) {
    auto& conditions = json::ensure_array(json::ensure_object(v.d, "status"), "conditions");
    set_deployment_condition(conditions, "Progressing", "True", "FoundNewReplicaSet",
                             "Found new replica set \"" + std::string(kube::name_of(*v.newest)) + "\"", env.now());
    update = true;
  }
  if (!update) co_return result<void>();
  auto r = co_await env.replace_status(kube::types::deployments(), v.d);
  if (!r) co_return r.error();
  v.d = *r;
  co_return result<void>();
}

task<void> deployment_controller::create_newest(view& v) {
  auto spec = rollout_spec_of(v.d);
  auto pod_template = *json::find(v.d, {"spec", "template"});
  auto collisions = static_cast<int>(json::get_int(v.d, {"status", "collisionCount"}));
  auto hash = template_hash(pod_template, collisions);
  object_key key;
  key.ns = std::string(kube::namespace_of(v.d));
  key.name = std::string(kube::name_of(v.d)) + "-" + hash;
  auto rs = kube::make_object(kube::types::replica_sets(), key);
  auto& metadata = json::ensure_object(rs, "metadata");
  auto& labels = json::ensure_object(json::ensure_object(pod_template.as_object(), "metadata"), "labels");
  labels["pod-template-hash"] = hash;
  metadata["labels"] = labels;
  json::ensure_array(metadata, "ownerReferences").push_back(make_owner_ref(kube::types::deployments(), v.d, true, true));
  auto& s = json::ensure_object(rs, "spec");
  int total = 0;
  long highest = 0;
  for (const auto& o : v.old) {
    total += counts_of(o).spec;
    highest = std::max(highest, revision_of(o));
  }
  int size = new_replica_set_size(spec, 0, total);
  s["replicas"] = size;
  if (auto wanted = json::get_int(v.d, {"spec", "minReadySeconds"}); wanted != 0) s["minReadySeconds"] = wanted;
  auto selector = *json::get_object(v.d, {"spec", "selector"});
  json::ensure_object(selector, "matchLabels")["pod-template-hash"] = hash;
  s["selector"] = std::move(selector);
  s["template"] = pod_template;
  annotate(v.d, rs, highest + 1, false);
  v.stop = true;
  auto made = co_await env.create(kube::types::replica_sets(), rs);
  if (!made && made.error().code() == errc::already_exists) {
    json::ensure_object(v.d, "status")["collisionCount"] = collisions + 1;
    auto r = co_await env.replace_status(kube::types::deployments(), v.d);
    if (!r) co_return r.error();
    enqueue(kube::key_of(v.d));
    co_return result<void>();
  }
  auto& conditions = json::ensure_array(json::ensure_object(v.d, "status"), "conditions");
  if (!made) {
    set_deployment_condition(conditions, "Progressing", "False", "ReplicaSetCreateError", made.error().message(), env.now());
    auto r = co_await env.replace_status(kube::types::deployments(), v.d);
    (void)r;
    co_return made.error();
  }
  if (size > 0) {
    env.record(kube::types::deployments(), v.d, "ScalingReplicaSet",
               "Scaled up replica set " + key.name + " from 0 to " + std::to_string(size), "deployment-controller");
  }
  bool changed = false;
  set_revision(v.d, std::to_string(highest + 1), changed);
  if (has_deadline(v.d)) {
    set_deployment_condition(conditions, "Progressing", "True", "NewReplicaSetCreated",
                             "Created new replica set \"" + key.name + "\"", env.now());
  }
  auto r = co_await env.replace_status(kube::types::deployments(), v.d);
  if (!r) co_return r.error();
  co_return result<void>();
}

task<bool> deployment_controller::resize(view& v, object& rs, int to) {
  auto spec = rollout_spec_of(v.d);
  int from = counts_of(rs).spec;
  auto desired = std::to_string(spec.replicas), most = std::to_string(spec.replicas + spec.max_surge);
  bool annotations = kube::annotation_of(rs, desired_key) != desired || kube::annotation_of(rs, max_key) != most;
  if (from == to && !annotations) co_return false;
  auto copy = rs;
  json::ensure_object(copy, "spec")["replicas"] = to;
  set_annotation(copy, desired_key, desired);
  set_annotation(copy, max_key, most);
  auto r = co_await env.replace(kube::types::replica_sets(), copy);
  if (!r) co_return r.error();
  rs = *r;
  for (auto& known : v.all) {
    if (kube::uid_of(known) == kube::uid_of(rs)) known = rs;
  }
  if (from != to) {
    env.record(kube::types::deployments(), v.d, "ScalingReplicaSet",
               std::string(to > from ? "Scaled up" : "Scaled down") + " replica set " + std::string(kube::name_of(rs)) +
                   " from " + std::to_string(from) + " to " + std::to_string(to),
               "deployment-controller");
  }
  co_return from != to;
}

task<bool> deployment_controller::check_paused(view& v) {
  if (!has_deadline(v.d)) co_return false;
  bool paused = json::get_bool(v.d, {"spec", "paused"});
  const auto* c = condition_in(conditions_of(v.d), "Progressing");
  if (c && json::get_string(*c, {"reason"}) == "ProgressDeadlineExceeded") co_return false;
  bool marked = c && json::get_string(*c, {"reason"}) == "DeploymentPaused";
  if (paused == marked) co_return false;
  auto& conditions = json::ensure_array(json::ensure_object(v.d, "status"), "conditions");
  set_deployment_condition(conditions, "Progressing", "Unknown", paused ? "DeploymentPaused" : "DeploymentResumed",
                           paused ? "Deployment is paused" : "Deployment is resumed", env.now());
  auto r = co_await env.replace_status(kube::types::deployments(), v.d);
  if (!r) co_return r.error();
  v.d = *r;
  co_return true;
}

bool deployment_controller::scaling_event(const view& v) const {
  auto desired = std::to_string(json::get_int(v.d, {"spec", "replicas"}, 1));
  for (const auto& rs : v.all) {
    if (counts_of(rs).spec == 0) continue;
    auto noted = kube::annotation_of(rs, desired_key);
    if (!noted.empty() && noted != desired) return true;
  }
  return false;
}

task<void> deployment_controller::sync_scale(view& v) {
  auto spec = rollout_spec_of(v.d);
  std::vector<object*> sets;
  if (v.newest) sets.push_back(&*v.newest);
  for (auto& o : v.old) sets.push_back(&o);
  std::vector<object*> active;
  for (auto* o : sets) {
    if (counts_of(*o).spec > 0) active.push_back(o);
  }
  if (active.size() <= 1) {
    auto* one = !active.empty() ? active.front() : sets.empty() ? nullptr : sets.front();
    if (!one || counts_of(*one).spec == spec.replicas) co_return result<void>();
    auto r = co_await resize(v, *one, spec.replicas);
    if (!r) co_return r.error();
    co_return result<void>();
  }
  bool saturated = v.newest && counts_of(*v.newest).spec == spec.replicas && counts_of(*v.newest).available == spec.replicas &&
                   kube::annotation_of(*v.newest, desired_key) == std::to_string(spec.replicas);
  std::vector<rs_counts> counts;
  std::vector<int> most;
  for (auto* o : sets) {
    counts.push_back(counts_of(*o));
    most.push_back(std::atoi(std::string(kube::annotation_of(*o, max_key)).c_str()));
  }
  std::vector<scaling> plan;
  if (saturated) {
    for (std::size_t i = 1; i < sets.size(); ++i) plan.push_back({i, 0});
  } else if (!spec.recreate) {
    plan = proportional(spec, counts, most);
  }
  for (const auto& step : plan) {
    auto r = co_await resize(v, *sets[step.index], step.to);
    if (!r) co_return r.error();
  }
  co_return result<void>();
}

// True when something was resized.
task<bool> deployment_controller::rolling(view& v) {
  auto spec = rollout_spec_of(v.d);
  int total = 0;
  for (const auto& rs : v.all) total += counts_of(rs).spec;
  int size = new_replica_set_size(spec, counts_of(*v.newest).spec, total);
  KUBEOPERA_CO_TRY(bool scaled_up, co_await resize(v, *v.newest, size));
  if (scaled_up) co_return true;
  std::vector<rs_counts> counts;
  for (const auto& rs : v.old) counts.push_back(counts_of(rs));
  auto newest = counts_of(*v.newest);
  auto plan = scale_down_old(spec, newest, counts);
  for (const auto& step : plan) {
    auto r = co_await resize(v, v.old[step.index], step.to);
    if (!r) co_return r.error();
  }
  co_return !plan.empty();
}

task<bool> deployment_controller::recreate(view& v) {
  bool scaled = false;
  for (auto& rs : v.old) {
    if (counts_of(rs).spec == 0) continue;
    auto r = co_await resize(v, rs, 0);
    if (!r) co_return r.error();
    scaled = true;
  }
  if (scaled) co_return true;
  for (const auto& pod : env.objects.list(kube::types::pods(), std::string(kube::namespace_of(v.d)))) {
    if (pod_finished(*pod)) continue;
    for (const auto& rs : v.old) {
      if (controlled_by(*pod, kube::uid_of(rs))) {
        enqueue_after(kube::key_of(v.d), std::chrono::milliseconds(20));
        co_return true;
      }
    }
  }
  if (!v.newest) {
    KUBEOPERA_CO_CHECK(co_await find_newest(v, true));
    if (v.stop || !v.newest) co_return true;
  }
  co_return co_await resize(v, *v.newest, rollout_spec_of(v.d).replicas);
}

task<void> deployment_controller::cleanup(view& v) {
  const auto* limit = json::find(v.d, {"spec", "revisionHistoryLimit"});
  if (!limit) co_return result<void>();
  std::vector<object> candidates;
  for (const auto& rs : v.old) {
    if (!kube::being_deleted(rs)) candidates.push_back(rs);
  }
  auto surplus =
      static_cast<long>(candidates.size()) - static_cast<long>(json::get_int(v.d, {"spec", "revisionHistoryLimit"}, 10));
  if (surplus <= 0) co_return result<void>();
  std::sort(candidates.begin(), candidates.end(), [](auto& a, auto& b) { return revision_of(a) < revision_of(b); });
  for (long i = 0; i < surplus; ++i) {
    const auto& rs = candidates[static_cast<std::size_t>(i)];
    auto c = counts_of(rs);
    if (c.spec != 0 || c.replicas != 0 || kube::generation_of(rs) > json::get_int(rs, {"status", "observedGeneration"})) continue;
    KUBEOPERA_CO_CHECK(co_await env.remove(kube::types::replica_sets(), rs));
  }
  co_return result<void>();
}

object deployment_controller::status_of(const view& v) const {
  int spec_total = 0, replicas = 0, ready = 0, available = 0;
  std::optional<std::int64_t> terminating = 0;
  for (const auto& rs : v.all) {
    auto c = counts_of(rs);
    spec_total += c.spec;
    replicas += c.replicas;
    ready += c.ready;
    available += c.available;
    if (!json::find(rs, {"status", "terminatingReplicas"}))
      terminating.reset();
    else if (terminating)
      *terminating += json::get_int(rs, {"status", "terminatingReplicas"});
  }
  int updated = v.newest ? counts_of(*v.newest).replicas : 0;
  int unavailable = std::max(0, spec_total - available);
  object s;
  s["observedGeneration"] = kube::generation_of(v.d);
  if (replicas) s["replicas"] = replicas;
  if (updated) s["updatedReplicas"] = updated;
  if (ready) s["readyReplicas"] = ready;
  if (available) s["availableReplicas"] = available;
  if (unavailable) s["unavailableReplicas"] = unavailable;
  if (terminating) s["terminatingReplicas"] = *terminating;
  if (auto collisions = json::get_int(v.d, {"status", "collisionCount"})) s["collisionCount"] = collisions;
  auto conditions = conditions_of(v.d);
  auto spec = rollout_spec_of(v.d);
  bool enough = available >= spec.replicas - spec.max_unavailable;
  set_deployment_condition(
      conditions, "Available", enough ? "True" : "False", enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
      enough ? "Deployment has minimum availability." : "Deployment does not have minimum availability.", env.now());
  s["conditions"] = std::move(conditions);
  return s;
}

void deployment_controller::progress(const view& v, object& status) const {
  auto& conditions = json::ensure_array(status, "conditions");
  if (!has_deadline(v.d)) erase_condition(conditions, "Progressing");
  auto at = [](const object& s, const char* key) { return json::get_int(s, {key}); };
  const object none;
  const auto* before_status = json::get_object(v.d, {"status"});
  const auto& before = before_status ? *before_status : none;
  const auto* current = condition_in(conditions_of(v.d), "Progressing");
  bool settled = at(status, "replicas") == at(status, "updatedReplicas") && current &&
                 json::get_string(*current, {"reason"}) == "NewReplicaSetAvailable";
  auto name = "ReplicaSet \"" + std::string(v.newest ? kube::name_of(*v.newest) : "") + "\"";
  if (!v.newest) name = "Deployment \"" + std::string(kube::name_of(v.d)) + "\"";
  auto wanted = rollout_spec_of(v.d).replicas;
  if (has_deadline(v.d) && !settled) {
    bool complete =
        at(status, "updatedReplicas") == wanted && at(status, "replicas") == wanted && at(status, "availableReplicas") == wanted;
    bool moving =
        at(status, "updatedReplicas") > at(before, "updatedReplicas") ||
        at(status, "replicas") - at(status, "updatedReplicas") < at(before, "replicas") - at(before, "updatedReplicas") ||
        at(status, "readyReplicas") > at(before, "readyReplicas") ||
        at(status, "availableReplicas") > at(before, "availableReplicas");
    if (complete) {
      set_deployment_condition(conditions, "Progressing", "True", "NewReplicaSetAvailable",
                               name + " has successfully progressed.", env.now());
    } else if (moving) {
      std::string since = env.now();
      if (current && json::get_string(*current, {"status"}) == "True")
        since = std::string(json::get_string(*current, {"lastTransitionTime"}));
      erase_condition(conditions, "Progressing");
      set_deployment_condition(conditions, "Progressing", "True", "ReplicaSetUpdated", name + " is progressing.", env.now());
      condition_in(conditions, "Progressing")->insert_or_assign("lastTransitionTime", since);
    } else if (current && json::get_string(*current, {"reason"}) != "NewReplicaSetAvailable") {
      auto from = time_of(current->if_contains("lastUpdateTime"));
      auto deadline = std::chrono::seconds(json::get_int(v.d, {"spec", "progressDeadlineSeconds"}));
      if (from && env.time.now() >= *from + deadline) {
        set_deployment_condition(conditions, "Progressing", "False", "ProgressDeadlineExceeded",
                                 name + " has timed out progressing.", env.now());
      }
    }
  }
  const object* failure = nullptr;
  if (v.newest) failure = condition_in(conditions_of(*v.newest), "ReplicaFailure");
  for (const auto& rs : v.all) {
    if (!failure) failure = condition_in(conditions_of(rs), "ReplicaFailure");
  }
  if (failure) {
    set_deployment_condition(conditions, "ReplicaFailure", json::get_string(*failure, {"status"}),
                             json::get_string(*failure, {"reason"}), json::get_string(*failure, {"message"}), env.now());
  } else {
    erase_condition(conditions, "ReplicaFailure");
  }
}

task<void> deployment_controller::write_status(view& v, bool with_progress) {
  auto status = status_of(v);
  if (with_progress) progress(v, status);
  const auto* c = condition_in(json::ensure_array(status, "conditions"), "Progressing");
  if (with_progress && has_deadline(v.d) && c) {
    auto reason = json::get_string(*c, {"reason"});
    auto from = time_of(c->if_contains("lastUpdateTime"));
    if (from && reason != "NewReplicaSetAvailable" && reason != "ProgressDeadlineExceeded") {
      auto due = *from + std::chrono::seconds(json::get_int(v.d, {"spec", "progressDeadlineSeconds"}) + 1);
      enqueue_after(kube::key_of(v.d), std::chrono::duration_cast<duration>(due - env.time.now()));
    }
  }
  co_return co_await put_status(v, std::move(status));
}

task<void> deployment_controller::put_status(view& v, object status) {
  const auto* before = json::find(v.d, {"status"});
  json::value after = status;
  if (before && json::write_canonical(*before) == json::write_canonical(after)) co_return result<void>();
  v.d["status"] = std::move(after);
  auto r = co_await env.replace_status(kube::types::deployments(), v.d);
  if (!r) co_return r.error();
  v.d = *r;
  co_return result<void>();
}

task<void> deployment_controller::reconcile(const object_key& key) {
  auto stored = env.objects.get(kube::types::deployments(), key);
  if (!stored) co_return result<void>();
  view v;
  v.d = *stored;
  KUBEOPERA_CO_CHECK(co_await gather(v));
  if (kube::being_deleted(v.d)) {
    const auto* wanted = json::find(v.d, {"spec", "template"});
    for (const auto& rs : v.all) {
      if (!v.newest && same_template(wanted, json::find(rs, {"spec", "template"}))) v.newest = rs;
    }
    co_return co_await write_status(v, false);
  }
  auto paused_changed = co_await check_paused(v);
  if (!paused_changed) co_return paused_changed.error();
  bool paused = json::get_bool(v.d, {"spec", "paused"});
  if (paused || scaling_event(v)) {
    KUBEOPERA_CO_CHECK(co_await find_newest(v, false));
    KUBEOPERA_CO_CHECK(co_await sync_scale(v));
    co_return co_await write_status(v, false);
  }
  bool rec = rollout_spec_of(v.d).recreate;
  KUBEOPERA_CO_CHECK(co_await find_newest(v, !rec));
  if (v.stop) co_return result<void>();
  // A ReplicaSet that its controller has not looked at says nothing yet; its first status wakes us.
  if (v.newest && !json::find(*v.newest, {"status", "observedGeneration"})) co_return result<void>();
  auto moved = rec ? co_await recreate(v) : co_await rolling(v);
  if (!moved) co_return moved.error();
  if (v.stop) co_return result<void>();
  if (!*moved) {
    auto s = rollout_spec_of(v.d);
    auto status = status_of(v);
    bool complete = json::get_int(status, {"updatedReplicas"}) == s.replicas &&
                    json::get_int(status, {"replicas"}) == s.replicas &&
                    json::get_int(status, {"availableReplicas"}) == s.replicas;
    if (complete) KUBEOPERA_CO_CHECK(co_await cleanup(v));
  }
  co_return co_await write_status(v, true);
}

}  // namespace

std::unique_ptr<controller> make_deployment_controller(environment& env) { return std::make_unique<deployment_controller>(env); }

}  // namespace kubeopera::inline v1::testing::sim
