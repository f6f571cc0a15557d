// OpenAPI documents made from the types: what kubectl needs to validate, explain and patch.
#include "src/testing/api_crd.hpp"
#include "src/testing/api_state.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/write.hpp>

#include <set>

namespace kubeopera::inline v1::testing::api {
namespace {

json::object gvk_object(const kind_info& k) {
  json::object o;
  o["group"] = k.group;
  o["kind"] = k.kind;
  o["version"] = k.version;
  return o;
}

// Writes schemas of structures once each, under their Go names.
class schema_writer {
 public:
  explicit schema_writer(std::string prefix) : prefix_(std::move(prefix)) {}
  json::object schemas;

  json::object reference(const std::string& name) const {
    json::object o;
    o["$ref"] = prefix_ + name;
    return o;
  }

  json::object of(const type& t) {
    json::object o;
    switch (t.form) {
      case shape::any:
        return o;
      case shape::scalar:
        return leaf(t);
      case shape::structure:
        structure(t);
        return reference(t.name);
      case shape::map:
        o["type"] = "object";
        o["additionalProperties"] = of(*t.element);
        if (t.atomic) o["x-kubernetes-map-type"] = "atomic";
        return o;
      case shape::list:
        break;
    }
    o["type"] = "array";
    o["items"] = of(*t.element);
    o["x-kubernetes-list-type"] = t.set ? "set" : t.keys.empty() ? "atomic" : "map";
    if (t.set) o["x-kubernetes-patch-strategy"] = "merge";
    if (!t.keys.empty()) {
      json::array keys;
      for (const auto& k : t.keys) keys.emplace_back(k);
      o["x-kubernetes-list-map-keys"] = std::move(keys);
      o["x-kubernetes-patch-strategy"] = "merge";
      o["x-kubernetes-patch-merge-key"] = t.keys.front();
    }
    return o;
  }

  void structure(const type& t) {
    if (!seen_.insert(t.name).second) return;
    json::object o;
    o["type"] = "object";
    auto& properties = json::ensure_object(o, "properties");
    for (const auto& f : t.fields) properties[f.name] = of(*f.t);
    schemas[t.name] = std::move(o);
  }

  void kind(const kind_info& k) {
    json::array gvk;
    gvk.push_back(gvk_object(k));
    std::string name = name_of(k);
    if (k.custom) {
      json::object o = k.custom->schema;
      if (o.empty()) o["type"] = "object";
      structure(*builtin_types().find("ObjectMeta"));
      auto& properties = json::ensure_object(o, "properties");
      for (const char* f : {"apiVersion", "kind"}) json::ensure_object(properties, f)["type"] = "string";
      properties["metadata"] = reference("ObjectMeta");
      schemas[name] = std::move(o);
    } else if (k.t) {
      structure(*k.t);
    }
    auto* s = schemas.if_contains(name);
    if (s) s->get_object()["x-kubernetes-group-version-kind"] = std::move(gvk);
  }

  static std::string name_of(const kind_info& k) { return k.custom ? k.group + "." + k.version + "." + k.kind : k.kind; }

 private:
  static json::object leaf(const type& t) {
    json::object o;
    switch (t.leaf) {
      case scalar::int32:
      case scalar::int64:
        o["type"] = "integer";
        o["format"] = t.leaf == scalar::int32 ? "int32" : "int64";
        return o;
      case scalar::boolean:
        o["type"] = "boolean";
        return o;
      case scalar::number:
        o["type"] = "number";
        return o;
      case scalar::int_or_string:
        o["type"] = "string";
        o["format"] = "int-or-string";
        return o;
      case scalar::time:
      case scalar::micro_time:
        o["type"] = "string";
        o["format"] = "date-time";
        return o;
      case scalar::bytes:
        o["type"] = "string";
        o["format"] = "byte";
        return o;
      default:
        o["type"] = "string";
        return o;
    }
  }

