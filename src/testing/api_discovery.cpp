// Everything that is not a resource: version, health, discovery in its three forms.
#include "src/testing/api_state.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

json::array words(const std::vector<std::string>& all) {
  json::array out;
  for (const auto& w : all) out.emplace_back(w);
  return out;
}

http::response text(int status, std::string s) { return {status, "text/plain; charset=utf-8", std::move(s)}; }

json::object version_object(const server& s) {
  // "v1.36.3" gives major 1 and minor 36.
  std::string v = s.options.version;
  auto first = v.find('.'), second = v.find('.', first + 1);
  std::string major = v.substr(1, first - 1), minor = v.substr(first + 1, second - first - 1);
  json::object o;
  o["major"] = major;
  o["minor"] = minor;
  o["emulationMajor"] = major;
  o["emulationMinor"] = minor;
  o["minCompatibilityMajor"] = major;
  o["minCompatibilityMinor"] = std::to_string(std::max(std::atoi(minor.c_str()) - 1, 0));
  o["gitVersion"] = v;
  o["gitCommit"] = "$Format:%H$";
  o["gitTreeState"] = "";
  o["buildDate"] = "1970-01-01T00:00:00Z";
  o["goVersion"] = "none";
  o["compiler"] = "clang";
  o["platform"] = "linux/amd64";
  return o;
}

// Group, version and kind of what a resource answers with, where they differ from its own.
json::object response_kind(const std::string& group, const std::string& version, const std::string& kind) {
  json::object o;
  o["group"] = group;
  o["version"] = version;
  o["kind"] = kind;
  return o;
}

json::object aggregated_resource(const kind_info& k) {
  json::object o;
  o["resource"] = k.plural;
  o["responseKind"] = response_kind(k.custom ? k.group : "", k.custom ? k.version : "", k.kind);
  o["scope"] = k.namespaced ? "Namespaced" : "Cluster";
  o["singularResource"] = k.singular;
  o["verbs"] = words(k.verbs);
  if (!k.short_names.empty()) o["shortNames"] = words(k.short_names);
  if (!k.categories.empty()) o["categories"] = words(k.categories);
  if (!k.subresources.empty()) {
    json::array subs;
    for (const auto& sub : k.subresources) {
      json::object x;
      x["subresource"] = sub.name;
      x["responseKind"] = response_kind(sub.group, sub.version, sub.kind);
      x["verbs"] = words(sub.verbs);
      subs.push_back(std::move(x));
    }
    o["subresources"] = std::move(subs);
  }
  return o;
}

json::object aggregated(const kind_table& kinds, bool core) {
  json::object out;
  out["kind"] = "APIGroupDiscoveryList";
  out["apiVersion"] = "apidiscovery.k8s.io/v2";
  out["metadata"] = json::object();
  auto& items = json::ensure_array(out, "items");
  for (const auto& g : kinds.groups) {
    if (g.name.empty() != core) continue;
    json::object item;
    auto& meta = json::ensure_object(item, "metadata");
    if (!core) meta["name"] = g.name;
    auto& versions = json::ensure_array(item, "versions");
    for (const auto& v : g.versions) {
      json::object x;
      x["version"] = v.version;
      auto& resources = json::ensure_array(x, "resources");
      for (const auto& k : v.kinds) resources.push_back(aggregated_resource(*k));
      x["freshness"] = "Current";
      versions.push_back(std::move(x));
    }
    items.push_back(std::move(item));
  }
  return out;
}

std::string storage_hash(const kind_info& k) {
  auto digest = crypto::sha256(k.group + "/" + k.version + "/" + k.kind);
  return crypto::base64_encode(crypto::bytes(digest).substr(0, 8));
}

json::object resource_list(const std::string& group, const group_version& v) {
  json::object out;
  out["kind"] = "APIResourceList";
  if (!group.empty()) out["apiVersion"] = "v1";
  out["groupVersion"] = group.empty() ? v.version : group + "/" + v.version;
  auto& all = json::ensure_array(out, "resources");
  for (const auto& k : v.kinds) {
    json::object o;
    o["name"] = k->plural;
    o["singularName"] = k->singular;
    o["namespaced"] = k->namespaced;
    o["kind"] = k->kind;
    o["verbs"] = words(k->verbs);
    if (!k->short_names.empty()) o["shortNames"] = words(k->short_names);
    if (!k->categories.empty()) o["categories"] = words(k->categories);
    if (k->has_verb("list")) o["storageVersionHash"] = storage_hash(*k);
    all.push_back(std::move(o));
    for (const auto& sub : k->subresources) {
      json::object x;
      x["name"] = k->plural + "/" + sub.name;
      x["singularName"] = "";
      x["namespaced"] = k->namespaced;
      if (!sub.group.empty()) x["group"] = sub.group;
      if (!sub.version.empty()) x["version"] = sub.version;
      x["kind"] = sub.kind;
      x["verbs"] = words(sub.verbs);
      all.push_back(std::move(x));
    }
  }
  return out;
}

