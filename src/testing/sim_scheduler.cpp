// Binds pods to nodes that have room, and says why it cannot; ends pods that are to be deleted.
#include "src/testing/sim_kubelet.hpp"
#include "src/testing/sim_logs.hpp"
#include "src/testing/sim_meta.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/status.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

namespace {

struct amounts {
  std::int64_t cpu = 0, memory = 0;  // thousandths
  amounts& operator+=(const amounts& o) {
    cpu += o.cpu;
    memory += o.memory;
    return *this;
  }
};

amounts container_requests(const object& container) {
  amounts out;
  auto read = [&](std::string_view what) {
    auto v = quantity_of(json::find(container, {"resources", "requests", what}));
    if (!v) v = quantity_of(json::find(container, {"resources", "limits", what}));
    return v.value_or(0);
  };
  out.cpu = read("cpu");
  out.memory = read("memory");
  return out;
}

amounts pod_requests(const object& pod) {
  amounts total, most;
  if (const auto* all = json::get_array(pod, {"spec", "containers"})) {
    for (const auto& c : *all) total += container_requests(c.as_object());
  }
  if (const auto* all = json::get_array(pod, {"spec", "initContainers"})) {
    for (const auto& c : *all) {
      auto one = container_requests(c.as_object());
      most.cpu = std::max(most.cpu, one.cpu);
      most.memory = std::max(most.memory, one.memory);
    }
  }
  total.cpu = std::max(total.cpu, most.cpu);
  total.memory = std::max(total.memory, most.memory);
  return total;
}

std::string path_of(const object_key& key, std::string_view sub = {}) {
  return "/api/v1/namespaces/" + key.ns + "/pods/" + key.name + std::string(sub);
}

task<void> exchange(kube::client& api, http::request request) {
  auto r = co_await api.raw(std::move(request));
  if (!r) co_return r.error();
  if (r->status >= 300) co_return kube::error_of_response(r->status, r->headers, r->body);
  co_return result<void>();
}

class scheduler final : public controller {
 public:
  scheduler(environment& e, fault_table& f) : controller(e), faults_(f) {}
  std::string_view name() const override { return "scheduler"; }
  std::vector<resource_type> watches() const override { return {kube::types::pods(), kube::types::nodes()}; }
  bool batched() const override { return true; }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    if (type == kube::types::nodes()) return enqueue_pending();
    if (type != kube::types::pods()) return;
    if (!after || pod_finished(*after)) return enqueue_pending();
    if (!json::get_string(*after, {"spec", "nodeName"}).empty()) return;
    enqueue_after(kube::key_of(*after), before ? duration::zero() : env.options.schedule_delay);
  }

  task<void> reconcile(const object_key& key) override {
    auto pod = env.objects.get(kube::types::pods(), key);
    if (!pod || !pod_active(*pod) || !json::get_string(*pod, {"spec", "nodeName"}).empty()) {
      pending_.erase(key);
      co_return result<void>();
    }
    const auto* gates = json::get_array(*pod, {"spec", "schedulingGates"});
    if (gates && !gates->empty()) co_return result<void>();
    std::string why;
    auto node = choose(*pod, why);
    if (node.empty()) {
      pending_.insert(key);
      co_return co_await mark_unschedulable(*pod, why);
    }
    pending_.erase(key);
    co_return co_await bind(*pod, node);
  }

 private:
  void enqueue_pending() {
    for (const auto& key : pending_) enqueue(key);
  }

