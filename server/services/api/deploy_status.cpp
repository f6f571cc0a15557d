// Stage by stage. The old version's health never counts: Git must have delivered our revision, and only pods of its template are
// looked at.
#include "server/services/api/deploy_status.hpp"

#include <kubeopera/manifest/render.hpp>

#include <charconv>

namespace kubeopera::inline v1::api {
namespace {

using kube::object;

constexpr auto gitops_limit = std::chrono::minutes(2);
constexpr auto reach_limit = std::chrono::minutes(5);

std::int64_t to_int(std::string_view text) {
  std::int64_t v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v);
  return v;
}

// "main@sha1:abc", "main/abc", "sha1:abc", "abc" -> "abc".
std::string_view commit_of(std::string_view revision) {
  if (auto at = revision.rfind(':'); at != std::string_view::npos) return revision.substr(at + 1);
  if (auto at = revision.rfind('/'); at != std::string_view::npos) return revision.substr(at + 1);
  return revision;
}

std::string hint_for(std::string_view cause) {
  struct entry {
    std::string_view cause, hint;
  };
  static constexpr entry hints[] = {
      {"ImagePullBackOff", "Check the image's name and tag, and whether its registry needs credentials."},
      {"ErrImagePull", "Check the image's name and tag, and whether its registry needs credentials."},
      {"InvalidImageName", "The image's name cannot be read; correct it."},
      {"CrashLoopBackOff", "The container starts and exits; its log of the previous run says why."},
      {"OOMKilled", "The container used more memory than its limit; raise the limit or use less."},
      {"CreateContainerConfigError", "A Secret or ConfigMap that the container refers to does not exist."},
      {"CreateContainerError", "The container could not be created; the message says why."},
      {"RunContainerError", "The container could not be started; the message says why."},
      {"Unschedulable", "No node has room for the pod; lower its requests or add nodes."},
      {"QuotaExceeded", "The vCluster's quota is used up; lower requests or replicas, or raise the quota."},
      {"FailedCreate", "The cluster refuses to create the pods; the message says why."},
      {"ProbeFailed", "The readiness check does not succeed; compare its path and port with what the app serves."},
      {"Suspended", "Resume the Flux object to let deliveries through."},
      {"BuildFailed", "Flux cannot build the manifests."},
      {"ReconciliationFailed", "The cluster refused a manifest; the message names it."},
      {"DnsFailed", "The address does not resolve yet."},
      {"ConnectFailed", "Nothing answers at the address's port."},
      {"TlsFailed", "The certificate is not there yet, has expired, or is for another name."},
      {"HttpStatus", "The ingress or the app answers with an error."},
      {"Redirected", "The address redirects to another host."},
      {"VClusterNotReady", "The vCluster is being provisioned."},
  };
  for (const auto& h : hints)
    if (h.cause == cause) return std::string(h.hint);
  return {};
}

void blame(stage_view& s, std::string_view cause, std::string_view message) {
  s.cause = std::string(cause);
  if (!message.empty()) s.message = std::string(message);
  auto hint = hint_for(cause);
  if (!hint.empty()) s.hint = hint;
}

void expire(stage_view& s, system_time now) {
  if (s.state != "running" || !s.deadline) return;
  auto limit = parse_rfc3339(*s.deadline);
  if (!limit || now <= *limit) return;
  s.state = "failed";
  if (!s.cause) blame(s, "DeadlineExceeded", "it took longer than expected");
}

const object* sub(const object& o, std::initializer_list<std::string_view> path) { return json::get_object(o, path); }

stage_view judge_resource(const app_row& app, const observation& seen, stage_view s) {
  if (!seen.resource_read) {
    s.state = "running";
    blame(s, "HostClusterUnavailable", seen.host_error ? seen.host_error->message() : "the host cluster does not answer");
    return s;
  }
  if (seen.resource.empty()) {
    s.state = "pending";
    blame(s, "WaitingForResource", "the app is saved; its resource is about to be created");
    return s;
  }
  if (auto* stalled = kube::find_condition(seen.resource, "Stalled");
      stalled && json::get_string(*stalled, {"status"}) == "True") {
    s.state = "failed";
    blame(s, json::get_string(*stalled, {"reason"}), json::get_string(*stalled, {"message"}));
    return s;
  }
  s.state = "running";
  if (json::get_int(seen.resource, {"status", "revision"}) < app.revision) {
    auto* r = kube::find_condition(seen.resource, "Reconciling");
    if (r && json::get_string(*r, {"status"}) == "True")
      blame(s, json::get_string(*r, {"reason"}), json::get_string(*r, {"message"}));
    else
      blame(s, "GeneratingManifests", "manifests are being generated and committed");
    return s;
  }
  s.state = "committed";  // for judge_gitops only
  return s;
}

bool flux_trouble(const object& o, stage_view& s) {
  if (o.empty()) return false;
  if (json::get_bool(o, {"spec", "suspend"})) {
    s.state = "failed";
    blame(s, "Suspended", std::string(json::get_string(o, {"kind"})) + " is suspended");
    return true;
  }
  auto* ready = kube::find_condition(o, "Ready");
  if (!ready || json::get_string(*ready, {"status"}) != "False") return false;
  auto reason = json::get_string(*ready, {"reason"});
  bool final = reason == "BuildFailed" || reason == "ReconciliationFailed" || reason == "PruneFailed";
  s.state = final ? "failed" : "running";
  blame(s, reason, json::get_string(*ready, {"message"}));
  return true;
}

bool delivered(const app_row& app, const observation& seen) {
  if (seen.kustomization.empty() || seen.deployment.empty()) return false;
  auto live = to_int(kube::annotation_of(seen.deployment, manifest::revision_annotation));
  auto applied = commit_of(json::get_string(seen.kustomization, {"status", "lastAppliedRevision"}));
  auto ours = json::get_string(seen.resource, {"status", "commit"});
  if (!applied.empty() && applied == ours && live >= app.revision) return true;
  auto* ready = kube::find_condition(seen.kustomization, "Ready");
  bool refused = ready && json::get_string(*ready, {"status"}) == "False";
  return live >= app.revision && !refused;
}

stage_view judge_gitops(const app_row& app, const observation& seen) {
  stage_view s;
  s.name = "gitops";
  s.since = format_rfc3339(app.updated_at);
  s.deadline = format_rfc3339(app.updated_at + gitops_limit);
  s = judge_resource(app, seen, std::move(s));
  if (s.state != "committed") return s;
  s.state = "running";
  if (seen.vcluster_error) {
    blame(s, seen.vcluster_error->reason(), seen.vcluster_error->message());
    return s;
  }
  if (delivered(app, seen)) {
    s.state = "succeeded";
    s.deadline.reset();
    return s;
  }
  if (flux_trouble(seen.kustomization, s) || flux_trouble(seen.source, s)) return s;
  blame(s, "WaitingForFlux", "committed; Flux has not applied the commit yet");
  return s;
}

// ---- workload -------------------------------------------------------------------------------------------------------

std::string_view template_hash(const observation& seen) { return json::get_string(seen.resource, {"status", "template_hash"}); }

bool is_current(const object& pod, std::string_view hash) {
  return hash.empty() || kube::annotation_of(pod, manifest::template_hash_annotation) == hash;
}

std::optional<pod_cause> quota_cause(const object& deployment) {
  auto* failure = kube::find_condition(deployment, "ReplicaFailure");
  if (!failure || json::get_string(*failure, {"status"}) != "True") return std::nullopt;
  std::string message(json::get_string(*failure, {"message"}));
  bool quota = message.find("exceeded quota") != std::string::npos;
  std::string reason = quota ? "QuotaExceeded" : "FailedCreate";
  return pod_cause{reason, message, hint_for(reason), true};
}

std::optional<pod_cause> probe_event(const observation& seen, const object& pod) {
  for (const auto& e : seen.events) {
    if (json::get_string(e, {"involvedObject", "name"}) != kube::name_of(pod) || json::get_string(e, {"reason"}) != "Unhealthy")
      continue;
    return pod_cause{"ProbeFailed", std::string(json::get_string(e, {"message"})), hint_for("ProbeFailed"), false};
  }
  return std::nullopt;
}

std::optional<pod_cause> worst_cause(const observation& seen) {
  if (auto q = quota_cause(seen.deployment)) return q;
  std::optional<pod_cause> found;
  for (const auto& pod : seen.pods) {
    if (kube::being_deleted(pod) || !is_current(pod, template_hash(seen))) continue;
    auto c = diagnose_pod(pod);
    if (!c && !kube::condition_true(pod, "Ready")) c = probe_event(seen, pod);
    if (c && (!found || (c->fatal && !found->fatal))) found = c;
  }
  return found;
}

bool rolled_out(const object& d) {
  auto want = json::get_int(d, {"spec", "replicas"}, 1);
  auto updated = json::get_int(d, {"status", "updatedReplicas"});
  return json::get_int(d, {"metadata", "generation"}) <= json::get_int(d, {"status", "observedGeneration"}) && updated >= want &&
         json::get_int(d, {"status", "replicas"}) <= updated && json::get_int(d, {"status", "availableReplicas"}) >= updated;
}

stage_view judge_workload(const app_row& app, const observation& seen, const stage_view& gitops) {
  stage_view s;
  s.name = "workload";
  if (gitops.state != "succeeded") {
    s.state = "pending";
    return s;
  }
  const auto& d = seen.deployment;
  auto* progressing = kube::find_condition(d, "Progressing");
  if (progressing) {
    s.since = std::string(json::get_string(*progressing, {"lastTransitionTime"}));
    if (auto t = parse_rfc3339(json::get_string(*progressing, {"lastUpdateTime"})))
      s.deadline = format_rfc3339(*t + std::chrono::seconds(json::get_int(d, {"spec", "progressDeadlineSeconds"}, 600)));
  }
  if (app.spec.stopped) {
    s.state = json::get_int(d, {"status", "replicas"}) == 0 ? "succeeded" : "running";
    s.deadline.reset();
    blame(s, "Stopped", "the app is stopped; start it to run it");
    return s;
  }
  if (app.spec.paused || json::get_bool(d, {"spec", "paused"})) {
    s.state = rolled_out(d) ? "succeeded" : "running";
    s.deadline.reset();
    blame(s, "Paused", "the rollout is paused; changes take effect when it is resumed");
    return s;
  }
  if (rolled_out(d)) {
    s.state = "succeeded";
    s.deadline.reset();
    return s;
  }
  s.state = "running";
  auto cause = worst_cause(seen);
  if (progressing && json::get_string(*progressing, {"reason"}) == "ProgressDeadlineExceeded") {
    s.state = "failed";
    blame(s, "ProgressDeadlineExceeded", json::get_string(*progressing, {"message"}));
  }
  if (cause) {
    if (cause->fatal) s.state = "failed";
    s.cause = cause->reason;
    s.message = cause->message;
    if (!cause->hint.empty()) s.hint = cause->hint;
  } else if (s.state == "running") {
    s.message = std::to_string(json::get_int(d, {"status", "availableReplicas"})) + " of " +
                std::to_string(json::get_int(d, {"spec", "replicas"}, 1)) + " pods available";
  }
  return s;
}

stage_view judge_reach(const app_row& app, const observation& seen, const stage_view& workload) {
  stage_view s;
  s.name = "reachability";
  if (app.spec.stopped) {
    s.state = "skipped";
    return s;
  }
  if (workload.state != "succeeded") {
    s.state = "pending";
    return s;
  }
  s.deadline = format_rfc3339(app.updated_at + reach_limit);
  if (!seen.probe) {
    s.state = "running";
    return s;
  }
  if (seen.probe->ok) {
    s.state = "succeeded";
    s.deadline.reset();
    s.message = "HTTP " + std::to_string(seen.probe->status);
    return s;
  }
  s.state = "running";
  blame(s, seen.probe->cause, seen.probe->message);
  return s;
}

std::string phase_of(const app_row& app, const std::vector<stage_view>& stages) {
  if (app.deleting) return "deleting";
  for (const auto& s : stages)
    if (s.state == "failed") return "failed";
  if (app.spec.stopped && stages[1].state == "succeeded") return "stopped";
  if (stages[1].cause == "Paused") return "paused";
  if (stages[2].state == "succeeded") return "live";
  return stages[0].state == "pending" ? "pending" : "deploying";
}

pod_cause make_cause(std::string reason, std::string message, bool fatal) {
  auto hint = hint_for(reason);
  return {std::move(reason), std::move(message), std::move(hint), fatal};
}

std::optional<pod_cause> diagnose_container(const object& c) {
  if (auto* w = sub(c, {"state", "waiting"})) {
    auto reason = std::string(json::get_string(*w, {"reason"}));
    auto message = std::string(json::get_string(*w, {"message"}));
    if (reason == "CrashLoopBackOff") {
      auto* last = sub(c, {"lastState", "terminated"});
      if (last && json::get_string(*last, {"reason"}) == "OOMKilled")
        return make_cause("OOMKilled", "killed for using more memory than its limit; " + message, true);
      if (last) message += " (exit code " + std::to_string(json::get_int(*last, {"exitCode"})) + ")";
      return make_cause(reason, message, true);
    }
    for (std::string_view fatal : {"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull",
                                   "CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
      if (reason == fatal) return make_cause(reason, message, true);
  }
  if (auto* t = sub(c, {"state", "terminated"})) {
    auto reason = std::string(json::get_string(*t, {"reason"}, "Error"));
    auto code = json::get_int(*t, {"exitCode"});
    if (reason == "OOMKilled") return make_cause("OOMKilled", "killed for using more memory than its limit", true);
    if (code != 0) return make_cause("ContainerExited", "the container exited with code " + std::to_string(code), false);
  }
  return std::nullopt;
}

}  // namespace

std::optional<pod_cause> diagnose_pod(const object& pod) {
  if (auto* c = kube::find_condition(pod, "PodScheduled"); c && json::get_string(*c, {"status"}) == "False")
    return make_cause("Unschedulable", std::string(json::get_string(*c, {"message"})), true);
  for (const char* list : {"initContainerStatuses", "containerStatuses"})
    if (auto* all = json::get_array(pod, {"status", list}))
      for (const auto& c : *all)
        if (auto* o = c.if_object())
          if (auto cause = diagnose_container(*o)) return cause;
  return std::nullopt;
}

std::string address_of(const app_row& app, int https_port, int http_port) {
  auto port = app.spec.tls ? https_port : http_port;
  bool usual = port == (app.spec.tls ? 443 : 80);
  return (app.spec.tls ? "https://" : "http://") + app.host + (usual ? "" : ":" + std::to_string(port));
}

bool wants_probe(const app_row& app, const observation& seen) {
  if (app.deleting || app.spec.stopped) return false;
  auto gitops = judge_gitops(app, seen);
  return judge_workload(app, seen, gitops).state == "succeeded";
}

deploy_status_view judge(const app_row& app, const observation& seen) {
  deploy_status_view v;
  v.app_id = app.id;
  v.revision = app.revision;
  v.address = address_of(app, seen.https_port, seen.http_port);
  v.checked_at = format_rfc3339_millis(seen.now);
  v.ready_replicas = static_cast<int>(json::get_int(seen.deployment, {"status", "readyReplicas"}));
  v.desired_replicas =
      static_cast<int>(json::get_int(seen.deployment, {"spec", "replicas"}, app.spec.stopped ? 0 : app.spec.replicas));
  if (app.deleting) {
    for (const char* name : {"gitops", "workload", "reachability"}) {
      stage_view s;
      s.name = name;
      s.state = "skipped";
      v.stages.push_back(std::move(s));
    }
  } else {
    v.stages.push_back(judge_gitops(app, seen));
    v.stages.push_back(judge_workload(app, seen, v.stages[0]));
    v.stages.push_back(judge_reach(app, seen, v.stages[1]));
    for (auto& s : v.stages) expire(s, seen.now);
  }
  if (json::get_int(seen.resource, {"status", "revision"}) >= app.revision)
    if (auto commit = json::get_string(seen.resource, {"status", "commit"}); !commit.empty()) v.commit = std::string(commit);
  v.phase = phase_of(app, v.stages);
  if (v.phase == "live") v.live_url = v.address;
  return v;
}

// ---- views ----------------------------------------------------------------------------------------------------------

namespace {

container_view view_container(const object& c) {
  container_view v;
  v.name = json::get_string(c, {"name"});
  v.image = json::get_string(c, {"image"});
  v.ready = json::get_bool(c, {"ready"});
  v.restarts = static_cast<int>(json::get_int(c, {"restartCount"}));
  v.state = "unknown";
  for (const char* s : {"running", "waiting", "terminated"}) {
    auto* o = sub(c, {"state", s});
    if (!o) continue;
    v.state = s;
    if (auto r = json::get_string(*o, {"reason"}); !r.empty()) v.reason = std::string(r);
    if (auto m = json::get_string(*o, {"message"}); !m.empty()) v.message = std::string(m);
    if (o->contains("exitCode")) v.exit_code = static_cast<int>(json::get_int(*o, {"exitCode"}));
  }
  return v;
}

}  // namespace

pod_view view_pod(const object& pod, std::string_view hash) {
  pod_view v;
  v.name = kube::name_of(pod);
  v.phase = kube::being_deleted(pod) ? "Terminating" : json::get_string(pod, {"status", "phase"}, "Pending");
  v.ready = kube::condition_true(pod, "Ready");
  v.current = is_current(pod, hash);
  v.created_at = json::get_string(pod, {"metadata", "creationTimestamp"});
  if (auto n = json::get_string(pod, {"spec", "nodeName"}); !n.empty()) v.node = std::string(n);
  if (auto ip = json::get_string(pod, {"status", "podIP"}); !ip.empty()) v.ip = std::string(ip);
  if (auto* all = json::get_array(pod, {"status", "containerStatuses"}))
    for (const auto& c : *all)
      if (auto* o = c.if_object()) {
        v.containers.push_back(view_container(*o));
        v.restarts += v.containers.back().restarts;
      }
  if (auto cause = diagnose_pod(pod)) {
    v.cause = cause->reason;
    v.message = cause->message;
  }
  return v;
}

std::vector<condition_view> view_conditions(const object& o) {
  std::vector<condition_view> out;
  if (auto* all = json::get_array(o, {"status", "conditions"}))
    for (const auto& c : *all) {
      auto* e = c.if_object();
      if (!e) continue;
      condition_view v;
      v.type = json::get_string(*e, {"type"});
      v.status = json::get_string(*e, {"status"});
      v.reason = json::get_string(*e, {"reason"});
      v.message = json::get_string(*e, {"message"});
      v.since = json::get_string(*e, {"lastTransitionTime"});
      out.push_back(std::move(v));
    }
  return out;
}

app_status_view view_status(const app_row& app, const observation& seen) {
  app_status_view v;
  auto status = judge(app, seen);
  v.observed_revision = json::get_int(seen.resource, {"status", "revision"});
  v.commit = status.commit;
  v.ready_replicas = status.ready_replicas;
  v.desired_replicas = status.desired_replicas;
  v.conditions = view_conditions(seen.resource);
  bool running = status.stages[1].state == "succeeded" && !app.spec.stopped && !app.deleting;
  v.phase = running && status.phase != "paused" ? "running" : status.phase;
  if (v.phase == "failed" && v.ready_replicas > 0) v.phase = "degraded";
  for (const auto& s : status.stages)
    if (s.message && s.state != "succeeded") v.message = *s.message;
  return v;
}

}  // namespace kubeopera::inline v1::api
