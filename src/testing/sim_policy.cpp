// What limits or measures: ResourceQuota, HorizontalPodAutoscaler, PodDisruptionBudget, and claims that get a volume.
#include "src/testing/sim_meta.hpp"
#include "src/testing/sim_network.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

namespace {

task<void> put_status(environment& env, resource_type type, object obj, object status) {
  const auto* before = json::find(obj, {"status"});
  if (before && json::write_canonical(*before) == json::write_canonical(json::value(status))) co_return result<void>();
  obj["status"] = std::move(status);
  auto r = co_await env.replace_status(type, obj);
  if (!r && r.error().code() != errc::not_found) co_return r.error();
  co_return result<void>();
}

class quota_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "resourcequota"; }
  std::vector<resource_type> watches() const override {
    return {kube::types::resource_quotas(), kube::types::pods(),    kube::types::services(),
            kube::types::config_maps(),     kube::types::secrets(), kube::types::persistent_volume_claims()};
  }
  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    const auto& o = after ? *after : *before;
    if (type == kube::types::resource_quotas()) {
      if (after) enqueue(kube::key_of(o));
      return;
    }
    if (!type.namespaced || (before && after && type != kube::types::pods())) return;
    for (const auto& q : env.objects.list(kube::types::resource_quotas(), std::string(kube::namespace_of(o))))
      enqueue(kube::key_of(*q));
  }
  task<void> reconcile(const object_key& key) override {
    auto quota = env.objects.get(kube::types::resource_quotas(), key);
    if (!quota || kube::being_deleted(*quota)) co_return result<void>();
    object status, used;
    const auto* hard = json::get_object(*quota, {"spec", "hard"});
    if (!hard) co_return result<void>();
    for (const auto& limit : *hard) used[limit.key()] = used_of(std::string(limit.key()), key.ns);
    status["hard"] = *hard;
    status["used"] = std::move(used);
    co_return co_await put_status(env, kube::types::resource_quotas(), *quota, std::move(status));
  }

 private:
  std::string used_of(const std::string& what, const std::string& ns) const {
    if (what.starts_with("count/")) return count_of(what.substr(6), ns);
    std::string_view amount = what;
    bool limits = what.starts_with("limits.");
    if (limits || what.starts_with("requests.")) amount.remove_prefix(limits ? 7 : 9);
    if (amount == "cpu" || amount == "memory") {
      std::int64_t total = 0;
      for (const auto& p : env.objects.list(kube::types::pods(), ns)) {
        if (pod_finished(*p)) continue;
        for (const auto& c : *json::get_array(*p, {"spec", "containers"})) {
          total += quantity_of(json::find(c.as_object(), {"resources", limits ? "limits" : "requests", amount})).value_or(0);
        }
      }
      return format_quantity(total, amount == "memory");
    }
    if (amount == "storage") {
      std::int64_t total = 0;
      for (const auto& c : env.objects.list(kube::types::persistent_volume_claims(), ns)) {
        total += quantity_of(json::find(*c, {"spec", "resources", "requests", "storage"})).value_or(0);
      }
      return format_quantity(total, true);
    }
    return count_of(what, ns);
  }

  std::string count_of(const std::string& what, const std::string& ns) const {
    for (const auto& type : env.objects.types()) {
      if (what != type.plural && what != type.plural + "." + type.group) continue;
      std::size_t n = 0;
      for (const auto& o : env.objects.list(type, ns)) n += type != kube::types::pods() || !pod_finished(*o);
      return std::to_string(n);
    }
    return "0";
  }
};

