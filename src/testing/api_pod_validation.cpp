// Validation of pod specifications, services, ingresses, autoscalers and disruption budgets.
#include "src/testing/api_codec.hpp"
#include "src/testing/api_strategy.hpp"
#include "src/testing/api_validation.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/object.hpp>

#include <algorithm>
#include <set>

namespace kubeopera::inline v1::testing::api {
namespace {

const json::array& list_at(const json::object& o, std::string_view key) {
  static const json::array none;
  const auto* a = json::get_array(o, {key});
  return a ? *a : none;
}

std::string at(const std::string& path, std::size_t i) { return path + "[" + std::to_string(i) + "]"; }

void check_port(const json::value* v, const std::string& path, problems& out) {
  std::int64_t n = v && v->is_int64() ? v->get_int64() : 0;
  if (n < 1 || n > 65535) out.push_back(invalid_value(path, std::to_string(n), "must be between 1 and 65535, inclusive"));
}

void check_ports(const json::object& c, const std::string& path, problems& out) {
  const auto& ports = list_at(c, "ports");
  std::set<std::string> names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto* p = ports[i].if_object();
    if (!p) continue;
    std::string here = at(path + ".ports", i);
    if (const auto* n = p->if_contains("containerPort"); !n || (n->is_int64() && n->get_int64() == 0)) {
      out.push_back(required_value(here + ".containerPort"));
    } else {
      check_port(n, here + ".containerPort", out);
    }
    std::string name(json::get_string(*p, {"name"}));
    if (!name.empty() && !names.insert(name).second) out.push_back(duplicate_value(here + ".name", go_quote(name)));
    if (name.size() > 15) out.push_back(invalid_value(here + ".name", go_quote(name), "must be no more than 15 characters"));
    auto protocol = json::get_string(*p, {"protocol"});
    if (protocol != "TCP" && protocol != "UDP" && protocol != "SCTP") {
      out.push_back(unsupported_value(here + ".protocol", go_quote(protocol), {"SCTP", "TCP", "UDP"}));
    }
  }
}

void check_env(const json::object& c, const std::string& path, problems& out) {
  const auto& env = list_at(c, "env");
  for (std::size_t i = 0; i < env.size(); ++i) {
    const auto* e = env[i].if_object();
    if (!e) continue;
    std::string here = at(path + ".env", i);
    auto name = json::get_string(*e, {"name"});
    if (name.empty()) out.push_back(required_value(here + ".name"));
    if (name.find('=') != std::string_view::npos) {
      out.push_back(
          invalid_value(here + ".name", go_quote(name),
                        "a valid environment variable name must consist only of printable ASCII characters other than '='"));
    }
    const auto* from = json::get_object(*e, {"valueFrom"});
    if (from && !json::get_string(*e, {"value"}).empty()) {
      out.push_back(invalid_value(here + ".valueFrom", "\"\"", "may not be specified when `value` is not empty"));
    }
    if (from && from->empty()) {
      out.push_back(invalid_value(
          here + ".valueFrom", "\"\"",
          "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"));
    }
  }
}

void check_resources(const json::object& c, const std::string& path, problems& out) {
  const auto *limits = json::get_object(c, {"resources", "limits"}), *requests = json::get_object(c, {"resources", "requests"});
  for (const auto* set : {limits, requests}) {
    if (!set) continue;
    for (const auto& kv : *set) {
      std::string here = path + ".resources." + (set == limits ? "limits" : "requests") + "[" + std::string(kv.key()) + "]";
      if (quantity_millis(json::as_view(kv.value())) < 0) {
        out.push_back(invalid_value(here, go_quote(json::as_view(kv.value())), "must be greater than or equal to 0"));
      }
    }
  }
  if (!limits || !requests) return;
  for (const auto& kv : *requests) {
    const auto* limit = limits->if_contains(kv.key());
    if (!limit) continue;
    auto asked = json::as_view(kv.value()), most = json::as_view(*limit);
    if (quantity_millis(asked) > quantity_millis(most)) {
      out.push_back(invalid_value(path + ".resources.requests", go_quote(asked),
                                  "must be less than or equal to " + std::string(kv.key()) + " limit of " + std::string(most)));
    }
  }
}

void check_probe(const json::object& c, const char* word, const std::string& path, problems& out) {
  const auto* probe = json::get_object(c, {word});
  if (!probe) return;
  std::string here = path + "." + word;
  int handlers = 0;
  for (const char* h : {"exec", "httpGet", "tcpSocket", "grpc"}) handlers += probe->if_contains(h) ? 1 : 0;
  if (handlers == 0) out.push_back(required_value(here, "must specify a handler type"));
  if (handlers > 1) out.push_back(forbidden_value(here, "may not specify more than 1 handler type"));
  if (const auto* get = json::get_object(*probe, {"httpGet"})) {
    const auto* port = get->if_contains("port");
    if (port && port->is_int64()) check_port(port, here + ".httpGet.port", out);
  }
  if (std::string_view(word) != "readinessProbe" && json::get_int(*probe, {"successThreshold"}, 1) != 1) {
    out.push_back(
        invalid_value(here + ".successThreshold", std::to_string(json::get_int(*probe, {"successThreshold"})), "must be 1"));
  }
}

void check_mounts(const json::object& c, const std::set<std::string>& volumes, const std::string& path, problems& out) {
  const auto& mounts = list_at(c, "volumeMounts");
  std::set<std::string> paths;
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const auto* m = mounts[i].if_object();
    if (!m) continue;
    std::string here = at(path + ".volumeMounts", i), name(json::get_string(*m, {"name"})),
                where(json::get_string(*m, {"mountPath"}));
    if (name.empty()) {
      out.push_back(required_value(here + ".name"));
    } else if (!volumes.count(name)) {
      out.push_back({"FieldValueNotFound", here + ".name", "Not found: " + go_quote(name)});
    }
    if (where.empty()) out.push_back(required_value(here + ".mountPath"));
    if (!where.empty() && !paths.insert(where).second)
      out.push_back(invalid_value(here + ".mountPath", go_quote(where), "must be unique"));
  }
}

