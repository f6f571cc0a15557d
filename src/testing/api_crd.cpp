// From a CustomResourceDefinition to kinds, and the rules that a definition itself must keep.
#include "src/testing/api_crd.hpp"

#include <kubeopera/kube/object.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::api {
namespace {

bool flag(const json::object& schema, std::string_view key) { return json::get_bool(schema, {key}); }

const type* type_of(const json::object& schema, type_registry& types);

// Fields of an object schema; the root's and embedded resources' metadata are ObjectMeta.
void add_fields(const json::object& schema, type& t, type_registry& types, bool resource) {
  if (resource) {
    for (const char* word : {"apiVersion", "kind"}) {
      type_field f;
      f.name = word;
      f.t = builtin_types().find("Pod")->find(word)->t;
      t.add(std::move(f));
    }
    type_field meta;
    meta.name = "metadata";
    meta.t = builtin_types().find("ObjectMeta");
    t.add(std::move(meta));
  }
  const auto* properties = json::get_object(schema, {"properties"});
  if (!properties) return;
  for (const auto& kv : *properties) {
    const auto* s = kv.value().if_object();
    if (!s || t.find(kv.key())) continue;
    type_field f;
    f.name = kv.key();
    f.t = type_of(*s, types);
    if (const auto* d = s->if_contains("default")) f.fallback = *d;
    t.add(std::move(f));
  }
}

const type* scalar_type(type_registry& types, scalar leaf) {
  type& t = types.make();
  t.form = shape::scalar;
  t.leaf = leaf;
  t.custom = true;
  return &t;
}

const type* list_type(const json::object& schema, type_registry& types) {
  type& t = types.make();
  t.form = shape::list;
  t.custom = true;
  const auto* items = json::get_object(schema, {"items"});
  t.element = items ? type_of(*items, types) : &types.any();
  auto word = json::get_string(schema, {"x-kubernetes-list-type"});
  t.set = word == "set";
  if (word == "map") {
    if (const auto* keys = json::get_array(schema, {"x-kubernetes-list-map-keys"})) {
      for (const auto& k : *keys) t.keys.emplace_back(json::as_view(k));
    }
  }
  t.atomic = !t.set && t.keys.empty();
  return &t;
}

const type* type_of(const json::object& schema, type_registry& types) {
  auto word = json::get_string(schema, {"type"});
  if (flag(schema, "x-kubernetes-int-or-string")) return scalar_type(types, scalar::int_or_string);
  if (word == "string") return scalar_type(types, scalar::string);
  if (word == "integer") return scalar_type(types, scalar::int64);
  if (word == "number") return scalar_type(types, scalar::number);
  if (word == "boolean") return scalar_type(types, scalar::boolean);
  if (word == "array") return list_type(schema, types);
  if (word != "object") return &types.any();
  bool resource = flag(schema, "x-kubernetes-embedded-resource");
  type& t = types.make();
  t.custom = true;
  t.preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
  t.atomic = json::get_string(schema, {"x-kubernetes-map-type"}) == "atomic";
  const auto* extra = schema.if_contains("additionalProperties");
  if (extra && (extra->is_object() || (extra->is_bool() && extra->get_bool()))) {
    t.form = shape::map;
    t.element = extra->is_object() ? type_of(extra->get_object(), types) : &types.any();
    return &t;
  }
  t.form = shape::structure;
  add_fields(schema, t, types, resource);
  return &t;
}

const type* root_type(const json::object& schema, type_registry& types) {
  type& t = types.make();
  t.custom = true;
  t.form = shape::structure;
  t.preserve = schema.empty() || flag(schema, "x-kubernetes-preserve-unknown-fields");
  add_fields(schema, t, types, true);
  return &t;
}

bool has_rules(const json::value& v) {
  if (const auto* o = v.if_object()) {
    if (o->if_contains("x-kubernetes-validations")) return true;
    return std::any_of(o->begin(), o->end(), [](const auto& kv) { return has_rules(kv.value()); });
  }
  const auto* a = v.if_array();
  return a && std::any_of(a->begin(), a->end(), [](const auto& x) { return has_rules(x); });
}

std::vector<printer_column> columns_of(const json::object& version) {
  std::vector<printer_column> out;
  const auto* list = json::get_array(version, {"additionalPrinterColumns"});
  if (!list || list->empty()) {
    out.push_back({"Age", "date", "", "", ".metadata.creationTimestamp", 0});
    return out;
  }
  for (const auto& v : *list) {
    const auto* c = v.if_object();
    if (!c) continue;
    out.push_back({std::string(json::get_string(*c, {"name"})), std::string(json::get_string(*c, {"type"})),
                   std::string(json::get_string(*c, {"format"})), std::string(json::get_string(*c, {"description"})),
                   std::string(json::get_string(*c, {"jsonPath"})), static_cast<int>(json::get_int(*c, {"priority"}))});
  }
  return out;
}

void strings_at(const json::object& o, std::initializer_list<std::string_view> path, std::vector<std::string>& out) {
  if (const auto* a = json::get_array(o, path)) {
    for (const auto& v : *a) out.emplace_back(json::as_view(v));
  }
}

kind_ptr kind_of(const json::object& crd, const json::object& version) {
  auto k = std::make_shared<kind_info>();
  auto text = [&](std::initializer_list<std::string_view> path) { return std::string(json::get_string(crd, path)); };
  k->group = text({"spec", "group"});
  k->version = json::get_string(version, {"name"});
  k->plural = text({"spec", "names", "plural"});
  k->singular = text({"spec", "names", "singular"});
  k->kind = text({"spec", "names", "kind"});
  k->list_kind = text({"spec", "names", "listKind"});
  k->namespaced = text({"spec", "scope"}) == "Namespaced";
  k->verbs = {"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"};
  strings_at(crd, {"spec", "names", "shortNames"}, k->short_names);
  strings_at(crd, {"spec", "names", "categories"}, k->categories);
  k->generation = true;
  auto custom = std::make_shared<custom_version>();
  custom->crd = json::get_string(crd, {"metadata", "name"});
  if (const auto* s = json::get_object(version, {"schema", "openAPIV3Schema"})) custom->schema = *s;
  custom->types = std::make_shared<type_registry>();
  custom->columns = columns_of(version);
  custom->rules = has_rules(custom->schema);
  if (json::get_object(version, {"subresources", "status"}))
    k->subresources.push_back({"status", "", "", k->kind, {"get", "patch", "update"}});
  if (const auto* scale = json::get_object(version, {"subresources", "scale"})) {
    custom->scale = *scale;
    k->subresources.push_back({"scale", "autoscaling", "v1", "Scale", {"get", "patch", "update"}});
  }
  if (const auto* fields = json::get_array(version, {"selectableFields"})) {
    for (const auto& f : *fields) {
      const auto* o = f.if_object();
      std::string path(o ? json::get_string(*o, {"jsonPath"}) : "");
      if (!path.empty()) k->field_labels.push_back(path.substr(1));
    }
  }
  k->t = root_type(custom->schema, *custom->types);
  k->custom = std::move(custom);
  return k;
}

// A node of a structural schema must say its type.
void check_structural(const json::object& schema, const std::string& path, problems& out) {
  bool free_typed = flag(schema, "x-kubernetes-int-or-string") || flag(schema, "x-kubernetes-preserve-unknown-fields");
  if (json::get_string(schema, {"type"}).empty() && !free_typed) {
    out.push_back(required_value(path + ".type", "must not be empty for specified object fields"));
  }
  if (const auto* p = json::get_object(schema, {"properties"})) {
    for (const auto& kv : *p) {
      if (const auto* s = kv.value().if_object()) check_structural(*s, path + ".properties[" + std::string(kv.key()) + "]", out);
    }
  }
  if (const auto* s = json::get_object(schema, {"items"})) check_structural(*s, path + ".items", out);
  if (const auto* s = json::get_object(schema, {"additionalProperties"}))
    check_structural(*s, path + ".additionalProperties", out);
  if (json::get_string(schema, {"type"}) == "array" && !schema.if_contains("items")) {
    out.push_back(required_value(path + ".items", "must be specified"));
  }
  if (json::get_string(schema, {"x-kubernetes-list-type"}) == "map" && !json::get_array(schema, {"x-kubernetes-list-map-keys"})) {
    out.push_back(required_value(path + ".x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map"));
  }
}

void check_versions(const json::object& crd, problems& out) {
  const auto* versions = json::get_array(crd, {"spec", "versions"});
  if (!versions || versions->empty()) {
    out.push_back(required_value("spec.versions"));
    return;
  }
  int storage = 0;
  for (std::size_t i = 0; i < versions->size(); ++i) {
    const auto* v = (*versions)[i].if_object();
    if (!v) continue;
    std::string path = "spec.versions[" + std::to_string(i) + "]";
    auto name = json::get_string(*v, {"name"});
    if (!kube::is_dns_label(name)) {
      out.push_back(invalid_value(path + ".name", go_quote(name),
                                  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"));
    }
    if (flag(*v, "storage")) ++storage;
    const auto* schema = json::get_object(*v, {"schema", "openAPIV3Schema"});
    std::string schema_path = versions->size() == 1 ? "spec.validation.openAPIV3Schema" : path + ".schema.openAPIV3Schema";
    if (!schema) {
      out.push_back(required_value(path + ".schema.openAPIV3Schema", "schemas are required"));
    } else {
      check_structural(*schema, schema_path, out);
    }
  }
  if (storage != 1) {
    out.push_back(invalid_value("spec.versions", "null", "must have exactly one version marked as storage version"));
  }
}

}  // namespace

void complete_crd(json::object& crd) {
  auto& spec = json::ensure_object(crd, "spec");
  auto& names = json::ensure_object(spec, "names");
  std::string kind(json::get_string(names, {"kind"}));
  if (json::get_string(names, {"singular"}).empty()) {
    std::string lower = kind;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    names["singular"] = lower;
  }
  if (json::get_string(names, {"listKind"}).empty() && !kind.empty()) names["listKind"] = kind + "List";
  if (!spec.if_contains("conversion")) json::ensure_object(spec, "conversion")["strategy"] = "None";
}

problems validate_crd(const json::object& crd) {
  problems out;
  std::string name(json::get_string(crd, {"metadata", "name"})), group(json::get_string(crd, {"spec", "group"}));
  std::string plural(json::get_string(crd, {"spec", "names", "plural"}));
  if (name != plural + "." + group) {
    out.push_back(invalid_value("metadata.name", go_quote(name), "must be spec.names.plural+\".\"+spec.group"));
  }
  if (group.find('.') == std::string::npos) {
    out.push_back(invalid_value("spec.group", go_quote(group), "should be a domain with at least one dot"));
  }
  auto scope = json::get_string(crd, {"spec", "scope"});
  if (scope != "Namespaced" && scope != "Cluster") {
    out.push_back(unsupported_value("spec.scope", go_quote(scope), {"Cluster", "Namespaced"}));
  }
  if (plural.empty()) out.push_back(required_value("spec.names.plural"));
  if (json::get_string(crd, {"spec", "names", "kind"}).empty()) out.push_back(required_value("spec.names.kind"));
  check_versions(crd, out);
  return out;
}

std::vector<kind_ptr> kinds_of(const json::object& crd) {
  std::vector<kind_ptr> out;
  const auto* versions = json::get_array(crd, {"spec", "versions"});
  if (!versions) return out;
  for (const auto& v : *versions) {
    const auto* o = v.if_object();
    if (o && flag(*o, "served")) out.push_back(kind_of(crd, *o));
  }
  return out;
}

void accept_names(json::object& crd, const std::string& now, bool established) {
  auto& status = json::ensure_object(crd, "status");
  auto condition = [&](const char* type, bool yes, const char* reason, const char* message) {
    json::object c;
    c["type"] = type;
    c["status"] = yes ? "True" : "False";
    c["lastTransitionTime"] = now;
    c["reason"] = reason;
    c["message"] = message;
    return c;
  };
  json::array all;
  all.push_back(condition("NamesAccepted", true, "NoConflicts", "no conflicts found"));
  all.push_back(condition("Established", established, established ? "InitialNamesAccepted" : "Installing",
                          "the initial names have been accepted"));
  status["conditions"] = std::move(all);
  status["acceptedNames"] = crd.at("spec").at("names");
}

namespace {

// One [..] of a path: an index, a star, or a test of one field of the items.
void descend_bracket(std::string_view inside, const json::value& v, std::vector<const json::value*>& out) {
  const auto* a = v.if_array();
  if (!a) return;
  if (inside == "*") {
    for (const auto& x : *a) out.push_back(&x);
    return;
  }
  std::size_t n = 0;
  if (auto [p, ec] = std::from_chars(inside.data(), inside.data() + inside.size(), n); ec == std::errc() && n < a->size()) {
    out.push_back(&(*a)[n]);
    return;
  }
  auto at = inside.find("@."), eq = inside.find("==");
  if (at == std::string_view::npos || eq == std::string_view::npos) return;
  auto trimmed = [](std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == ')')) s.remove_suffix(1);
    return s;
  };
  std::string_view field = trimmed(inside.substr(at + 2, eq - at - 2)), wanted = trimmed(inside.substr(eq + 2));
  if (wanted.size() >= 2 && (wanted.front() == '"' || wanted.front() == '\'')) wanted = wanted.substr(1, wanted.size() - 2);
  for (const auto& x : *a) {
    const auto* o = x.if_object();
    if (o && json::get_string(*o, {field}) == wanted) out.push_back(&x);
  }
}

}  // namespace

std::vector<const json::value*> json_path(const json::value& root, std::string_view path) {
  std::vector<const json::value*> at = {&root};
  while (!path.empty() && !at.empty()) {
    std::vector<const json::value*> next;
    if (path[0] == '[') {
      auto end = path.find(']');
      if (end == std::string_view::npos) return {};
      for (const auto* v : at) descend_bracket(path.substr(1, end - 1), *v, next);
      path.remove_prefix(end + 1);
    } else {
      if (path[0] == '.') path.remove_prefix(1);
      std::string key;
      while (!path.empty() && path[0] != '.' && path[0] != '[') {
        if (path[0] == '\\' && path.size() > 1) path.remove_prefix(1);
        key += path[0];
        path.remove_prefix(1);
      }
      for (const auto* v : at) {
        const auto* o = v->if_object();
        if (const auto* x = o ? o->if_contains(key) : nullptr) next.push_back(x);
      }
    }
    at = std::move(next);
  }
  return at;
}

}  // namespace kubeopera::inline v1::testing::api
