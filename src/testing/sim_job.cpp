// Job to pods that run to their end: completions, parallelism, backoffLimit and the status.
#include "src/testing/sim_meta.hpp"
#include "src/testing/sim_network.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

namespace {

class job_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "job"; }
  std::vector<resource_type> watches() const override { return {kube::types::jobs(), kube::types::pods()}; }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    const auto& o = after ? *after : *before;
    if (type == kube::types::jobs()) {
      if (after) enqueue(kube::key_of(o));
      return;
    }
    const auto* ref = type == kube::types::pods() ? controller_ref(o) : nullptr;
    if (!ref || json::get_string(*ref, {"kind"}) != "Job") return;
    object_key key;
    key.ns = std::string(kube::namespace_of(o));
    key.name = std::string(json::get_string(*ref, {"name"}));
    enqueue(key);
  }

  task<void> reconcile(const object_key& key) override {
    auto job = env.objects.get(kube::types::jobs(), key);
    if (!job || kube::being_deleted(*job)) co_return result<void>();
    if (kube::condition_true(*job, "Complete") || kube::condition_true(*job, "Failed")) co_return result<void>();
    std::int64_t active = 0, ready = 0, succeeded = 0, failed = 0;
    for (const auto& p : env.objects.list(kube::types::pods(), key.ns)) {
      if (!controlled_by(*p, kube::uid_of(*job))) continue;
      auto phase = json::get_string(*p, {"status", "phase"});
      if (phase == "Succeeded")
        ++succeeded;
      else if (phase == "Failed")
        ++failed;
      else if (pod_active(*p))
        ++active;
      if (pod_active(*p) && pod_ready(*p)) ++ready;
    }
    auto wanted = json::get_int(*job, {"spec", "completions"}, 1);
    auto parallel = json::get_int(*job, {"spec", "parallelism"}, 1);
    auto limit = json::get_int(*job, {"spec", "backoffLimit"}, 6);
    bool suspended = json::get_bool(*job, {"spec", "suspend"});
    bool done = succeeded >= wanted, broken = failed > limit;
    auto missing = done || broken || suspended ? 0 : std::min(parallel, wanted - succeeded) - active;
    for (std::int64_t i = 0; i < missing; ++i) {
      KUBEOPERA_CO_CHECK(co_await create_pod(*job));
      ++active;
    }
    co_return co_await write_status(*job, active, ready, succeeded, failed, done, broken);
  }

 private:
  task<void> create_pod(const object& job) {
    object pod;
    pod["apiVersion"] = "v1";
    pod["kind"] = "Pod";
    auto& metadata = json::ensure_object(pod, "metadata");
    metadata["generateName"] = std::string(kube::name_of(job)) + "-";
    metadata["namespace"] = kube::namespace_of(job);
    if (const auto* labels = json::get_object(job, {"spec", "template", "metadata", "labels"})) metadata["labels"] = *labels;
    if (const auto* notes = json::get_object(job, {"spec", "template", "metadata", "annotations"}))
      metadata["annotations"] = *notes;
    auto& labels = json::ensure_object(metadata, "labels");
    for (std::string_view name : {"batch.kubernetes.io/job-name", "job-name"}) labels[name] = kube::name_of(job);
    for (std::string_view name : {"batch.kubernetes.io/controller-uid", "controller-uid"}) labels[name] = kube::uid_of(job);
    json::ensure_array(metadata, "ownerReferences").push_back(make_owner_ref(kube::types::jobs(), job, true, true));
    if (const auto* spec = json::get_object(job, {"spec", "template", "spec"})) pod["spec"] = *spec;
    auto made = co_await env.create(kube::types::pods(), pod);
    if (!made) {
      env.record(kube::types::jobs(), job, "FailedCreate", "Error creating: " + made.error().message(), "job-controller",
                 "Warning");
      co_return made.error();
    }
    env.record(kube::types::jobs(), job, "SuccessfulCreate", "Created pod: " + std::string(kube::name_of(*made)),
               "job-controller");
    co_return result<void>();
  }

  task<void> write_status(object job, std::int64_t active, std::int64_t ready, std::int64_t succeeded, std::int64_t failed,
                          bool done, bool broken) {
    object s;
    s["startTime"] = std::string(json::get_string(job, {"status", "startTime"}, env.now()));
    if (active) s["active"] = active;
    s["ready"] = ready;
    if (succeeded) s["succeeded"] = succeeded;
    if (failed) s["failed"] = failed;
    s["terminating"] = 0;
    object uncounted;
    s["uncountedTerminatedPods"] = std::move(uncounted);
    if (done || broken) {
      array conditions;
      for (std::string_view type : {done ? "SuccessCriteriaMet" : "FailureTarget", done ? "Complete" : "Failed"}) {
        object c;
        c["type"] = type;
        c["status"] = "True";
        c["lastProbeTime"] = env.now();
        c["lastTransitionTime"] = env.now();
        c["reason"] = done ? "CompletionsReached" : "BackoffLimitExceeded";
        c["message"] = done ? "Reached expected number of succeeded pods" : "Job has reached the specified backoff limit";
        conditions.push_back(std::move(c));
      }
      s["conditions"] = std::move(conditions);
      if (done) s["completionTime"] = env.now();
      env.record(kube::types::jobs(), job, done ? "Completed" : "BackoffLimitExceeded",
                 done ? "Job completed" : "Job has reached the specified backoff limit", "job-controller",
                 done ? "Normal" : "Warning");
    }
    const auto* before = json::find(job, {"status"});
    if (before && json::write_canonical(*before) == json::write_canonical(json::value(s))) co_return result<void>();
    job["status"] = std::move(s);
    auto r = co_await env.replace_status(kube::types::jobs(), job);
    if (!r && r.error().code() != errc::not_found) co_return r.error();
    co_return result<void>();
  }
};

}  // namespace

std::unique_ptr<controller> make_job_controller(environment& env) { return std::make_unique<job_controller>(env); }

}  // namespace kubeopera::inline v1::testing::sim
