// ReplicaSet to Pod: as many active pods as spec.replicas says, which ones go first, and the status.
// Source: Kubernetes' replicaset controller (replica_set.go, controller_utils.go's ActivePodsWithRanks).
#include "src/testing/sim_deployment.hpp"
#include "src/testing/sim_rollout.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::sim {

namespace {

int restarts_of(const object& pod) {
  int most = 0;
  if (const auto* all = json::get_array(pod, {"status", "containerStatuses"})) {
    for (const auto& c : *all) {
      if (c.is_object()) most = std::max(most, static_cast<int>(json::get_int(c.get_object(), {"restartCount"})));
    }
  }
  return most;
}

int deletion_cost(const object& pod) {
  auto text = kube::annotation_of(pod, "controller.kubernetes.io/pod-deletion-cost");
  int cost = 0;
  std::from_chars(text.data(), text.data() + text.size(), cost);
  return cost;
}

int phase_rank(const object& pod) {
  auto phase = json::get_string(pod, {"status", "phase"});
  return phase == "Running" ? 2 : phase == "Unknown" ? 1 : 0;
}

// True when a is to be deleted rather than b.
bool goes_first(const object& a, const object& b) {
  bool a_bound = !json::get_string(a, {"spec", "nodeName"}).empty(), b_bound = !json::get_string(b, {"spec", "nodeName"}).empty();
  if (a_bound != b_bound) return !a_bound;
  if (phase_rank(a) != phase_rank(b)) return phase_rank(a) < phase_rank(b);
  bool a_ready = pod_ready(a), b_ready = pod_ready(b);
  if (a_ready != b_ready) return !a_ready;
  if (deletion_cost(a) != deletion_cost(b)) return deletion_cost(a) < deletion_cost(b);
  auto a_since = pod_ready_since(a), b_since = pod_ready_since(b);
  if (a_since && b_since && *a_since != *b_since) return *a_since > *b_since;
  if (restarts_of(a) != restarts_of(b)) return restarts_of(a) > restarts_of(b);
  auto a_made = json::get_string(a, {"metadata", "creationTimestamp"}),
       b_made = json::get_string(b, {"metadata", "creationTimestamp"});
  if (a_made != b_made) return a_made > b_made;
  return kube::name_of(a) < kube::name_of(b);
}

class replica_set_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "replicaset"; }
  std::vector<resource_type> watches() const override { return {kube::types::replica_sets(), kube::types::pods()}; }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    const auto& o = after ? *after : *before;
    if (type == kube::types::replica_sets()) {
      // What it wrote into the status itself is no news.
      bool news = after && (!before || kube::generation_of(*before) != kube::generation_of(*after) ||
                            kube::being_deleted(*before) != kube::being_deleted(*after));
      if (news) enqueue(kube::key_of(o));
      return;
    }
    if (type != kube::types::pods()) return;
    const auto* ref = controller_ref(o);
    if (ref && json::get_string(*ref, {"kind"}) == "ReplicaSet") {
      object_key key;
      key.ns = std::string(kube::namespace_of(o));
      key.name = std::string(json::get_string(*ref, {"name"}));
      enqueue(key);
    } else if (!ref && after) {
      enqueue_selecting(o);
    }
  }

  task<void> reconcile(const object_key& key) override;

 private:
  struct pods {
    std::vector<object> active, terminating;
    std::string failure, failure_reason;
  };
  void enqueue_selecting(const object& pod);
  task<void> claim(const object& rs, pods& mine);
  task<void> manage(const object& rs, pods& mine);
  task<void> create_pod(const object& rs);
  object status_of(const object& rs, const pods& mine);
};

void replica_set_controller::enqueue_selecting(const object& pod) {
  for (const auto& rs : env.objects.list(kube::types::replica_sets(), std::string(kube::namespace_of(pod)))) {
    const auto* selector = json::get_object(*rs, {"spec", "selector"});
    if (selector && selects(*selector, labels_of(pod))) enqueue(kube::key_of(*rs));
  }
}

task<void> replica_set_controller::claim(const object& rs, pods& mine) {
  const auto* selector = json::get_object(rs, {"spec", "selector"});
  auto uid = kube::uid_of(rs);
  for (const auto& p : env.objects.list(kube::types::pods(), std::string(kube::namespace_of(rs)))) {
    bool fits = selector && selects(*selector, labels_of(*p));
    if (controlled_by(*p, uid)) {
      if (!fits && !kube::being_deleted(rs)) {
        auto copy = *p;
        json::ensure_object(copy, "metadata").erase("ownerReferences");
        auto r = co_await env.replace(kube::types::pods(), copy);
        if (!r && r.error().code() != errc::not_found) co_return r.error();
        continue;
      }
      if (pod_active(*p))
        mine.active.push_back(*p);
      else if (kube::being_deleted(*p) && !pod_finished(*p))
        mine.terminating.push_back(*p);
    } else if (!controller_ref(*p) && fits && pod_active(*p) && !kube::being_deleted(rs)) {
      auto copy = *p;
      json::ensure_array(json::ensure_object(copy, "metadata"), "ownerReferences")
          .push_back(make_owner_ref(kube::types::replica_sets(), rs, true, true));
      auto r = co_await env.replace(kube::types::pods(), copy);
      if (!r) co_return r.error();
      mine.active.push_back(*r);
    }
  }
  co_return result<void>();
}