  std::string choose(const object& pod, std::string& why) {
    auto nodes = env.objects.list(kube::types::nodes());
    if (nodes.empty()) {
      why = "no nodes available to schedule pods";
      return {};
    }
    bool refused = false;
    if (const auto* all = json::get_array(pod, {"spec", "containers"})) {
      for (const auto& c : *all) refused = refused || fault_of(pod, c.as_object(), faults_) == fault_kind::unschedulable;
    }
    auto wanted = pod_requests(pod);
    std::map<std::string, std::pair<amounts, int>> used;
    for (const auto& p : env.objects.list(kube::types::pods())) {
      auto at = std::string(json::get_string(*p, {"spec", "nodeName"}));
      if (at.empty() || pod_finished(*p)) continue;
      used[at].first += pod_requests(*p);
      ++used[at].second;
    }
    std::map<std::string, int> reasons;
    for (const auto& node : nodes) {
      auto name = std::string(kube::name_of(*node));
      auto cpu = quantity_of(json::find(*node, {"status", "allocatable", "cpu"})).value_or(INT64_MAX / 4);
      auto memory = quantity_of(json::find(*node, {"status", "allocatable", "memory"})).value_or(INT64_MAX / 4);
      auto pods = quantity_of(json::find(*node, {"status", "allocatable", "pods"})).value_or(INT64_MAX / 4);
      const auto& [taken, count] = used[name];
      bool fits = true;
      auto refuse = [&](bool lacks, const char* reason) {
        if (!lacks) return;
        ++reasons[reason];
        fits = false;
      };
      refuse(refused, "node(s) didn't match Pod's node affinity/selector");
      refuse(json::get_bool(*node, {"spec", "unschedulable"}), "node(s) were unschedulable");
      refuse(!refused && taken.cpu + wanted.cpu > cpu, "Insufficient cpu");
      refuse(!refused && taken.memory + wanted.memory > memory, "Insufficient memory");
      refuse(!refused && (count + 1) * 1000LL > pods, "Too many pods");
      if (fits) return name;
    }
    auto total = std::to_string(nodes.size());
    why = "0/" + total + " nodes are available: ";
    bool first = true;
    for (const auto& [reason, n] : reasons) {
      why += (first ? "" : ", ") + std::to_string(n) + " " + reason;
      first = false;
    }
    why += ". preemption: 0/" + total + " nodes are available: " + total +
           (refused ? " Preemption is not helpful for scheduling." : " No preemption victims found for incoming pod.");
    return {};
  }

  task<void> mark_unschedulable(object pod, std::string why) {
    const auto* c = kube::find_condition(pod, "PodScheduled");
    if (c && json::get_string(*c, {"message"}) == why) co_return result<void>();
    auto& conditions = json::ensure_array(json::ensure_object(pod, "status"), "conditions");
    erase_condition(conditions, "PodScheduled");
    object now;
    now["type"] = "PodScheduled";
    now["status"] = "False";
    now["lastProbeTime"] = nullptr;
    now["lastTransitionTime"] = env.now();
    now["reason"] = "Unschedulable";
    now["message"] = why;
    conditions.push_back(std::move(now));
    env.record(kube::types::pods(), pod, "FailedScheduling", why, "default-scheduler", "Warning");
    auto r = co_await env.replace_status(kube::types::pods(), pod, "kube-scheduler");
    if (!r && r.error().code() != errc::not_found) co_return r.error();
    co_return result<void>();
  }

  task<void> bind(const object& pod, std::string node) {
    auto key = kube::key_of(pod);
    object binding;
    binding["apiVersion"] = "v1";
    binding["kind"] = "Binding";
    auto& metadata = json::ensure_object(binding, "metadata");
    metadata["name"] = key.name;
    metadata["namespace"] = key.ns;
    metadata["uid"] = kube::uid_of(pod);
    auto& target = json::ensure_object(binding, "target");
    target["apiVersion"] = "v1";
    target["kind"] = "Node";
    target["name"] = node;
    http::request request("POST", path_of(key, "/binding"), json::write(binding));
    request.headers.set("Content-Type", "application/json");
    auto bound = co_await exchange(*env.api, std::move(request));
    if (!bound && bound.error().code() == errc::not_found) co_return result<void>();
    if (!bound) co_return bound.error();
    env.record(kube::types::pods(), pod, "Scheduled", "Successfully assigned " + key.str() + " to " + node, "default-scheduler");
    auto rv = std::string(kube::resource_version_of(pod));
    co_return co_await env.objects.wait_change(kube::types::pods(), key, rv);
  }

