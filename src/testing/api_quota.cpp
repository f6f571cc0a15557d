// ResourceQuota admission: counts what is there under the store's lock, so that two creates cannot both take the last place.
#include "src/testing/api_codec.hpp"
#include "src/testing/api_state.hpp"
#include "src/testing/api_strategy.hpp"

#include <map>

namespace kubeopera::inline v1::testing::api {
namespace {

using amounts = std::map<std::string, __int128>;  ///< thousandths

// What a pod specification asks of one resource: the larger of the containers' sum and each init container.
__int128 asked(const json::object& spec, std::string_view list, std::string_view resource) {
  auto of = [&](const json::value& v) {
    const auto* c = v.if_object();
    return c ? quantity_millis(json::get_string(*c, {"resources", list, resource})) : 0;
  };
  __int128 sum = 0, most = 0;
  if (const auto* all = json::get_array(spec, {"containers"})) {
    for (const auto& c : *all) sum += of(c);
  }
  if (const auto* all = json::get_array(spec, {"initContainers"})) {
    for (const auto& c : *all) most = std::max(most, of(c));
  }
  return std::max(sum, most);
}

// How much of a quota's resource one object uses.
__int128 usage(const kind_info& kind, const json::object& o, const std::string& resource) {
  constexpr __int128 one = 1000;
  if (resource == "count/" + qualified(kind.plural, kind.group) || (kind.group.empty() && resource == kind.plural)) {
    bool ended =
        kind.plural == "pods" && resource == "pods" &&
        (json::get_string(o, {"status", "phase"}) == "Succeeded" || json::get_string(o, {"status", "phase"}) == "Failed");
    return ended ? 0 : one;
  }
  if (kind.is("", "services")) {
    auto type = json::get_string(o, {"spec", "type"});
    const auto* ports = json::get_array(o, {"spec", "ports"});
    if (resource == "services.loadbalancers") return type == "LoadBalancer" ? one : 0;
    if (resource == "services.nodeports") {
      bool uses = type == "NodePort" || type == "LoadBalancer";
      return uses && ports ? static_cast<__int128>(ports->size()) * one : 0;
    }
  }
  if (kind.is("", "persistentvolumeclaims") && resource == "requests.storage") {
    return quantity_millis(json::get_string(o, {"spec", "resources", "requests", "storage"}));
  }
  const auto* spec = json::get_object(o, {"spec"});
  if (!kind.is("", "pods") || !spec) return 0;
  if (resource == "cpu" || resource == "memory") return asked(*spec, "requests", resource);
  for (const char* list : {"requests", "limits"}) {
    std::string prefix = std::string(list) + ".";
    if (resource.rfind(prefix, 0) == 0 && resource != "requests.storage")
      return asked(*spec, list, resource.substr(prefix.size()));
  }
  return 0;
}

bool binary(const std::string& resource) {
  return resource.find("memory") != std::string::npos || resource.find("storage") != std::string::npos;
}

std::string printed(const amounts& all) {
  std::string out;
  for (const auto& [k, v] : all) out += (out.empty() ? "" : ",") + k + "=" + format_quantity(v, binary(k));
  return out;
}

// Pods must say what a quota counts.
std::string missing(const kind_info& kind, const json::object& o, const json::object& hard) {
  const auto* containers = json::get_array(o, {"spec", "containers"});
  if (!kind.is("", "pods") || !containers) return {};
  std::string out;
  for (const auto& kv : hard) {
    std::string resource(kv.key()), list = "requests", word = resource;
    if (resource.rfind("limits.", 0) == 0) {
      list = "limits";
      word = resource.substr(7);
    } else if (resource.rfind("requests.", 0) == 0) {
      word = resource.substr(9);
    } else if (resource != "cpu" && resource != "memory") {
      continue;
    }
    if (word == "storage") continue;
    std::string names;
    for (const auto& c : *containers) {
      const auto* x = c.if_object();
      if (x && json::get_string(*x, {"resources", list, word}).empty())
        names += (names.empty() ? "" : ",") + std::string(json::get_string(*x, {"name"}));
    }
    if (!names.empty()) out += (out.empty() ? "" : "; ") + resource + " for: " + names;
  }
  return out;
}

__int128 total(const bucket* b, const kind_info& kind, const std::string& ns, const std::string& resource) {
  __int128 sum = 0;
  if (!b) return sum;
  bool counts = resource == kind.plural || resource.rfind("count/", 0) == 0;
  std::string prefix = ns + "/";
  for (auto it = b->objects.lower_bound(prefix); it != b->objects.end() && it->first.compare(0, prefix.size(), prefix) == 0;
       ++it) {
    sum += counts && kind.plural != "pods" ? 1000 : usage(kind, parse_record(kind, *it->second), resource);
  }
  return sum;
}

}  // namespace

std::optional<refusal> check_quota(const server& s, const kind_info& kind, const json::object& o) {
  if (!kind.namespaced || kind.is("", "resourcequotas")) return std::nullopt;
  static const kind_ptr quotas = builtin_kind("", "resourcequotas");
  const bucket* all = s.store.peek(quotas->storage_key());
  if (!all || all->objects.empty()) return std::nullopt;
  std::string ns(json::get_string(o, {"metadata", "namespace"})), name(json::get_string(o, {"metadata", "name"})),
      prefix = ns + "/";
  for (auto it = all->objects.lower_bound(prefix); it != all->objects.end() && it->first.compare(0, prefix.size(), prefix) == 0;
       ++it) {
    json::object quota = parse_record(*quotas, *it->second);
    const auto* hard = json::get_object(quota, {"spec", "hard"});
    if (!hard) continue;
    std::string quota_name(json::get_string(quota, {"metadata", "name"}));
    if (auto what = missing(kind, o, *hard); !what.empty())
      return forbidden(kind, name, "failed quota: " + quota_name + ": must specify " + what);
    amounts requested, used, limited;
    for (const auto& kv : *hard) {
      std::string resource(kv.key());
      __int128 more = usage(kind, o, resource);
      if (more == 0) continue;
      __int128 there = total(s.store.peek(kind.storage_key()), kind, ns, resource),
               most = quantity_millis(json::as_view(kv.value()));
      if (there + more <= most) continue;
      requested[resource] = more;
      used[resource] = there;
      limited[resource] = most;
    }
    if (requested.empty()) continue;
    return forbidden(kind, name,
                     "exceeded quota: " + quota_name + ", requested: " + printed(requested) + ", used: " + printed(used) +
                         ", limited: " + printed(limited));
  }
  return std::nullopt;
}

}  // namespace kubeopera::inline v1::testing::api
