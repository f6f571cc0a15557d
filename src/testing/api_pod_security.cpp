// One function a control; each answers with its finding, or nothing.
#include "src/testing/api_pod_security.hpp"

#include "src/testing/api_status.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

namespace kubeopera::inline v1::testing::api {
namespace {

using object = json::object;
using names = std::vector<std::string>;

std::vector<const object*> containers_of(const object& spec) {
  std::vector<const object*> out;
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    const auto* all = json::get_array(spec, {list});
    for (std::size_t i = 0; all && i < all->size(); ++i) {
      if (const auto* c = (*all)[i].if_object()) out.push_back(c);
    }
  }
  return out;
}

names failing(const object& spec, const std::function<bool(const object&)>& bad) {
  names out;
  for (const auto* c : containers_of(spec)) {
    if (bad(*c)) out.emplace_back(json::get_string(*c, {"name"}));
  }
  return out;
}

std::string quoted(const names& all, const char* glue = ", ") {
  std::string out;
  for (const auto& n : all) out += (out.empty() ? "" : glue) + go_quote(n);
  return out;
}

std::string listed(const names& all) { return std::string(all.size() == 1 ? "container " : "containers ") + quoted(all); }

bool is_true(const object& o, std::initializer_list<std::string_view> path) { return json::get_bool(o, path); }

std::string host_namespaces(const object& spec) {
  std::string out;
  for (const char* f : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (is_true(spec, {f})) out += (out.empty() ? "" : ", ") + std::string(f) + "=true";
  }
  return out.empty() ? out : "host namespaces (" + out + ")";
}

std::string privileged(const object& spec) {
  auto bad = failing(spec, [](const object& c) { return is_true(c, {"securityContext", "privileged"}); });
  return bad.empty() ? "" : "privileged (" + listed(bad) + " must not set securityContext.privileged=true)";
}

names added_beyond(const object& c, const std::set<std::string>& allowed) {
  names out;
  const auto* add = json::get_array(c, {"securityContext", "capabilities", "add"});
  for (std::size_t i = 0; add && i < add->size(); ++i) {
    std::string cap(json::as_view((*add)[i]));
    if (!allowed.count(cap)) out.push_back(cap);
  }
  return out;
}

std::string baseline_capabilities(const object& spec) {
  static const std::set<std::string> allowed = {"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
                                                "KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
                                                "SETPCAP",     "SETUID", "SYS_CHROOT"};
  std::set<std::string> caps;
  auto bad = failing(spec, [&](const object& c) {
    auto extra = added_beyond(c, allowed);
    caps.insert(extra.begin(), extra.end());
    return !extra.empty();
  });
  return bad.empty() ? ""
                     : "non-default capabilities (" + listed(bad) + " must not include " +
                           quoted(names(caps.begin(), caps.end())) + " in securityContext.capabilities.add)";
}

std::string host_ports(const object& spec) {
  std::set<std::string> ports;
  auto bad = failing(spec, [&](const object& c) {
    bool found = false;
    const auto* all = json::get_array(c, {"ports"});
    for (std::size_t i = 0; all && i < all->size(); ++i) {
      auto n = (*all)[i].is_object() ? json::get_int((*all)[i].get_object(), {"hostPort"}) : 0;
      if (n != 0) ports.insert(std::to_string(n));
      found = found || n != 0;
    }
    return found;
  });
  std::string list;
  for (const auto& p : ports) list += (list.empty() ? "" : ", ") + p;
  return bad.empty() ? "" : "hostPort (" + listed(bad) + " uses hostPort" + (ports.size() > 1 ? "s " : " ") + list + ")";
}

names volumes_with(const object& spec, const std::function<bool(const object&)>& bad) {
  names out;
  const auto* all = json::get_array(spec, {"volumes"});
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    const auto* v = (*all)[i].if_object();
    if (v && bad(*v)) out.emplace_back(json::get_string(*v, {"name"}));
  }
  return out;
}

std::string host_path(const object& spec) {
  auto bad = volumes_with(spec, [](const object& v) { return v.if_contains("hostPath") != nullptr; });
  return bad.empty() ? "" : "hostPath volumes (volume" + std::string(bad.size() > 1 ? "s " : " ") + quoted(bad) + ")";
}

