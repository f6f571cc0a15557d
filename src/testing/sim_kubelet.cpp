// The kubelet: what each simulated container is doing, and the pod status that says so.
#include "src/testing/sim_kubelet.hpp"

#include "src/testing/sim_logs.hpp"
#include "src/testing/sim_meta.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

enum class stage { fresh, pulling, pull_failed, pull_backoff, config_error, creating, running, backoff, exited };

struct container_run {
  std::string name;
  stage at = stage::fresh;
  fault_kind fault = fault_kind::none;
  steady_time due{};  // when the stage is over; epoch: not by itself
  int restarts = 0, attempts = 0, crashes = 0;
  bool ready = false;
  bool complained = false;
  std::string started;  // RFC 3339
  steady_time begun{}, beat{};
  std::string id;
  std::string message;
  json::value last_state = object();
  json::value ended;  // terminated state
};

struct pod_run {
  std::string uid, start, ip;
  std::vector<container_run> containers;
};

duration grown(duration base, int times) {
  return std::min<duration>(base * (1 << std::clamp(times, 0, 10)), std::max<duration>(5min, base));
}

std::string version_of(std::string_view image) {
  auto at = image.rfind('/');
  auto tail = at == std::string_view::npos ? image : image.substr(at + 1);
  auto colon = tail.find(':');
  return colon == std::string_view::npos ? "latest" : std::string(tail.substr(colon + 1));
}

class kubelet final : public controller {
 public:
  kubelet(environment& e, fault_table& f, log_store& l) : controller(e), faults_(f), logs_(l) {}
  std::string_view name() const override { return "kubelet"; }
  std::vector<resource_type> watches() const override {
    return {kube::types::pods(), kube::types::secrets(), kube::types::config_maps()};
  }
  bool batched() const override { return true; }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    if (type == kube::types::pods()) {
      if (after)
        enqueue(kube::key_of(*after));
      else
        runs_.erase(std::string(kube::uid_of(*before)));
    } else if (after && (type == kube::types::secrets() || type == kube::types::config_maps())) {
      for (const auto& key : misconfigured_) {
        if (key.ns == kube::namespace_of(*after)) enqueue(key);
      }
    }
  }

  task<void> reconcile(const object_key& key) override {
    auto pod = env.objects.get(kube::types::pods(), key);
    if (!pod || !pod_active(*pod) || json::get_string(*pod, {"spec", "nodeName"}).empty()) {
      misconfigured_.erase(key);
      co_return result<void>();
    }
    auto& run = run_of(*pod);
    misconfigured_.erase(key);
    auto now = std::chrono::steady_clock::now();
    steady_time next = steady_time::max();
    const auto& specs = *json::get_array(*pod, {"spec", "containers"});
    for (std::size_t i = 0; i < run.containers.size() && i < specs.size(); ++i) {
      advance(*pod, specs[i].as_object(), run.containers[i], now);
      const auto& c = run.containers[i];
      if (c.at == stage::config_error) misconfigured_.insert(key);
      if (c.due != steady_time{}) next = std::min(next, c.due);
      if (c.at == stage::running && env.options.heartbeat > duration::zero()) next = std::min(next, c.beat);
    }
    if (next != steady_time::max()) enqueue_after(key, next - now);
    auto copy = *pod;
    auto status = status_of(*pod, run);
    const auto* before = json::find(*pod, {"status"});
    if (before && json::write_canonical(*before) == json::write_canonical(json::value(status))) co_return result<void>();
    copy["status"] = std::move(status);
    auto r = co_await env.replace_status(kube::types::pods(), copy, env.options.kubelet_manager);
    if (!r && r.error().code() != errc::not_found) co_return r.error();
    co_return result<void>();
  }

 private:
  pod_run& run_of(const object& pod);
  void restore(const object& pod, pod_run& run);
  void advance(const object& pod, const object& spec, container_run& c, steady_time now);
  void pulled(const object& pod, const object& spec, container_run& c, steady_time now);
  void launch(const object& pod, const object& spec, container_run& c, steady_time now);
  void running(const object& pod, const object& spec, container_run& c, steady_time now);
  void exit(const object& pod, container_run& c, steady_time now, int code, std::string_view reason);
  std::string missing_reference(const object& pod, const object& spec) const;
  duration ready_after(const object& pod, const container_run& c) const;
  object status_of(const object& pod, const pod_run& run) const;
  object container_status(const object& spec, const container_run& c) const;
  void tell(const object& pod, const container_run& c, std::string reason, std::string message, bool warning = false);
  std::string next_ip();

  fault_table& faults_;
  log_store& logs_;
  std::map<std::string, pod_run> runs_;
  std::set<object_key> misconfigured_;
  std::uint32_t last_ip_ = 0;
};