  fault_table& faults_;
  std::set<object_key> pending_;
};

class pod_ender final : public controller {
 public:
  pod_ender(environment& e, log_store& l) : controller(e), logs_(l) {}
  std::string_view name() const override { return "pod-ender"; }
  std::vector<resource_type> watches() const override { return {kube::types::pods()}; }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    if (type != kube::types::pods()) return;
    if (!after) {
      logs_.forget(std::string(kube::namespace_of(*before)), std::string(kube::name_of(*before)));
      asked_.erase(std::string(kube::uid_of(*before)));
      return;
    }
    if (kube::being_deleted(*after)) enqueue(kube::key_of(*after));
  }

  task<void> reconcile(const object_key& key) override {
    auto pod = env.objects.get(kube::types::pods(), key);
    if (!pod || !kube::being_deleted(*pod) || json::get_int(*pod, {"metadata", "deletionGracePeriodSeconds"}) == 0)
      co_return result<void>();
    auto uid = std::string(kube::uid_of(*pod));
    auto [it, fresh] = asked_.try_emplace(uid, std::chrono::steady_clock::now());
    if (fresh) announce(*pod);
    auto grace = std::chrono::seconds(json::get_int(*pod, {"metadata", "deletionGracePeriodSeconds"}, 30));
    auto stop = std::min<duration>(env.options.stop_time, grace);
    auto left = it->second + stop - std::chrono::steady_clock::now();
    if (left > duration::zero()) {
      enqueue_after(key, left);
      co_return result<void>();
    }
    object body, conditions;
    conditions["uid"] = uid;
    body["apiVersion"] = "v1";
    body["kind"] = "DeleteOptions";
    body["gracePeriodSeconds"] = 0;
    body["preconditions"] = std::move(conditions);
    http::request request("DELETE", path_of(key), json::write(body));
    request.headers.set("Content-Type", "application/json");
    auto rv = std::string(kube::resource_version_of(*pod));
    auto gone = co_await exchange(*env.api, std::move(request));
    if (!gone && gone.error().code() != errc::not_found && gone.error().code() != errc::conflict) co_return gone.error();
    co_return co_await env.objects.wait_change(kube::types::pods(), key, rv);
  }

 private:
  void announce(const object& pod) {
    auto key = kube::key_of(pod);
    const auto* all = json::get_array(pod, {"spec", "containers"});
    if (!all || json::get_string(pod, {"spec", "nodeName"}).empty()) return;
    for (const auto& c : *all) {
      auto name = std::string(json::get_string(c.as_object(), {"name"}));
      logs_.print(key.ns, key.name, name, "level=info msg=\"received SIGTERM, shutting down\"");
      logs_.end(key.ns, key.name, name);
      happening h;
      h.key = key;
      h.api_version = "v1";
      h.kind = "Pod";
      h.uid = std::string(kube::uid_of(pod));
      h.resource_version = std::string(kube::resource_version_of(pod));
      h.field_path = "spec.containers{" + name + "}";
      h.reason = "Killing";
      h.message = "Stopping container " + name;
      h.component = "kubelet";
      h.host = std::string(json::get_string(pod, {"spec", "nodeName"}));
      h.manager = env.options.kubelet_manager;
      if (env.options.events) env.record(std::move(h));
    }
  }

  log_store& logs_;
  std::map<std::string, steady_time> asked_;
};

}  // namespace

std::unique_ptr<controller> make_scheduler(environment& env, fault_table& faults) {
  return std::make_unique<scheduler>(env, faults);
}

std::unique_ptr<controller> make_pod_ender(environment& env, log_store& logs) { return std::make_unique<pod_ender>(env, logs); }

}  // namespace kubeopera::inline v1::testing::sim