std::string restricted_volumes(const object& spec) {
  static const std::set<std::string> allowed = {
      "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"};
  std::set<std::string> kinds;
  auto bad = volumes_with(spec, [&](const object& v) {
    bool found = false;
    for (const auto& kv : v) {
      std::string key(kv.key());
      if (key == "name" || allowed.count(key)) continue;
      kinds.insert(key);
      found = true;
    }
    return found;
  });
  if (bad.empty()) return {};
  return "restricted volume types (" + std::string(bad.size() > 1 ? "volumes " : "volume ") + quoted(bad) +
         (bad.size() > 1 ? " use" : " uses") + " restricted volume type" + (kinds.size() > 1 ? "s " : " ") +
         quoted(names(kinds.begin(), kinds.end())) + ")";
}

std::string unmasked_proc(const object& spec) {
  auto bad = failing(spec, [](const object& c) {
    auto v = json::get_string(c, {"securityContext", "procMount"});
    return !v.empty() && v != "Default";
  });
  return bad.empty() ? "" : "procMount (" + listed(bad) + " must not set securityContext.procMount to \"Unmasked\")";
}

std::string sysctls(const object& spec) {
  static const std::set<std::string> safe = {"kernel.shm_rmid_forced",
                                             "net.ipv4.ip_local_port_range",
                                             "net.ipv4.ip_unprivileged_port_start",
                                             "net.ipv4.tcp_syncookies",
                                             "net.ipv4.ping_group_range",
                                             "net.ipv4.ip_local_reserved_ports",
                                             "net.ipv4.tcp_keepalive_time",
                                             "net.ipv4.tcp_fin_timeout",
                                             "net.ipv4.tcp_keepalive_intvl",
                                             "net.ipv4.tcp_keepalive_probes",
                                             "net.ipv4.tcp_rmem",
                                             "net.ipv4.tcp_wmem"};
  std::string out;
  const auto* all = json::get_array(spec, {"securityContext", "sysctls"});
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    std::string name((*all)[i].is_object() ? json::get_string((*all)[i].get_object(), {"name"}) : "");
    if (!safe.count(name)) out += (out.empty() ? "" : ", ") + name;
  }
  return out.empty() ? out : "forbidden sysctls (" + out + ")";
}

std::string selinux_types(const object& spec) {
  static const std::set<std::string> allowed = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"};
  auto bad_options = [&](const object& o) {
    const auto* x = json::get_object(o, {"securityContext", "seLinuxOptions"});
    return x && (!allowed.count(std::string(json::get_string(*x, {"type"}))) || !json::get_string(*x, {"user"}).empty() ||
                 !json::get_string(*x, {"role"}).empty());
  };
  auto bad = failing(spec, bad_options);
  bool pod = bad_options(spec);
  if (!pod && bad.empty()) return {};
  std::string who = pod ? "pod" : "";
  if (!bad.empty()) who += (who.empty() ? "" : " and ") + listed(bad);
  return "seLinuxOptions (" + who + " set forbidden securityContext.seLinuxOptions)";
}

std::string baseline_seccomp(const object& spec) {
  auto unconfined = [](const object& o) {
    return json::get_string(o, {"securityContext", "seccompProfile", "type"}) == "Unconfined";
  };
  auto bad = failing(spec, unconfined);
  bool pod = unconfined(spec);
  if (!pod && bad.empty()) return {};
  std::string who = pod ? "pod" : "";
  if (!bad.empty()) who += (who.empty() ? "" : " and ") + listed(bad);
  return "seccompProfile (" + who + " must not set securityContext.seccompProfile.type to \"Unconfined\")";
}

std::string privilege_escalation(const object& spec) {
  auto bad =
      failing(spec, [](const object& c) { return json::get_bool(c, {"securityContext", "allowPrivilegeEscalation"}, true); });
  return bad.empty()
             ? ""
             : "allowPrivilegeEscalation != false (" + listed(bad) + " must set securityContext.allowPrivilegeEscalation=false)";
}