  std::string prefix_;
  std::set<std::string> seen_;
};

json::object query_parameter(const char* name, bool v2) {
  json::object p;
  p["name"] = name;
  p["in"] = "query";
  if (v2) {
    p["type"] = "string";
    p["uniqueItems"] = true;
  } else {
    json::ensure_object(p, "schema")["type"] = "string";
  }
  return p;
}

json::object operation(const kind_info& k, const char* action, const schema_writer& w, bool v2) {
  json::object o;
  json::array parameters;
  for (const char* p : {"dryRun", "fieldManager", "fieldValidation"}) parameters.push_back(query_parameter(p, v2));
  if (std::string_view(action) == "patch") parameters.push_back(query_parameter("force", v2));
  o["parameters"] = std::move(parameters);
  auto& ok = json::ensure_object(json::ensure_object(o, "responses"), "200");
  ok["description"] = "OK";
  json::object schema = w.reference(schema_writer::name_of(k));
  if (v2) {
    ok["schema"] = std::move(schema);
  } else {
    json::ensure_object(json::ensure_object(ok, "content"), "application/json")["schema"] = std::move(schema);
  }
  o["x-kubernetes-action"] = action;
  o["x-kubernetes-group-version-kind"] = gvk_object(k);
  return o;
}

void add_paths(json::object& paths, const kind_info& k, const schema_writer& w, bool v2) {
  std::string base = (k.group.empty() ? "/api/v1" : "/apis/" + k.group + "/" + k.version) +
                     (k.namespaced ? "/namespaces/{namespace}/" : "/") + k.plural;
  auto& all = json::ensure_object(paths, base);
  if (k.has_verb("create")) all["post"] = operation(k, "post", w, v2);
  if (!k.has_verb("get")) return;
  auto& one = json::ensure_object(paths, base + "/{name}");
  one["get"] = operation(k, "get", w, v2);
  if (k.has_verb("update")) one["put"] = operation(k, "put", w, v2);
  if (k.has_verb("patch")) one["patch"] = operation(k, "patch", w, v2);
}

json::object info(const server& s) {
  json::object o;
  o["title"] = "Kubernetes";
  o["version"] = s.options.version;
  return o;
}

json::object document_v3(const server& s, const group_version& v) {
  json::object out;
  out["openapi"] = "3.0.0";
  out["info"] = info(s);
  schema_writer w("#/components/schemas/");
  for (const auto& k : v.kinds) w.kind(*k);
  auto& paths = json::ensure_object(out, "paths");
  for (const auto& k : v.kinds) add_paths(paths, *k, w, false);
  json::ensure_object(out, "components")["schemas"] = std::move(w.schemas);
  return out;
}

json::object document_v2(const server& s) {
  json::object out;
  out["swagger"] = "2.0";
  out["info"] = info(s);
  schema_writer w("#/definitions/");
  auto& paths = json::ensure_object(out, "paths");
  auto kinds = s.kinds();
  for (const auto& g : kinds->groups) {
    for (const auto& v : g.versions) {
      for (const auto& k : v.kinds) {
        w.kind(*k);
        add_paths(paths, *k, w, true);
      }
    }
  }
  out["definitions"] = std::move(w.schemas);
  return out;
}

http::response index_v3(const server& s) {
  json::object out;
  auto& paths = json::ensure_object(out, "paths");
  auto add = [&](const std::string& path, const std::string& content) {
    json::ensure_object(paths, path)["serverRelativeURL"] = "/openapi/v3/" + path + "?hash=" + crypto::sha256_hex(content);
  };
  add(".well-known/openid-configuration", "");
  add("openid/v1/jwks", "");
  add("api", "");
  add("version", s.options.version);
  add("apis", "");
  auto kinds = s.kinds();
  for (const auto& g : kinds->groups) {
    if (!g.name.empty()) add("apis/" + g.name, g.name);
    for (const auto& v : g.versions) {
      std::string content;
      for (const auto& k : v.kinds) content += k->kind + (k->custom ? json::write(k->custom->schema) : std::string());
      add(g.name.empty() ? "api/" + v.version : "apis/" + g.name + "/" + v.version, content);
    }
  }
  return {200, "text/plain; charset=utf-8", json::write(out)};
}

}  // namespace

outcome<http::response> serve_openapi(server& s, request& r) {
  const auto& seg = r.target.segments;
  refusal unknown(404, "NotFound", "404 page not found");
  unknown.text = "404 page not found\n";
  if (seg.size() == 2 && seg[1] == "v2") return json_response(200, document_v2(s));
  if (seg.size() < 2 || seg[1] != "v3") return unknown;
  if (seg.size() == 2) return index_v3(s);
  auto kinds = s.kinds();
  std::string group = seg[2] == "apis" && seg.size() >= 4 ? seg[3] : "", version = seg.size() >= 4 ? seg.back() : "";
  bool plain = seg.size() <= 3 || (seg[2] == "apis" && seg.size() == 4);
  if (plain) return json_response(200, document_v3(s, group_version()));
  for (const auto& g : kinds->groups) {
    if (g.name != group) continue;
    for (const auto& v : g.versions) {
      if (v.version == version) return json_response(200, document_v3(s, v));
    }
  }
  return unknown;
}

}  // namespace kubeopera::inline v1::testing::api