void check_container(const json::object& c, const std::set<std::string>& volumes, std::set<std::string>& names,
                     const std::string& path, problems& out) {
  std::string name(json::get_string(c, {"name"})), image(json::get_string(c, {"image"}));
  if (name.empty()) {
    out.push_back(required_value(path + ".name"));
  } else if (!kube::is_dns_label(name)) {
    out.push_back(invalid_value(path + ".name", go_quote(name), words::label));
  } else if (!names.insert(name).second) {
    out.push_back(duplicate_value(path + ".name", go_quote(name)));
  }
  if (image.empty()) {
    out.push_back(required_value(path + ".image"));
  } else if (image.find_first_of(" \t\n") == 0 || image.back() == ' ') {
    out.push_back(invalid_value(path + ".image", go_quote(image), "must not have leading or trailing whitespace"));
  }
  auto policy = json::get_string(c, {"imagePullPolicy"});
  if (policy != "Always" && policy != "IfNotPresent" && policy != "Never") {
    out.push_back(unsupported_value(path + ".imagePullPolicy", go_quote(policy), {"Always", "IfNotPresent", "Never"}));
  }
  check_ports(c, path, out);
  check_env(c, path, out);
  check_mounts(c, volumes, path, out);
  for (const char* p : {"livenessProbe", "readinessProbe", "startupProbe"}) check_probe(c, p, path, out);
  check_resources(c, path, out);
}