task<void> replica_set_controller::create_pod(const object& rs) {
  const auto* pod_template = json::get_object(rs, {"spec", "template"});
  object pod;
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  auto& metadata = json::ensure_object(pod, "metadata");
  metadata["generateName"] = std::string(kube::name_of(rs)) + "-";
  metadata["namespace"] = kube::namespace_of(rs);
  if (const auto* labels = json::get_object(*pod_template, {"metadata", "labels"})) metadata["labels"] = *labels;
  if (const auto* notes = json::get_object(*pod_template, {"metadata", "annotations"})) metadata["annotations"] = *notes;
  if (const auto* finalizers = json::get_array(*pod_template, {"metadata", "finalizers"})) metadata["finalizers"] = *finalizers;
  json::ensure_array(metadata, "ownerReferences").push_back(make_owner_ref(kube::types::replica_sets(), rs, true, true));
  if (const auto* spec = json::get_object(*pod_template, {"spec"})) pod["spec"] = *spec;
  auto made = co_await env.create(kube::types::pods(), pod);
  if (!made) {
    bool ending = false;
    auto refusal = made.error();
    for (const auto& v : refusal.violations()) ending = ending || v.message.find("being terminated") != std::string::npos;
    ending = ending || made.error().message().find("because it is being terminated") != std::string::npos;
    if (ending) co_return result<void>();
    env.record(kube::types::replica_sets(), rs, "FailedCreate", "Error creating: " + made.error().message(),
               "replicaset-controller", "Warning");
    co_return made.error();
  }
  env.record(kube::types::replica_sets(), rs, "SuccessfulCreate", "Created pod: " + std::string(kube::name_of(*made)),
             "replicaset-controller");
  co_return result<void>();
}

task<void> replica_set_controller::manage(const object& rs, pods& mine) {
  auto wanted = json::get_int(rs, {"spec", "replicas"}, 1);
  auto diff = static_cast<std::int64_t>(mine.active.size()) - wanted;
  for (; diff < 0; ++diff) {
    auto made = co_await create_pod(rs);
    if (made) continue;
    mine.failure = made.error().message();
    mine.failure_reason = "FailedCreate";
    co_return made.error();
  }
  if (diff == 0) co_return result<void>();
  auto candidates = mine.active;
  std::sort(candidates.begin(), candidates.end(), goes_first);
  for (std::int64_t i = 0; i < diff; ++i) {
    const auto& pod = candidates[static_cast<std::size_t>(i)];
    auto gone = co_await env.remove(kube::types::pods(), pod);
    if (!gone) {
      mine.failure = gone.error().message();
      mine.failure_reason = "FailedDelete";
      co_return gone.error();
    }
    env.record(kube::types::replica_sets(), rs, "SuccessfulDelete", "Deleted pod: " + std::string(kube::name_of(pod)),
               "replicaset-controller");
  }
  co_return result<void>();
}

object replica_set_controller::status_of(const object& rs, const pods& mine) {
  const auto* wanted = json::get_object(rs, {"spec", "template", "metadata", "labels"});
  auto min_ready = std::chrono::seconds(json::get_int(rs, {"spec", "minReadySeconds"}));
  int labelled = 0, ready = 0, available = 0;
  for (const auto& p : mine.active) {
    if (!wanted || selects_map(*wanted, labels_of(p))) ++labelled;
    if (!pod_ready(p)) continue;
    ++ready;
    auto since = pod_ready_since(p);
    if (min_ready.count() == 0 || (since && *since + min_ready <= env.time.now()))
      ++available;
    else if (since)
      enqueue_after(kube::key_of(rs),
                    std::chrono::duration_cast<duration>(*since + min_ready - env.time.now()) + std::chrono::milliseconds(5));
  }
  object s;
  s["replicas"] = mine.active.size();
  if (labelled) s["fullyLabeledReplicas"] = labelled;
  if (ready) s["readyReplicas"] = ready;
  if (available) s["availableReplicas"] = available;
  s["terminatingReplicas"] = mine.terminating.size();
  s["observedGeneration"] = kube::generation_of(rs);
  array conditions;
  if (const auto* c = json::get_array(rs, {"status", "conditions"})) conditions = *c;
  const auto* failed = condition_in(conditions, "ReplicaFailure");
  if (!mine.failure.empty() && !failed) {
    object c;
    c["type"] = "ReplicaFailure";
    c["status"] = "True";
    c["lastTransitionTime"] = env.now();
    c["reason"] = mine.failure_reason;
    c["message"] = mine.failure;
    conditions.push_back(std::move(c));
  } else if (mine.failure.empty() && failed) {
    erase_condition(conditions, "ReplicaFailure");
  }
  if (!conditions.empty()) s["conditions"] = std::move(conditions);
  return s;
}

task<void> replica_set_controller::reconcile(const object_key& key) {
  auto stored = env.objects.get(kube::types::replica_sets(), key);
  if (!stored) co_return result<void>();
  auto rs = *stored;
  pods mine;
  KUBEOPERA_CO_CHECK(co_await claim(rs, mine));
  result<void> managed;
  if (!kube::being_deleted(rs)) managed = co_await manage(rs, mine);
  value status = status_of(rs, mine);
  const auto* before = json::find(rs, {"status"});
  if (!before || json::write_canonical(*before) != json::write_canonical(status)) {
    rs["status"] = std::move(status);
    auto r = co_await env.replace_status(kube::types::replica_sets(), rs);
    if (!r && r.error().code() != errc::not_found) co_return r.error();
  }
  co_return managed;
}

}  // namespace

std::unique_ptr<controller> make_replica_set_controller(environment& env) {
  return std::make_unique<replica_set_controller>(env);
}

}  // namespace kubeopera::inline v1::testing::sim