std::string kubelet::next_ip() {
  if (last_ip_ == 0) {
    for (const auto& p : env.objects.list(kube::types::pods())) {
      unsigned a = 0, b = 0;
      auto text = std::string(json::get_string(*p, {"status", "podIP"}));
      if (std::sscanf(text.c_str(), "10.244.%u.%u", &a, &b) == 2) last_ip_ = std::max(last_ip_, a * 256 + b);
    }
  }
  last_ip_ = last_ip_ % 65'000 + 1;
  if (last_ip_ % 256 == 0) ++last_ip_;
  return "10.244." + std::to_string(last_ip_ / 256) + "." + std::to_string(last_ip_ % 256);
}

pod_run& kubelet::run_of(const object& pod) {
  auto [it, fresh] = runs_.try_emplace(std::string(kube::uid_of(pod)));
  auto& run = it->second;
  if (!fresh) return run;
  run.uid = it->first;
  run.start = std::string(json::get_string(pod, {"status", "startTime"}, env.now()));
  run.ip = std::string(json::get_string(pod, {"status", "podIP"}));
  if (run.ip.empty()) run.ip = next_ip();
  if (const auto* all = json::get_array(pod, {"spec", "containers"})) {
    for (const auto& c : *all) {
      container_run one;
      one.name = std::string(json::get_string(c.as_object(), {"name"}));
      run.containers.push_back(std::move(one));
    }
  }
  restore(pod, run);
  return run;
}

// After a restart of the simulator: containers are where their status says they were.
void kubelet::restore(const object& pod, pod_run& run) {
  const auto* all = json::get_array(pod, {"status", "containerStatuses"});
  if (!all) return;
  auto key = kube::key_of(pod);
  auto now = std::chrono::steady_clock::now();
  for (const auto& s : *all) {
    const auto& status = s.as_object();
    for (auto& c : run.containers) {
      if (c.name != json::get_string(status, {"name"})) continue;
      c.restarts = static_cast<int>(json::get_int(status, {"restartCount"}));
      c.crashes = c.restarts;
      c.id = std::string(json::get_string(status, {"containerID"}));
      if (const auto* last = json::find(status, {"lastState"})) c.last_state = *last;
      if (json::find(status, {"state", "running"})) {
        c.at = stage::running;
        c.started = std::string(json::get_string(status, {"state", "running", "startedAt"}));
        c.begun = now;
        c.beat = now + env.options.heartbeat;
        c.ready = json::get_bool(status, {"ready"});
        c.fault = fault_by_name(pod, object());
        logs_.begin(key.ns, key.name, c.name);
        logs_.print(key.ns, key.name, c.name, "level=info msg=\"running\" since=" + c.started);
      } else if (json::get_string(status, {"state", "waiting", "reason"}) == "CrashLoopBackOff") {
        c.at = stage::backoff;
        c.due = now + env.options.restart_backoff;
        c.message = std::string(json::get_string(status, {"state", "waiting", "message"}));
      } else if (const auto* ended = json::find(status, {"state", "terminated"})) {
        c.at = stage::exited;
        c.ended = *ended;
      }
    }
  }
}

std::string kubelet::missing_reference(const object& pod, const object& spec) const {
  auto ns = std::string(kube::namespace_of(pod));
  auto check = [&](const object& ref, const resource_type& type, bool keyed) -> std::string {
    if (json::get_bool(ref, {"optional"})) return {};
    object_key key;
    key.ns = ns;
    key.name = std::string(json::get_string(ref, {"name"}));
    auto found = env.objects.get(type, key);
    std::string word = type.kind == "Secret" ? "secret" : "configmap";
    if (!found) return word + " \"" + key.name + "\" not found";
    auto wanted = json::get_string(ref, {"key"});
    if (keyed && !json::find(*found, {"data", wanted}) && !json::find(*found, {"binaryData", wanted})) {
      return "couldn't find key " + std::string(wanted) + " in " + type.kind + " " + key.str();
    }
    return {};
  };
  std::string why;
  if (const auto* all = json::get_array(spec, {"envFrom"})) {
    for (const auto& e : *all) {
      if (const auto* r = json::get_object(e.as_object(), {"secretRef"}); r && why.empty())
        why = check(*r, kube::types::secrets(), false);
      if (const auto* r = json::get_object(e.as_object(), {"configMapRef"}); r && why.empty())
        why = check(*r, kube::types::config_maps(), false);
    }
  }
  if (const auto* all = json::get_array(spec, {"env"})) {
    for (const auto& e : *all) {
      const auto& o = e.as_object();
      if (const auto* r = json::get_object(o, {"valueFrom", "secretKeyRef"}); r && why.empty())
        why = check(*r, kube::types::secrets(), true);
      if (const auto* r = json::get_object(o, {"valueFrom", "configMapKeyRef"}); r && why.empty())
        why = check(*r, kube::types::config_maps(), true);
    }
  }
  return why;
}