std::set<std::string> check_volumes(const json::object& spec, const std::string& path, problems& out) {
  std::set<std::string> names;
  const auto& volumes = list_at(spec, "volumes");
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const auto* v = volumes[i].if_object();
    if (!v) continue;
    std::string here = at(path + ".volumes", i), name(json::get_string(*v, {"name"}));
    if (name.empty()) {
      out.push_back(required_value(here + ".name"));
    } else if (!kube::is_dns_label(name)) {
      out.push_back(invalid_value(here + ".name", go_quote(name), words::label));
    } else if (!names.insert(name).second) {
      out.push_back(duplicate_value(here + ".name", go_quote(name)));
    }
    if (v->size() > 2) out.push_back(forbidden_value(here, "may not specify more than 1 volume type"));
  }
  return names;
}

}  // namespace

void validate_pod_spec(const json::object& spec, const std::string& path, problems& out) {
  std::set<std::string> volumes = check_volumes(spec, path, out), names;
  const auto& containers = list_at(spec, "containers");
  if (containers.empty()) out.push_back(required_value(path + ".containers"));
  for (const char* list : {"initContainers", "containers"}) {
    const auto& all = list_at(spec, list);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (const auto* c = all[i].if_object()) check_container(*c, volumes, names, at(path + "." + list, i), out);
    }
  }
  auto policy = json::get_string(spec, {"restartPolicy"});
  if (policy != "Always" && policy != "OnFailure" && policy != "Never") {
    out.push_back(unsupported_value(path + ".restartPolicy", go_quote(policy), {"Always", "OnFailure", "Never"}));
  }
  if (json::get_int(spec, {"terminationGracePeriodSeconds"}) < 0) {
    out.push_back(invalid_value(path + ".terminationGracePeriodSeconds",
                                std::to_string(json::get_int(spec, {"terminationGracePeriodSeconds"})),
                                "must be greater than or equal to 0"));
  }
}

void check_service(const kind_info&, const json::object& o, problems& out) {
  const auto* spec = json::get_object(o, {"spec"});
  if (!spec) return;
  auto type = json::get_string(*spec, {"type"});
  if (type != "ClusterIP" && type != "NodePort" && type != "LoadBalancer" && type != "ExternalName") {
    out.push_back(unsupported_value("spec.type", go_quote(type), {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}));
  }
  const auto& ports = list_at(*spec, "ports");
  bool headless = json::get_string(*spec, {"clusterIP"}) == "None";
  if (ports.empty() && !headless && type != "ExternalName") out.push_back(required_value("spec.ports"));
  std::set<std::string> names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto* p = ports[i].if_object();
    if (!p) continue;
    std::string here = at("spec.ports", i), name(json::get_string(*p, {"name"}));
    if (name.empty() && ports.size() > 1) out.push_back(required_value(here + ".name"));
    if (!name.empty() && !kube::is_dns_label(name)) out.push_back(invalid_value(here + ".name", go_quote(name), words::label));
    if (!name.empty() && !names.insert(name).second) out.push_back(duplicate_value(here + ".name", go_quote(name)));
    check_port(p->if_contains("port"), here + ".port", out);
    if (const auto* t = p->if_contains("targetPort"); t && t->is_int64()) check_port(t, here + ".targetPort", out);
  }
  if (type == "ExternalName" && json::get_string(*spec, {"externalName"}).empty())
    out.push_back(required_value("spec.externalName"));
  check_labels(json::get_object(*spec, {"selector"}), "spec.selector", out);
}

namespace {
void check_backend(const json::object& b, const std::string& path, problems& out) {
  const auto* s = json::get_object(b, {"service"});
  if (!s) {
    if (!b.if_contains("resource"))
      out.push_back(required_value(path, "a default backend or a backend with service or resource is required"));
    return;
  }
  auto name = json::get_string(*s, {"name"});
  if (name.empty()) out.push_back(required_value(path + ".service.name"));
  const auto* number = json::find(*s, {"port", "number"});
  if (json::get_string(*s, {"port", "name"}).empty() && (!number || number->is_null())) {
    out.push_back(required_value(path + ".service.port", "port name or number is required"));
  }
}
}  // namespace

