#include "server/services/app_controller/step.hpp"

#include <algorithm>

namespace kubeopera::inline v1::app_controller {

namespace {

// One line that Git takes as a trailer's value. Annotations are written by whoever may.
bool presentable(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != ' ' &&
         std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string annotation_or(const kube::object& o, const char* key, const std::string& fallback) {
  auto text = kube::annotation_of(o, key);
  return presentable(text) ? std::string(text) : fallback;
}

}  // namespace

std::string reconciler::step::actor() const { return annotation_or(object, manifest::actor_annotation, spec.actor); }
std::string reconciler::step::request_id() const {
  return annotation_or(object, manifest::request_id_annotation, spec.request_id);
}
std::optional<trace_context> reconciler::step::trace() const {
  return parse_traceparent(kube::annotation_of(object, manifest::traceparent_annotation));
}

std::vector<std::pair<std::string, std::string>> reconciler::step::trailers() const {
  std::vector<std::pair<std::string, std::string>> out;
  auto add = [&out](const char* key, std::string value) {
    if (presentable(value)) out.emplace_back(key, std::move(value));
  };
  add("Kubeopera-App", spec.app_id);
  add("Kubeopera-Revision", std::to_string(spec.revision));
  add("Kubeopera-Actor", actor());
  add("Kubeopera-Request-Id", request_id());
  if (auto t = trace()) add("Traceparent", t->header());
  return out;
}

field_list reconciler::step::ids() const {
  auto t = trace();
  return {{"request_id", request_id()},  {"trace_id", t ? t->trace_id : std::string()},
          {"tenant_id", spec.tenant_id}, {"app_id", spec.app_id},
          {"app", spec.app.name},        {"revision", spec.revision > 0 ? std::to_string(spec.revision) : std::string()},
          {"cluster", spec.tenant_ref},  {"resource", key.str()}};
}

void set_condition(manifest::app_resource_status& s, const std::string& type, std::string_view status, std::string reason,
                   std::string message, std::int64_t generation, system_time now) {
  auto it = std::find_if(s.conditions.begin(), s.conditions.end(), [&](const auto& c) { return c.type == type; });
  if (it == s.conditions.end()) {
    it = s.conditions.emplace(s.conditions.end());
    it->type = type;
  }
  if (it->status != status) it->lastTransitionTime = format_rfc3339(now);
  it->status = status;
  it->reason = std::move(reason);
  it->message = std::move(message);
  it->observedGeneration = generation;
}

void set_summary(manifest::app_resource_status& s, std::string_view ready, bool reconciling, bool stalled,
                 const std::string& reason, const std::string& message, std::int64_t generation, system_time now) {
  set_condition(s, "Ready", ready, reason, message, generation, now);
  set_condition(s, "Reconciling", reconciling ? "True" : "False", reason, reconciling ? message : "", generation, now);
  set_condition(s, "Stalled", stalled ? "True" : "False", reason, stalled ? message : "", generation, now);
  s.phase = ready == "True" ? "Delivered" : stalled ? "Stalled" : "Delivering";
  if (!reconciling) s.observedGeneration = generation;
}

kube::object make_source(const options& o) {
  auto source = kube::make_object(kube::types::git_repositories(), {flux_namespace, source_name});
  auto& meta = source["metadata"].as_object();
  meta["labels"] = json::object{{"app.kubernetes.io/managed-by", "kubeopera"}};
  json::object spec{{"interval", o.flux_interval}, {"url", o.fleet_url}, {"ref", json::object{{"branch", o.fleet_branch}}}};
  if (!o.fleet_secret_ref.empty()) spec["secretRef"] = json::object{{"name", o.fleet_secret_ref}};
  source["spec"] = std::move(spec);
  return source;
}

kube::object make_kustomization(const options& o, const kube::object_key& resource, const std::string& app,
                                const std::string& directory) {
  auto k = kube::make_object(kube::types::kustomizations(), {flux_namespace, app});
  auto& meta = k["metadata"].as_object();
  meta["labels"] = json::object{{"app.kubernetes.io/managed-by", "kubeopera"}};
  meta["annotations"] = json::object{{resource_annotation, resource.str()}};
  k["spec"] = json::object{{"interval", o.flux_interval},
                           {"path", "./" + directory},
                           {"prune", true},
                           {"wait", false},
                           {"force", false},
                           {"timeout", "2m"},
                           {"retryInterval", "10s"},
                           {"sourceRef", json::object{{"kind", "GitRepository"}, {"name", source_name}}}};
  return k;
}

bool covers(const kube::object& live, const kube::object& wanted) {
  auto subset = [](auto&& self, const json::value& have, const json::value& want) -> bool {
    auto* w = want.if_object();
    if (!w) return have == want;
    auto* h = have.if_object();
    if (!h) return false;
    for (const auto& m : *w) {
      auto* v = h->if_contains(m.key());
      if (!v || !self(self, *v, m.value())) return false;
    }
    return true;
  };
  if (live.empty()) return false;
  return subset(subset, json::value(live), json::value(wanted));
}

std::string revision_commit(std::string_view revision) {
  if (auto at = revision.rfind(':'); at != std::string_view::npos) return std::string(revision.substr(at + 1));
  if (auto at = revision.rfind('/'); at != std::string_view::npos) return std::string(revision.substr(at + 1));
  return std::string(revision);
}

delivery judge_delivery(const kube::object& k, bool applied, bool attempted) {
  if (json::get_bool(k, {"spec", "suspend"})) return {delivery::kind::suspended, "Suspended", "the Kustomization is suspended"};
  auto* ready = kube::find_condition(k, "Ready");
  std::string status(ready ? json::get_string(*ready, {"status"}) : "");
  std::string reason(ready ? json::get_string(*ready, {"reason"}) : "");
  std::string message(ready ? json::get_string(*ready, {"message"}) : "");
  if (applied && status != "False") return {delivery::kind::applied, "Applied", "Flux has applied the manifests"};
  if (status == "False" && (attempted || reason == "ArtifactFailed")) return {delivery::kind::failed, reason, message};
  return {delivery::kind::waiting, "WaitingForFlux", "committed; Flux has not applied the commit yet"};
}

bool undoes_delivery(const kube::object& before, const kube::object& now) {
  if (kube::generation_of(before) != kube::generation_of(now) || kube::being_deleted(now)) return true;
  if (json::get_string(now, {"metadata", "annotations", resource_annotation}) !=
      json::get_string(before, {"metadata", "annotations", resource_annotation}))
    return true;
  const auto* ready = kube::find_condition(now, "Ready");
  return ready && json::get_string(*ready, {"status"}) == "False";
}

bool is_delivered(const kube::object& app) {
  return !kube::being_deleted(app) && json::get_string(app, {"status", "phase"}) == "Delivered" &&
         json::get_int(app, {"status", "observedGeneration"}) == kube::generation_of(app);
}

}  // namespace kubeopera::inline v1::app_controller
