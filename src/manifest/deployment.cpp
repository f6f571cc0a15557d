// The Deployment and its pod template.
#include "src/manifest/objects.hpp"

#include <kubeopera/manifest/quantity.hpp>

#include <algorithm>
#include <utility>

namespace kubeopera::inline v1::manifest::objects {
namespace {

constexpr const char* default_cpu_request = "100m";
constexpr const char* default_memory_request = "128Mi";
constexpr const char* default_cpu_limit = "500m";
constexpr const char* default_memory_limit = "256Mi";
constexpr const char* scratch_size = "256Mi";
constexpr const char* storage_request = "64Mi";
constexpr const char* storage_limit = "2Gi";
constexpr std::int64_t default_user = 10001;  // above the ids that hosts give to people and services

quantity parsed(const std::optional<std::string>& given, const char* fallback) {
  return quantity::parse(given ? *given : fallback).value();
}

// Request and limit of one resource; a missing one takes its default, pushed to the right side of the other.
std::pair<std::string, std::string> pair_of(const std::optional<std::string>& request, const std::optional<std::string>& limit,
                                            const char* default_request, const char* default_limit) {
  auto low = parsed(request, default_request);
  auto high = parsed(limit, default_limit);
  if (!limit) high = std::max(high, low);
  if (!request) low = std::min(low, high);
  return {low.str(), high.str()};
}

json::object resources(const resource_settings& r) {
  auto [cpu_low, cpu_high] = pair_of(r.requests.cpu, r.limits.cpu, default_cpu_request, default_cpu_limit);
  auto [memory_low, memory_high] = pair_of(r.requests.memory, r.limits.memory, default_memory_request, default_memory_limit);
  auto amounts = [](const std::string& cpu, const std::string& memory, const char* storage) {
    return json::object{{"cpu", cpu}, {"memory", memory}, {"ephemeral-storage", storage}};
  };
  return {{"requests", amounts(cpu_low, memory_low, storage_request)}, {"limits", amounts(cpu_high, memory_high, storage_limit)}};
}

json::value port_of(const std::optional<int>& port) { return port ? json::value(*port) : json::value("http"); }

json::array strings(const std::vector<std::string>& all) {
  json::array out;
  for (const auto& s : all) out.emplace_back(s);
  return out;
}

json::object probe(const health_check& c) {
  json::object p;
  if (c.http)
    p["httpGet"] = json::object{{"path", c.http->path}, {"port", port_of(c.http->port)}, {"scheme", "HTTP"}};
  else if (c.exec)
    p["exec"] = json::object{{"command", strings(c.exec->command)}};
  else
    p["tcpSocket"] = json::object{{"port", port_of(c.tcp ? c.tcp->port : std::nullopt)}};
  p["initialDelaySeconds"] = c.initial_delay_seconds;
  p["periodSeconds"] = c.period_seconds;
  p["timeoutSeconds"] = c.timeout_seconds;
  p["failureThreshold"] = c.failure_threshold;
  p["successThreshold"] = c.success_threshold;
  return p;
}

// Ready as soon as the port answers. There is no such default for liveness: a port that answers proves no life, and the same
// check for both turns a slow start into a restart loop.
health_check default_readiness() {
  health_check c;
  c.tcp.emplace();
  c.period_seconds = 5;
  return c;
}

json::array environment(const app_spec& spec) {
  json::array out;
  for (const auto& e : spec.env) {
    json::object one{{"name", e.name}};
    if (e.value)
      one["value"] = *e.value;
    else if (e.secret_ref)
      one["valueFrom"] = json::object{{"secretKeyRef", json::object{{"name", e.secret_ref->name}, {"key", e.secret_ref->key}}}};
    out.push_back(std::move(one));
  }
  return out;
}

json::array container_ports(const app_spec& spec) {
  json::array out{json::object{{"name", "http"}, {"containerPort", spec.port}, {"protocol", "TCP"}}};
  for (const auto& p : spec.ports)
    out.push_back(json::object{
        {"name", p.name}, {"containerPort", p.port}, {"protocol", p.protocol == port_protocol::TCP ? "TCP" : "UDP"}});
  return out;
}

json::object container_security(const security_settings& s) {
  json::object capabilities{{"drop", json::array{"ALL"}}};
  // What images that start as root need to take on their own user; all within the level "baseline".
  if (!s.run_as_non_root)
    capabilities["add"] = json::array{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"};
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", s.read_only_root_filesystem},
          {"capabilities", std::move(capabilities)}};
}

json::object pod_security(const security_settings& s) {
  json::object out;
  if (s.run_as_non_root) out["runAsNonRoot"] = true;
  if (s.run_as_user || s.run_as_non_root) {
    auto user = s.run_as_user.value_or(default_user);
    out["runAsUser"] = user;
    out["runAsGroup"] = user;
  }
  out["seccompProfile"] = json::object{{"type", "RuntimeDefault"}};
  return out;
}

struct scratch {
  json::array volumes, mounts;
};

scratch scratch_space(const security_settings& s) {
  scratch out;
  auto add = [&](const std::string& name, const std::string& path) {
    out.volumes.push_back(json::object{{"name", name}, {"emptyDir", json::object{{"sizeLimit", scratch_size}}}});
    out.mounts.push_back(json::object{{"name", name}, {"mountPath", path}});
  };
  add("tmp", "/tmp");
  for (std::size_t i = 0; i < s.writable_paths.size(); ++i) add("writable-" + std::to_string(i), s.writable_paths[i]);
  return out;
}

json::array spread_rules(const frame& f) {
  json::array out;
  for (const char* key : {"kubernetes.io/hostname", "topology.kubernetes.io/zone"})
    out.push_back(json::object{{"maxSkew", 1},
                               {"topologyKey", key},
                               {"whenUnsatisfiable", "ScheduleAnyway"},
                               {"labelSelector", json::object{{"matchLabels", f.selector()}}}});
  return out;
}

json::object container(const frame& f, json::array mounts) {
  const auto& spec = f.spec;
  json::object c{{"name", spec.name}, {"image", f.image}, {"imagePullPolicy", "Always"}};
  if (!spec.command.empty()) c["command"] = strings(spec.command);
  if (!spec.args.empty()) c["args"] = strings(spec.args);
  c["ports"] = container_ports(spec);
  if (!spec.env.empty()) c["env"] = environment(spec);
  c["resources"] = resources(spec.resources);
  c["readinessProbe"] = probe(spec.health.readiness ? *spec.health.readiness : default_readiness());
  if (spec.health.liveness) c["livenessProbe"] = probe(*spec.health.liveness);
  if (spec.health.startup) c["startupProbe"] = probe(*spec.health.startup);
  c["securityContext"] = container_security(spec.security);
  c["volumeMounts"] = std::move(mounts);
  return c;
}

json::value count_or_percent(const std::string& text) {
  if (text.ends_with('%')) return json::value(text);
  return json::value(std::stoi(text));
}

}  // namespace

json::object pod_template(const frame& f) {
  auto space = scratch_space(f.spec.security);
  json::object metadata{{"labels", f.labels}};
  json::object annotations;
  for (const auto& [key, value] : f.context.pod_annotations) annotations[key] = value;
  if (f.spec.restarted_at) annotations["kubectl.kubernetes.io/restartedAt"] = *f.spec.restarted_at;
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);