std::string restricted_capabilities(const object& spec) {
  std::set<std::string> extra;
  auto adding = failing(spec, [&](const object& c) {
    auto found = added_beyond(c, {"NET_BIND_SERVICE"});
    extra.insert(found.begin(), found.end());
    return !found.empty();
  });
  auto keeping = failing(spec, [](const object& c) {
    const auto* drop = json::get_array(c, {"securityContext", "capabilities", "drop"});
    return !drop || std::find(drop->begin(), drop->end(), json::value("ALL")) == drop->end();
  });
  if (adding.empty() && keeping.empty()) return {};
  std::string out;
  if (!keeping.empty()) out = listed(keeping) + " must set securityContext.capabilities.drop=[\"ALL\"]";
  if (!adding.empty()) {
    out += (out.empty() ? "" : "; ") + listed(adding) + " must not include " + quoted(names(extra.begin(), extra.end())) +
           " in securityContext.capabilities.add";
  }
  return "unrestricted capabilities (" + out + ")";
}

std::string run_as_non_root(const object& spec) {
  const auto* pod = json::find(spec, {"securityContext", "runAsNonRoot"});
  auto own = [](const object& c) { return json::find(c, {"securityContext", "runAsNonRoot"}); };
  auto denying = failing(spec, [&](const object& c) { return own(c) && !own(c)->is_null() && *own(c) == json::value(false); });
  auto silent = failing(spec, [&](const object& c) { return !own(c); });
  bool pod_says = pod && *pod == json::value(true), pod_denies = pod && *pod == json::value(false);
  if (pod_denies) denying.insert(denying.begin(), "");
  std::string out;
  if (!denying.empty()) {
    std::string who = pod_denies ? "pod" : "";
    if (pod_denies) denying.erase(denying.begin());
    if (!denying.empty()) who += (who.empty() ? "" : " and ") + listed(denying);
    out = who + " must not set securityContext.runAsNonRoot=false";
  } else if (!pod_says && !silent.empty()) {
    out = "pod or " + listed(silent) + " must set securityContext.runAsNonRoot=true";
  }
  return out.empty() ? out : "runAsNonRoot != true (" + out + ")";
}

std::string run_as_root_user(const object& spec) {
  auto zero = [](const object& o) {
    const auto* v = json::find(o, {"securityContext", "runAsUser"});
    return v && v->is_int64() && v->get_int64() == 0;
  };
  auto bad = failing(spec, zero);
  std::string who = zero(spec) ? "pod" : "";
  if (!bad.empty()) who += (who.empty() ? "" : " and ") + listed(bad);
  return who.empty() ? who : "runAsUser=0 (" + who + " must not set runAsUser=0)";
}

std::string restricted_seccomp(const object& spec) {
  auto type = [](const object& o) { return json::get_string(o, {"securityContext", "seccompProfile", "type"}); };
  auto fine = [](std::string_view t) { return t == "RuntimeDefault" || t == "Localhost"; };
  auto bad = failing(spec, [&](const object& c) { return !type(c).empty() && !fine(type(c)); });
  auto silent = failing(spec, [&](const object& c) { return type(c).empty(); });
  std::string pod(type(spec));
  const char* wanted = " securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
  if ((!pod.empty() && !fine(pod)) || !bad.empty()) {
    std::string who = !pod.empty() && !fine(pod) ? "pod" : "";
    if (!bad.empty()) who += (who.empty() ? "" : " and ") + listed(bad);
    return "seccompProfile (" + who + " must set" + wanted + ")";
  }
  if (pod.empty() && !silent.empty()) return "seccompProfile (pod or " + listed(silent) + " must set" + wanted + ")";
  return {};
}

}  // namespace

std::string pod_security_violations(const std::string& level, const object&, const object& spec) {
  using control = std::string (*)(const object&);
  static constexpr control baseline[] = {host_namespaces, privileged, baseline_capabilities, host_path, host_ports, selinux_types,
                                         unmasked_proc,   sysctls,    baseline_seccomp};
  static constexpr control restricted[] = {host_namespaces,         privileged,         host_path,       host_ports,
                                           selinux_types,           unmasked_proc,      sysctls,         privilege_escalation,
                                           restricted_capabilities, restricted_volumes, run_as_non_root, run_as_root_user,
                                           restricted_seccomp};
  std::string out;
  auto judge = [&](const auto& controls) {
    for (control c : controls) {
      if (std::string found = c(spec); !found.empty()) out += (out.empty() ? "" : ", ") + found;
    }
  };
  if (level == "baseline") judge(baseline);
  if (level == "restricted") judge(restricted);
  return out;
}

}  // namespace kubeopera::inline v1::testing::api