void kubelet::tell(const object& pod, const container_run& c, std::string reason, std::string message, bool warning) {
  if (!env.options.events) return;
  happening h;
  h.key = kube::key_of(pod);
  h.api_version = "v1";
  h.kind = "Pod";
  h.uid = std::string(kube::uid_of(pod));
  h.resource_version = std::string(kube::resource_version_of(pod));
  h.field_path = "spec.containers{" + c.name + "}";
  h.type = warning ? "Warning" : "Normal";
  h.reason = std::move(reason);
  h.message = std::move(message);
  h.component = "kubelet";
  h.host = std::string(json::get_string(pod, {"spec", "nodeName"}));
  h.manager = env.options.kubelet_manager;
  env.record(std::move(h));
}

duration kubelet::ready_after(const object& pod, const container_run& c) const {
  if (c.fault == fault_kind::slow) return env.options.slow_ready;
  auto asked = kube::annotation_of(pod, "sim.kubeopera.io/ready-after");
  if (auto d = parse_go_duration(asked)) return *d;
  return env.options.ready_delay;
}

void kubelet::advance(const object& pod, const object& spec, container_run& c, steady_time now) {
  auto image = std::string(json::get_string(spec, {"image"}));
  bool over = c.due != steady_time{} && c.due <= now;
  switch (c.at) {
    case stage::fresh:
    case stage::pull_backoff:
      if (c.at == stage::pull_backoff && !over) return;
      tell(pod, c, "Pulling", "Pulling image \"" + image + "\"");
      c.at = stage::pulling;
      c.due = now + env.options.pull_time;
      if (env.options.pull_time > duration::zero()) return;
      [[fallthrough]];
    case stage::pulling:
      if (now < c.due) return;
      return pulled(pod, spec, c, now);
    case stage::pull_failed:
      if (!over) return;
      c.at = stage::pull_backoff;
      c.due = now + grown(env.options.pull_backoff, c.attempts - 1);
      tell(pod, c, "BackOff", "Back-off pulling image \"" + image + "\"");
      tell(pod, c, "Failed", "Error: ImagePullBackOff", true);
      return;
    case stage::config_error:
      c.message = missing_reference(pod, spec);
      if (c.message.empty() && c.fault != fault_kind::config) return launch(pod, spec, c, now);
      if (c.message.empty()) c.message = "secret \"sim-missing\" not found";
      c.due = now + 2s;
      return;
    case stage::creating:
      return launch(pod, spec, c, now);
    case stage::running:
      return running(pod, spec, c, now);
    case stage::backoff:
      if (!over) return;
      ++c.restarts;
      return launch(pod, spec, c, now);
    case stage::exited:
      c.due = {};
      return;
  }
}

void kubelet::pulled(const object& pod, const object& spec, container_run& c, steady_time now) {
  auto image = std::string(json::get_string(spec, {"image"}));
  c.fault = fault_of(pod, spec, faults_);
  c.due = {};
  if (c.fault == fault_kind::image_pull) {
    ++c.attempts;
    c.at = stage::pull_failed;
    c.message = pull_error(image);
    c.due = now + std::min<duration>(1s, env.options.pull_backoff / 2);
    tell(pod, c, "Failed", "Failed to pull image \"" + image + "\": " + c.message, true);
    tell(pod, c, "Failed", "Error: ErrImagePull", true);
    return;
  }
  tell(pod, c, "Pulled", "Successfully pulled image \"" + image + "\"");
  c.message = missing_reference(pod, spec);
  if (!c.message.empty() || c.fault == fault_kind::config) {
    if (c.message.empty()) c.message = "secret \"sim-missing\" not found";
    c.at = stage::config_error;
    c.due = now + 2s;
    tell(pod, c, "Failed", "Error: " + c.message, true);
    return;
  }
  c.at = stage::creating;
  if (!env.options.show_creating) return launch(pod, spec, c, now);
  c.due = now;
}