void check_ingress(const kind_info&, const json::object& o, problems& out) {
  const auto* spec = json::get_object(o, {"spec"});
  if (!spec) return;
  const auto& rules = list_at(*spec, "rules");
  if (const auto* b = json::get_object(*spec, {"defaultBackend"})) check_backend(*b, "spec.defaultBackend", out);
  if (rules.empty() && !spec->if_contains("defaultBackend")) {
    out.push_back(invalid_value("spec", json::write(*spec), "either `defaultBackend` or `rules` must be specified"));
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto* r = rules[i].if_object();
    if (!r) continue;
    std::string here = at("spec.rules", i);
    auto host = json::get_string(*r, {"host"});
    std::string_view plain = host.substr(0, 2) == "*." ? host.substr(2) : host;
    if (!host.empty() && !kube::is_dns_subdomain(plain))
      out.push_back(invalid_value(here + ".host", go_quote(host), words::subdomain));
    const auto* http = json::get_object(*r, {"http"});
    if (!http) continue;
    const auto& paths = list_at(*http, "paths");
    if (paths.empty()) out.push_back(required_value(here + ".http.paths"));
    for (std::size_t j = 0; j < paths.size(); ++j) {
      const auto* p = paths[j].if_object();
      if (!p) continue;
      std::string path_here = at(here + ".http.paths", j);
      auto type = json::get_string(*p, {"pathType"}), path = json::get_string(*p, {"path"});
      if (type.empty()) {
        out.push_back(required_value(path_here + ".pathType", "pathType must be specified"));
      } else if (type != "Exact" && type != "Prefix" && type != "ImplementationSpecific") {
        out.push_back(unsupported_value(path_here + ".pathType", go_quote(type), {"Exact", "ImplementationSpecific", "Prefix"}));
      } else if (type != "ImplementationSpecific" && (path.empty() || path[0] != '/')) {
        out.push_back(invalid_value(path_here + ".path", go_quote(path), "must be an absolute path"));
      }
      if (const auto* b = json::get_object(*p, {"backend"})) check_backend(*b, path_here + ".backend", out);
    }
  }
}

void check_hpa(const kind_info&, const json::object& o, problems& out) {
  auto least = json::get_int(o, {"spec", "minReplicas"}, 1), most = json::get_int(o, {"spec", "maxReplicas"});
  if (least < 1) out.push_back(invalid_value("spec.minReplicas", std::to_string(least), "must be greater than or equal to 1"));
  if (most < 1) out.push_back(invalid_value("spec.maxReplicas", std::to_string(most), "must be greater than 0"));
  if (most < least)
    out.push_back(invalid_value("spec.maxReplicas", std::to_string(most), "must be greater than or equal to `minReplicas`"));
  for (const char* f : {"kind", "name"}) {
    if (json::get_string(o, {"spec", "scaleTargetRef", f}).empty())
      out.push_back(required_value("spec.scaleTargetRef." + std::string(f)));
  }
}

void check_pdb(const kind_info&, const json::object& o, problems& out) {
  if (json::find(o, {"spec", "minAvailable"}) && json::find(o, {"spec", "maxUnavailable"})) {
    const auto* spec = json::get_object(o, {"spec"});
    out.push_back(invalid_value("spec", json::write(*spec), "minAvailable and maxUnavailable cannot be both set"));
  }
}

void check_lease(const kind_info&, const json::object& o, problems& out) {
  const auto *duration = json::find(o, {"spec", "leaseDurationSeconds"}),
             *transitions = json::find(o, {"spec", "leaseTransitions"});
  if (duration && duration->is_int64() && duration->get_int64() <= 0)
    out.push_back(invalid_value("spec.leaseDurationSeconds", json::write(*duration), "must be greater than 0"));
  if (transitions && transitions->is_int64() && transitions->get_int64() < 0)
    out.push_back(invalid_value("spec.leaseTransitions", json::write(*transitions), "must be greater than or equal to 0"));
}

}  // namespace kubeopera::inline v1::testing::api
