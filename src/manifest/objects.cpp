// Everything around the Deployment.
#include "src/manifest/objects.hpp"

#include <utility>

namespace kubeopera::inline v1::manifest::objects {
namespace {

json::object make(const char* api_version, const char* kind, json::object metadata) {
  return {{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

json::object port_entry(int port, port_protocol protocol) {
  return {{"port", port}, {"protocol", protocol == port_protocol::TCP ? "TCP" : "UDP"}};
}

json::object namespace_named(const std::string& name) {
  return {{"namespaceSelector", json::object{{"matchLabels", json::object{{"kubernetes.io/metadata.name", name}}}}}};
}

}  // namespace

json::object frame::metadata(std::string_view name, bool namespaced) const {
  json::object m{{"name", name}};
  if (namespaced) m["namespace"] = ns;
  m["labels"] = labels;
  return m;
}

json::object frame::selector() const { return {{"app.kubernetes.io/name", spec.name}}; }

frame make_frame(const app_spec& spec, const render_context& context) {
  frame f{spec, context, context.ns.empty() ? spec.name : context.ns, context.image.empty() ? spec.image : context.image, {}};
  f.labels = {{"app.kubernetes.io/name", spec.name},
              {"app.kubernetes.io/managed-by", "kubeopera"},
              {"kubeopera.io/app-id", context.app_id}};
  if (!context.tenant_id.empty()) f.labels["kubeopera.io/tenant-id"] = context.tenant_id;
  if (!context.cloudspace.empty()) f.labels["kubeopera.io/cloudspace"] = context.cloudspace;
  for (const auto& [key, value] : spec.labels) f.labels.emplace(key, value);
  return f;
}

json::object namespace_object(const frame& f) {
  auto m = f.metadata(f.ns, false);
  auto& labels = m["labels"].get_object();
  labels["pod-security.kubernetes.io/enforce"] = f.spec.security.run_as_non_root ? "restricted" : "baseline";
  labels["pod-security.kubernetes.io/warn"] = "restricted";
  return make("v1", "Namespace", std::move(m));
}

json::object service_account(const frame& f) {
  auto o = make("v1", "ServiceAccount", f.metadata(f.spec.name));
  o["automountServiceAccountToken"] = false;
  return o;
}

json::object service(const frame& f) {
  json::array ports{json::object{{"name", "http"}, {"port", 80}, {"protocol", "TCP"}, {"targetPort", "http"}}};
  for (const auto& p : f.spec.ports) {
    json::object one{{"name", p.name}};
    for (auto& m : port_entry(p.port, p.protocol)) one.emplace(m.key(), m.value());
    one["targetPort"] = p.name;
    ports.push_back(std::move(one));
  }
  auto o = make("v1", "Service", f.metadata(f.spec.name));
  o["spec"] = json::object{{"type", "ClusterIP"}, {"selector", f.selector()}, {"ports", std::move(ports)}};
  return o;
}

json::object ingress(const frame& f) {
  auto m = f.metadata(f.spec.name);
  json::object annotations;
  json::object spec{{"ingressClassName", f.context.ingress_class}};
  if (f.spec.tls) {
    json::object tls{{"hosts", json::array{json::value(f.context.host)}}};
    if (f.custom_domain()) {
      annotations["cert-manager.io/cluster-issuer"] = f.context.cluster_issuer;
      tls["secretName"] = f.spec.name + "-tls";
    } else if (!f.context.wildcard_tls_secret.empty()) {
      tls["secretName"] = f.context.wildcard_tls_secret;
    }
    spec["tls"] = json::array{std::move(tls)};
  } else {
    annotations["nginx.ingress.kubernetes.io/ssl-redirect"] = "false";
  }
  json::object backend{{"service", json::object{{"name", f.spec.name}, {"port", json::object{{"name", "http"}}}}}};
  json::object path{{"path", "/"}, {"pathType", "Prefix"}, {"backend", std::move(backend)}};
  json::object rule{{"host", f.context.host}, {"http", json::object{{"paths", json::array{std::move(path)}}}}};
  spec["rules"] = json::array{std::move(rule)};
  if (!annotations.empty()) m["annotations"] = std::move(annotations);
  auto o = make("networking.k8s.io/v1", "Ingress", std::move(m));
  o["spec"] = std::move(spec);
  return o;
}

json::object http_route(const frame& f) {
  json::object backend{{"name", f.spec.name}, {"port", 80}};
  json::object match{{"path", json::object{{"type", "PathPrefix"}, {"value", "/"}}}};
  json::object rule{{"matches", json::array{std::move(match)}}, {"backendRefs", json::array{std::move(backend)}}};
  json::object parent{{"name", f.context.gateway_name}, {"namespace", f.context.gateway_namespace}};
  auto o = make("gateway.networking.k8s.io/v1", "HTTPRoute", f.metadata(f.spec.name));
  o["spec"] = json::object{{"parentRefs", json::array{std::move(parent)}},
                           {"hostnames", json::array{json::value(f.context.host)}},
                           {"rules", json::array{std::move(rule)}}};
  return o;
}

json::object autoscaler(const frame& f) {
  const auto& a = *f.spec.autoscaling;
  json::object cpu{
      {"type", "Resource"},
      {"resource",
       json::object{{"name", "cpu"}, {"target", json::object{{"type", "Utilization"}, {"averageUtilization", a.cpu_percent}}}}}};
  auto o = make("autoscaling/v2", "HorizontalPodAutoscaler", f.metadata(f.spec.name));
  o["spec"] =
      json::object{{"scaleTargetRef", json::object{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", f.spec.name}}},
                   {"minReplicas", a.min_replicas},
                   {"maxReplicas", a.max_replicas},
                   {"metrics", json::array{std::move(cpu)}}};
  return o;
}

json::object disruption_budget(const frame& f) {
  auto o = make("policy/v1", "PodDisruptionBudget", f.metadata(f.spec.name));
  o["spec"] = json::object{{"maxUnavailable", 1},
                           {"selector", json::object{{"matchLabels", f.selector()}}},
                           {"unhealthyPodEvictionPolicy", "AlwaysAllow"}};
  return o;
}

// In: the front door and the app's own namespace, on the app's ports. Out: names and any address but the link-local ones,
// where clouds serve credentials.
json::object network_policy(const frame& f) {
  json::array ports{port_entry(f.spec.port, port_protocol::TCP)};
  for (const auto& p : f.spec.ports) ports.push_back(port_entry(p.port, p.protocol));
  const auto& door = f.context.traffic == traffic_kind::gateway ? f.context.gateway_namespace : f.context.ingress_namespace;
  json::object in{{"from", json::array{namespace_named(door), json::object{{"podSelector", json::object()}}}},
                  {"ports", std::move(ports)}};
  json::object dns{{"to", json::array{json::object{{"namespaceSelector", json::object()}}}},
                   {"ports", json::array{port_entry(53, port_protocol::UDP), port_entry(53, port_protocol::TCP)}}};
  json::object v4{{"ipBlock", json::object{{"cidr", "0.0.0.0/0"}, {"except", json::array{"169.254.0.0/16"}}}}};
  json::object v6{{"ipBlock", json::object{{"cidr", "::/0"}, {"except", json::array{"fe80::/10"}}}}};
  json::object anywhere{{"to", json::array{std::move(v4), std::move(v6)}}};
  auto o = make("networking.k8s.io/v1", "NetworkPolicy", f.metadata(f.spec.name));
  o["spec"] = json::object{{"podSelector", json::object{{"matchLabels", f.selector()}}},
                           {"policyTypes", json::array{"Ingress", "Egress"}},
                           {"ingress", json::array{std::move(in)}},
                           {"egress", json::array{std::move(dns), std::move(anywhere)}}};
  return o;
}

}  // namespace kubeopera::inline v1::manifest::objects