void kubelet::launch(const object& pod, const object& spec, container_run& c, steady_time now) {
  auto key = kube::key_of(pod);
  auto image = std::string(json::get_string(spec, {"image"}));
  c.fault = fault_of(pod, spec, faults_);
  c.at = stage::running;
  c.started = env.now();
  c.begun = now;
  c.beat = now + env.options.heartbeat;
  c.id = "containerd://" + make_uuid_v4();
  c.ready = false;
  c.complained = false;
  c.message.clear();
  tell(pod, c, "Created", "Container created");
  tell(pod, c, "Started", "Container started");
  logs_.begin(key.ns, key.name, c.name);
  logs_.print(key.ns, key.name, c.name,
              "level=info msg=starting container=" + c.name + " version=" + version_of(image) + " image=" + image);
  std::string port = "8080";
  if (const auto* ports = json::get_array(spec, {"ports"}); ports && !ports->empty()) {
    port = std::to_string(json::get_int(ports->front().as_object(), {"containerPort"}, 8080));
  }
  if (c.fault == fault_kind::crash) {
    logs_.print(key.ns, key.name, c.name, "level=fatal msg=\"cannot start: configuration is invalid\" code=1");
  } else if (c.fault == fault_kind::oom) {
    logs_.print(key.ns, key.name, c.name, "level=info msg=\"loading data into memory\" rows=48000000");
  } else {
    logs_.print(key.ns, key.name, c.name, "level=info msg=listening address=0.0.0.0:" + port);
  }
  running(pod, spec, c, now);
}