class autoscaler final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "autoscaler"; }
  std::vector<resource_type> watches() const override {
    return {kube::types::horizontal_pod_autoscalers(), kube::types::deployments()};
  }
  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    const auto& o = after ? *after : *before;
    if (type == kube::types::horizontal_pod_autoscalers()) {
      if (after) enqueue(kube::key_of(o));
    } else if (type == kube::types::deployments() && after) {
      for (const auto& h : env.objects.list(kube::types::horizontal_pod_autoscalers(), std::string(kube::namespace_of(o)))) {
        if (json::get_string(*h, {"spec", "scaleTargetRef", "name"}) == kube::name_of(o)) enqueue(kube::key_of(*h));
      }
    }
  }
  task<void> reconcile(const object_key& key) override {
    auto hpa = env.objects.get(kube::types::horizontal_pod_autoscalers(), key);
    if (!hpa || kube::being_deleted(*hpa)) co_return result<void>();
    object_key target;
    target.ns = key.ns;
    target.name = std::string(json::get_string(*hpa, {"spec", "scaleTargetRef", "name"}));
    auto d = env.objects.get(kube::types::deployments(), target);
    bool known = d && json::get_string(*hpa, {"spec", "scaleTargetRef", "kind"}) == "Deployment" && !kube::being_deleted(*d);
    if (!known) {
      auto why = "the HPA controller was unable to get the target's current scale: deployments/scale.apps \"" + target.name +
                 "\" not found";
      co_return co_await put_status(env, kube::types::horizontal_pod_autoscalers(), *hpa,
                                    status_of(*hpa, 0, 0, 0, "FailedGetScale", why));
    }
    auto current = json::get_int(*d, {"spec", "replicas"}, 1);
    auto least = json::get_int(*hpa, {"spec", "minReplicas"}, 1), most = json::get_int(*hpa, {"spec", "maxReplicas"}, 1);
    auto desired = current == 0 ? 0 : std::clamp(current, least, std::max(least, most));
    auto running = json::get_int(*d, {"status", "replicas"});
    if (desired != current) {
      object body;
      json::ensure_object(body, "spec")["replicas"] = desired;
      kube::write_options w;
      w.field_manager = "kube-controller-manager";
      w.subresource = "scale";
      auto r = co_await env.api->patch(kube::types::deployments(), target, kube::patch_kind::merge, json::value(body), w);
      if (!r) co_return r.error();
      env.record(kube::types::horizontal_pod_autoscalers(), *hpa, "SuccessfulRescale",
                 "New size: " + std::to_string(desired) + "; reason: Current number of replicas " +
                     (current < least ? "below Spec.MinReplicas" : "above Spec.MaxReplicas"),
                 "horizontal-pod-autoscaler");
    }
    std::string reason = desired == 0 ? "ScalingDisabled" : "ValidMetricFound";
    co_return co_await put_status(env, kube::types::horizontal_pod_autoscalers(), *hpa,
                                  status_of(*hpa, running, desired, current, reason, {}));
  }

 private:
  object status_of(const object& hpa, std::int64_t running, std::int64_t desired, std::int64_t current, const std::string& reason,
                   const std::string& why) {
    object s;
    if (const auto* before = json::get_object(hpa, {"status"})) s = *before;
    s["currentReplicas"] = running;
    s["desiredReplicas"] = desired;
    if (desired != current && why.empty()) s["lastScaleTime"] = env.now();
    array conditions;
    const auto* old = json::get_array(hpa, {"status", "conditions"});
    auto add = [&](std::string_view type, bool yes, std::string_view word, std::string_view message) {
      object c;
      c["type"] = type;
      c["status"] = yes ? "True" : "False";
      const auto* before = old ? condition_in(*old, type) : nullptr;
      bool same = before && json::get_string(*before, {"status"}) == (yes ? "True" : "False");
      c["lastTransitionTime"] = same ? std::string(json::get_string(*before, {"lastTransitionTime"})) : env.now();
      c["reason"] = word;
      c["message"] = message;
      conditions.push_back(std::move(c));
    };
    if (!why.empty()) {
      add("AbleToScale", false, reason, why);
    } else {
      add("AbleToScale", true, "ReadyForNewScale", "recommended size matches current size");
      bool active = reason != "ScalingDisabled";
      add("ScalingActive", active, reason,
          active
              ? "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)"
              : "scaling is disabled since the replica count of the target is zero");
      if (active) add("ScalingLimited", false, "DesiredWithinRange", "the desired count is within the acceptable range");
    }
    s["conditions"] = std::move(conditions);
    return s;
  }
};