  json::object spec{{"serviceAccountName", f.spec.name}, {"automountServiceAccountToken", false}, {"enableServiceLinks", false}};
  const auto& pull_secret =
      f.context.image_pull_secret.empty() ? f.spec.registry_credentials.value_or("") : f.context.image_pull_secret;
  if (!pull_secret.empty()) spec["imagePullSecrets"] = json::array{json::object{{"name", pull_secret}}};
  spec["securityContext"] = pod_security(f.spec.security);
  spec["terminationGracePeriodSeconds"] = f.spec.termination_grace_seconds;
  spec["topologySpreadConstraints"] = spread_rules(f);
  spec["containers"] = json::array{container(f, std::move(space.mounts))};
  spec["volumes"] = std::move(space.volumes);
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

json::object deployment(const frame& f, json::object pod_template) {
  auto m = f.metadata(f.spec.name);
  m["annotations"] =
      json::object{{app_id_annotation, f.context.app_id}, {revision_annotation, std::to_string(f.context.revision)}};
  json::object rolling{{"maxSurge", count_or_percent(f.spec.strategy.max_surge)},
                       {"maxUnavailable", count_or_percent(f.spec.strategy.max_unavailable)}};
  json::object spec;
  if (f.spec.stopped)
    spec["replicas"] = 0;
  else if (!f.spec.autoscaling)
    spec["replicas"] = f.spec.replicas;
  if (f.spec.paused) spec["paused"] = true;
  spec["revisionHistoryLimit"] = 10;
  spec["progressDeadlineSeconds"] = 600;
  spec["selector"] = json::object{{"matchLabels", f.selector()}};
  spec["strategy"] = json::object{{"type", "RollingUpdate"}, {"rollingUpdate", std::move(rolling)}};
  spec["template"] = std::move(pod_template);
  return {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", std::move(m)}, {"spec", std::move(spec)}};
}

}  // namespace kubeopera::inline v1::manifest::objects