json::object group_object(const group_info& g) {
  json::object out;
  out["name"] = g.name;
  auto version = [&](const group_version& v) {
    json::object o;
    o["groupVersion"] = g.name + "/" + v.version;
    o["version"] = v.version;
    return o;
  };
  auto& versions = json::ensure_array(out, "versions");
  for (const auto& v : g.versions) versions.push_back(version(v));
  out["preferredVersion"] = version(g.versions.front());
  return out;
}

http::response discovery_response(const json::object& o) {
  return {200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", json::write(o)};
}

outcome<http::response> serve_core(const server& s, const request& r, const std::vector<std::string>& seg) {
  auto kinds = s.kinds();
  if (seg.size() == 1) {
    if (r.as == view::discovery) return discovery_response(aggregated(*kinds, true));
    json::object o, address;
    o["kind"] = "APIVersions";
    json::ensure_array(o, "versions").emplace_back("v1");
    address["clientCIDR"] = "0.0.0.0/0";
    address["serverAddress"] = s.options.address;
    json::ensure_array(o, "serverAddressByClientCIDRs").push_back(std::move(address));
    return json_response(200, o);
  }
  if (seg[1] != "v1") return text(404, "404 page not found\n");
  return json_response(200, resource_list("", kinds->groups.front().versions.front()));
}

outcome<http::response> serve_groups(const server& s, const request& r, const std::vector<std::string>& seg) {
  auto kinds = s.kinds();
  if (seg.size() == 1) {
    if (r.as == view::discovery) return discovery_response(aggregated(*kinds, false));
    json::object o;
    o["kind"] = "APIGroupList";
    o["apiVersion"] = "v1";
    auto& groups = json::ensure_array(o, "groups");
    for (const auto& g : kinds->groups) {
      if (!g.name.empty()) groups.push_back(group_object(g));
    }
    return json_response(200, o);
  }
  for (const auto& g : kinds->groups) {
    if (g.name != seg[1] || g.name.empty()) continue;
    if (seg.size() == 2) {
      json::object o;
      o["kind"] = "APIGroup";
      o["apiVersion"] = "v1";
      for (auto& kv : group_object(g)) o[kv.key()] = kv.value();
      return json_response(200, o);
    }
    for (const auto& v : g.versions) {
      if (v.version == seg[2]) return json_response(200, resource_list(g.name, v));
    }
  }
  return text(404, "404 page not found\n");
}

http::response health(const std::string& which, bool verbose) {
  if (!verbose) return text(200, "ok");
  std::string out = "[+]ping ok\n[+]log ok\n[+]store ok\n";
  if (which == "readyz") out += "[+]informer-sync ok\n[+]shutdown ok\n";
  return text(200, out + which + " check passed\n");
}

}  // namespace

outcome<http::response> serve_path(server& s, request& r) {
  auto seg = r.target.segments;
  if (!seg.empty() && seg.back().empty()) seg.pop_back();
  if (r.raw.method != "GET" && r.raw.method != "HEAD") return method_not_allowed();
  if (seg.empty()) {
    json::object o;
    json::array paths;
    for (const char* p : {"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"})
      paths.emplace_back(p);
    o["paths"] = std::move(paths);
    return json_response(200, o);
  }
  if (seg[0] == "version" && seg.size() == 1) return json_response(200, version_object(s));
  bool healthy = seg[0] == "healthz" || seg[0] == "readyz" || seg[0] == "livez";
  if (healthy) return health(seg[0], r.target.count("verbose") > 0);
  if (seg[0] == "openapi") return serve_openapi(s, r);
  if (seg[0] == "api" && seg.size() <= 2) return serve_core(s, r, seg);
  if (seg[0] == "apis" && seg.size() <= 3) return serve_groups(s, r, seg);
  return text(404, "404 page not found\n");
}

}  // namespace kubeopera::inline v1::testing::api