void kubelet::running(const object& pod, const object&, container_run& c, steady_time now) {
  auto key = kube::key_of(pod);
  c.due = {};
  bool forever = json::get_string(pod, {"spec", "restartPolicy"}, "Always") == "Always";
  if (c.fault == fault_kind::crash || c.fault == fault_kind::oom || !forever) {
    auto end = c.begun + (c.fault == fault_kind::none ? duration(50ms) : env.options.crash_after);
    if (now < end) {
      c.due = end;
      return;
    }
    if (c.fault == fault_kind::oom) return exit(pod, c, now, 137, "OOMKilled");
    if (c.fault == fault_kind::crash) return exit(pod, c, now, 1, "Error");
    return exit(pod, c, now, 0, "Completed");
  }
  if (c.beat <= now && env.options.heartbeat > duration::zero()) {
    auto up = std::chrono::duration_cast<std::chrono::seconds>(now - c.begun).count();
    logs_.print(key.ns, key.name, c.name, "level=info msg=heartbeat uptime=" + std::to_string(up) + "s");
    c.beat = now + env.options.heartbeat;
  }
  if (c.ready) return;
  auto at = c.begun + ready_after(pod, c);
  if (c.fault == fault_kind::readiness) {
    tell(pod, c, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", true);
    c.due = now + 10s;
  } else if (now < at) {
    if (c.fault == fault_kind::slow && !c.complained) {
      tell(pod, c, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", true);
      c.complained = true;
    }
    c.due = at;
  } else {
    c.ready = true;
  }
}

void kubelet::exit(const object& pod, container_run& c, steady_time now, int code, std::string_view reason) {
  auto key = kube::key_of(pod);
  logs_.end(key.ns, key.name, c.name);
  object ended;
  ended["exitCode"] = code;
  ended["reason"] = reason;
  ended["startedAt"] = c.started;
  ended["finishedAt"] = env.now();
  ended["containerID"] = c.id;
  c.ready = false;
  c.ended = ended;
  auto policy = json::get_string(pod, {"spec", "restartPolicy"}, "Always");
  if (policy == "Never" || (policy == "OnFailure" && code == 0)) {
    c.at = stage::exited;
    c.due = {};
    return;
  }
  object last;
  last["terminated"] = std::move(ended);
  c.last_state = std::move(last);
  c.at = stage::backoff;
  auto wait = c.crashes == 0 ? duration(50ms) : grown(env.options.restart_backoff, c.crashes - 1);
  ++c.crashes;
  c.due = now + wait;
  if (c.crashes == 1) {
    c.message.clear();
    return;
  }
  auto where = key.name + "_" + key.ns + "(" + std::string(kube::uid_of(pod)) + ")";
  c.message = "back-off " + format_go_duration(wait) + " restarting failed container=" + c.name + " pod=" + where;
  tell(pod, c, "BackOff", "Back-off restarting failed container " + c.name + " in pod " + where, true);
}

object kubelet::container_status(const object& spec, const container_run& c) const {
  object s, state, inner;
  auto image = json::get_string(spec, {"image"});
  s["name"] = c.name;
  auto waiting = [&](std::string_view reason, std::string_view message) {
    inner["reason"] = reason;
    if (!message.empty()) inner["message"] = message;
    state["waiting"] = std::move(inner);
  };
  switch (c.at) {
    case stage::running:
      inner["startedAt"] = c.started;
      state["running"] = std::move(inner);
      break;
    case stage::pull_failed:
      waiting("ErrImagePull", c.message);
      break;
    case stage::pull_backoff:
      waiting("ImagePullBackOff", "Back-off pulling image \"" + std::string(image) + "\": ErrImagePull: " + c.message);
      break;
    case stage::config_error:
      waiting("CreateContainerConfigError", c.message);
      break;
    case stage::backoff:
      if (c.message.empty())
        state["terminated"] = c.ended;
      else
        waiting("CrashLoopBackOff", c.message);
      break;
    case stage::exited:
      state["terminated"] = c.ended;
      break;
    default:
      waiting("ContainerCreating", "");
      break;
  }
  s["state"] = std::move(state);
  s["lastState"] = c.last_state;
  s["ready"] = c.ready;
  s["restartCount"] = c.restarts;
  s["image"] = image;
  bool began = c.at == stage::running || c.at == stage::backoff || c.at == stage::exited;
  s["imageID"] = env.options.minimal_pod_status || !began ? "" : "sim://" + std::string(image);
  if (!env.options.minimal_pod_status) {
    if (began) s["containerID"] = c.id;
    s["started"] = c.at == stage::running;
  }
  return s;
}

object kubelet::status_of(const object& pod, const pod_run& run) const {
  object s;
  if (const auto* before = json::get_object(pod, {"status"})) s = *before;
  array statuses;
  const auto& specs = *json::get_array(pod, {"spec", "containers"});
  std::string unready;
  bool started = true, all_exited = true, failed = false;
  for (std::size_t i = 0; i < run.containers.size() && i < specs.size(); ++i) {
    const auto& c = run.containers[i];
    statuses.push_back(container_status(specs[i].as_object(), c));
    if (!c.ready) unready += (unready.empty() ? "" : " ") + c.name;
    started = started && !c.started.empty();
    all_exited = all_exited && c.at == stage::exited;
    if (c.at == stage::exited && c.ended.is_object() && json::get_int(c.ended.get_object(), {"exitCode"}) != 0) failed = true;
  }
  s["phase"] = all_exited ? (failed ? "Failed" : "Succeeded") : started ? "Running" : "Pending";
  array conditions;
  const auto* before = json::get_array(pod, {"status", "conditions"});
  auto add = [&](std::string_view type, bool yes, std::string_view reason, const std::string& message) {
    object c;
    c["type"] = type;
    c["status"] = yes ? "True" : "False";
    c["lastProbeTime"] = nullptr;
    std::string since = env.now();
    const auto* old = before ? condition_in(*before, type) : nullptr;
    if (old && json::get_string(*old, {"status"}) == (yes ? "True" : "False"))
      since = std::string(json::get_string(*old, {"lastTransitionTime"}, since));
    c["lastTransitionTime"] = since;
    if (!reason.empty()) c["reason"] = reason;
    if (!message.empty()) c["message"] = message;
    conditions.push_back(std::move(c));
  };
  bool ready = unready.empty();
  auto reason = ready ? "" : all_exited && !failed ? "PodCompleted" : "ContainersNotReady";
  auto message = ready || (all_exited && !failed) ? std::string() : "containers with unready status: [" + unready + "]";
  if (!env.options.minimal_pod_status) {
    s["observedGeneration"] = kube::generation_of(pod);
    add("PodReadyToStartContainers", true, "", "");
  }
  add("Initialized", true, "", "");
  add("Ready", ready, reason, message);
  add("ContainersReady", ready, reason, message);
  add("PodScheduled", true, "", "");
  s["conditions"] = std::move(conditions);
  if (!env.options.minimal_pod_status) {
    object host;
    host["ip"] = "10.0.0.10";
    array hosts;
    hosts.push_back(std::move(host));
    s["hostIP"] = "10.0.0.10";
    s["hostIPs"] = std::move(hosts);
  }
  object ip;
  ip["ip"] = run.ip;
  array ips;
  ips.push_back(std::move(ip));
  s["podIP"] = run.ip;
  s["podIPs"] = std::move(ips);
  s["startTime"] = run.start;
  s["containerStatuses"] = std::move(statuses);
  return s;
}

}  // namespace

std::unique_ptr<controller> make_kubelet(environment& env, fault_table& faults, log_store& logs) {
  return std::make_unique<kubelet>(env, faults, logs);
}

}  // namespace kubeopera::inline v1::testing::sim