class disruption_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "disruption"; }
  std::vector<resource_type> watches() const override { return {kube::types::pod_disruption_budgets(), kube::types::pods()}; }
  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    const auto& o = after ? *after : *before;
    if (type == kube::types::pod_disruption_budgets()) {
      if (after) enqueue(kube::key_of(o));
    } else if (type == kube::types::pods()) {
      for (const auto& b : env.objects.list(kube::types::pod_disruption_budgets(), std::string(kube::namespace_of(o)))) {
        const auto* selector = json::get_object(*b, {"spec", "selector"});
        if (selector && selects(*selector, labels_of(o))) enqueue(kube::key_of(*b));
      }
    }
  }
  task<void> reconcile(const object_key& key) override {
    auto budget = env.objects.get(kube::types::pod_disruption_budgets(), key);
    if (!budget || kube::being_deleted(*budget)) co_return result<void>();
    const auto* selector = json::get_object(*budget, {"spec", "selector"});
    int expected = 0, healthy = 0;
    for (const auto& p : env.objects.list(kube::types::pods(), key.ns)) {
      if (!selector || !selects(*selector, labels_of(*p)) || !pod_active(*p)) continue;
      ++expected;
      healthy += pod_ready(*p);
    }
    const auto* least = json::find(*budget, {"spec", "minAvailable"});
    const auto* most = json::find(*budget, {"spec", "maxUnavailable"});
    int desired = least ? scaled_value(least, expected, true, 0) : expected - scaled_value(most, expected, true, 1);
    int allowed = std::max(0, healthy - desired);
    object s;
    s["observedGeneration"] = kube::generation_of(*budget);
    s["disruptionsAllowed"] = allowed;
    s["currentHealthy"] = healthy;
    s["desiredHealthy"] = std::max(0, desired);
    s["expectedPods"] = expected;
    object c;
    std::string word = allowed > 0 ? "True" : "False";
    const auto* old = kube::find_condition(*budget, "DisruptionAllowed");
    c["type"] = "DisruptionAllowed";
    c["status"] = word;
    c["observedGeneration"] = kube::generation_of(*budget);
    bool same = old && json::get_string(*old, {"status"}) == word;
    c["lastTransitionTime"] = same ? std::string(json::get_string(*old, {"lastTransitionTime"})) : env.now();
    c["reason"] = allowed > 0 ? "SufficientPods" : "InsufficientPods";
    c["message"] = "";
    array conditions;
    conditions.push_back(std::move(c));
    s["conditions"] = std::move(conditions);
    co_return co_await put_status(env, kube::types::pod_disruption_budgets(), *budget, std::move(s));
  }
};

class claim_controller final : public controller {
 public:
  using controller::controller;
  std::string_view name() const override { return "persistentvolumeclaim"; }
  std::vector<resource_type> watches() const override { return {kube::types::persistent_volume_claims()}; }
  void on_change(const resource_type& type, const shared_object&, const shared_object& after) override {
    if (type == kube::types::persistent_volume_claims() && after) enqueue(kube::key_of(*after));
  }
  task<void> reconcile(const object_key& key) override {
    auto claim = env.objects.get(kube::types::persistent_volume_claims(), key);
    if (!claim || kube::being_deleted(*claim) || json::get_string(*claim, {"status", "phase"}) == "Bound")
      co_return result<void>();
    auto copy = *claim;
    if (json::get_string(copy, {"spec", "volumeName"}).empty()) {
      json::ensure_object(copy, "spec")["volumeName"] = "pvc-" + std::string(kube::uid_of(copy));
      auto r = co_await env.replace(kube::types::persistent_volume_claims(), copy);
      if (!r) co_return r.error();
      copy = *r;
    }
    object s;
    s["phase"] = "Bound";
    if (const auto* modes = json::find(copy, {"spec", "accessModes"})) s["accessModes"] = *modes;
    if (const auto* wanted = json::find(copy, {"spec", "resources", "requests"})) s["capacity"] = *wanted;
    co_return co_await put_status(env, kube::types::persistent_volume_claims(), std::move(copy), std::move(s));
  }
};

}  // namespace

std::unique_ptr<controller> make_quota_controller(environment& env) { return std::make_unique<quota_controller>(env); }
std::unique_ptr<controller> make_autoscaler(environment& env) { return std::make_unique<autoscaler>(env); }
std::unique_ptr<controller> make_disruption_controller(environment& env) { return std::make_unique<disruption_controller>(env); }
std::unique_ptr<controller> make_claim_controller(environment& env) { return std::make_unique<claim_controller>(env); }

}  // namespace kubeopera::inline v1::testing::sim
