// scale, binding, eviction, finalize, log.
#include "src/testing/api_codec.hpp"
#include "src/testing/api_crd.hpp"
#include "src/testing/api_managed.hpp"
#include "src/testing/api_patch.hpp"
#include "src/testing/api_state.hpp"
#include "src/testing/api_strategy.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::api {
namespace {

const kind_info& scale_kind() {
  static const kind_info k = [] {
    kind_info out;
    out.group = "autoscaling";
    out.version = "v1";
    out.plural = "scales";
    out.kind = "Scale";
    out.t = builtin_types().find("Scale");
    return out;
  }();
  return k;
}

std::string scale_path(const kind_info& kind, const char* which, const char* usual) {
  return kind.custom && kind.custom->scale ? std::string(json::get_string(*kind.custom->scale, {which})) : std::string(usual);
}

outcome<json::object> scale_of(const kind_info& kind, const json::object& o) {
  json::value root(o);
  std::string spec_path = scale_path(kind, "specReplicasPath", ".spec.replicas");
  auto spec = json_path(root, spec_path);
  if (spec.empty() || !spec[0]->is_int64()) {
    if (kind.custom) return internal("the spec replicas field " + go_quote(spec_path) + " does not exist");
  }
  json::object out;
  out["kind"] = "Scale";
  out["apiVersion"] = "autoscaling/v1";
  auto& meta = json::ensure_object(out, "metadata");
  for (const char* f : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const auto* v = json::find(o, {"metadata", f})) meta[f] = *v;
  }
  auto& wanted = json::ensure_object(out, "spec");
  if (!spec.empty() && spec[0]->is_int64() && spec[0]->get_int64() != 0) wanted["replicas"] = *spec[0];
  auto& status = json::ensure_object(out, "status");
  auto now = json_path(root, scale_path(kind, "statusReplicasPath", ".status.replicas"));
  status["replicas"] = now.empty() ? json::value(0) : *now[0];
  std::string selector;
  if (kind.custom) {
    auto found = json_path(root, scale_path(kind, "labelSelectorPath", ""));
    if (!found.empty() && found[0]->is_string()) selector = json::as_view(*found[0]);
  } else {
    selector = format_label_selector(json::get_object(o, {"spec", "selector"}));
  }
  if (!selector.empty()) status["selector"] = selector;
  return out;
}

// Sets the replicas of an object by its simple path (".spec.replicas").
void set_replicas(const kind_info& kind, json::object& o, std::int64_t n) {
  std::string path = scale_path(kind, "specReplicasPath", ".spec.replicas");
  json::object* at = &o;
  for (std::size_t i = 1;;) {
    auto dot = path.find('.', i);
    std::string step = path.substr(i, dot == std::string::npos ? dot : dot - i);
    if (dot == std::string::npos) {
      (*at)[step] = n;
      return;
    }
    at = &json::ensure_object(*at, step);
    i = dot + 1;
  }
}

outcome<json::object> new_scale(request& r, const json::object& current) {
  if (r.raw.method == "PUT") {
    KUBEOPERA_TRY(body b, read_object(r, scale_kind()));
    return std::move(b.object);
  }
  std::vector<std::string> duplicates;
  KUBEOPERA_TRY(json::value patch, parse_body(r, scale_kind(), duplicates));
  std::string type(r.raw.headers.get("Content-Type").value_or(""));
  json::object patched;
  if (type.rfind("application/json-patch+json", 0) == 0) {
    KUBEOPERA_TRY(patched, json_patch(current, patch));
  } else if (const auto* o = patch.if_object()) {
    patched = merge_patch(current, *o);
  } else {
    return bad_request("the patch is not an object");
  }
  KUBEOPERA_TRY(body b, decode_patched(scale_kind(), patched));
  return std::move(b.object);
}

outcome<http::response> scale(server& s, request& r) {
  const kind_info& kind = *r.kind;
  record_ptr rec = s.store.get(kind, storage_name(r.ns, r.name));
  if (!rec) return not_found(kind, r.name);
  if (r.verb == "get") {
    KUBEOPERA_TRY(json::object o, scale_of(kind, parse_record(kind, *rec)));
    return json_response(200, o);
  }
  auto change = [&](const json::object& live) -> outcome<json::object> {
    KUBEOPERA_TRY(json::object current, scale_of(kind, live));
    KUBEOPERA_TRY(json::object wanted, new_scale(r, current));
    std::int64_t n = json::get_int(wanted, {"spec", "replicas"});
    if (n < 0) {
      return invalid("autoscaling", "Scale", r.name,
                     {invalid_value("spec.replicas", std::to_string(n), "must be greater than or equal to 0")});
    }
    std::string rv(json::get_string(wanted, {"metadata", "resourceVersion"}));
    if (!rv.empty() && rv != json::get_string(live, {"metadata", "resourceVersion"})) {
      return conflict(kind, r.name,
                      "the object has been modified; please apply your changes to the latest version and try again");
    }
    json::object next = live;
    set_replicas(kind, next, n);
    track_update(kind, live, next, {r.manager, "scale", ""}, false);
    prepare_update(kind, live, next, "");
    return next;
  };
  KUBEOPERA_TRY(record_ptr out, store_change(s, r, kind, r.ns, r.name, change));
  KUBEOPERA_TRY(json::object o, scale_of(kind, parse_record(kind, *out)));
  return json_response(200, o);
}

outcome<json::object> small_body(const request& r, const char* name) {
  static thread_local kind_info k;
  k.kind = name;
  k.version = "v1";
  std::vector<std::string> duplicates;
  KUBEOPERA_TRY(json::value v, parse_body(r, k, duplicates));
  auto* o = v.if_object();
  if (!o) return bad_request("the body is not an object");
  return std::move(*o);
}

json::object created_status() {
  json::object o;
  o["kind"] = "Status";
  o["apiVersion"] = "v1";
  o["metadata"] = json::object();
  o["status"] = "Success";
  o["code"] = 201;
  return o;
}

outcome<http::response> bind_pod(server& s, request& r) {
  KUBEOPERA_TRY(json::object binding, small_body(r, "Binding"));
  std::string node(json::get_string(binding, {"target", "name"}));
  if (node.empty()) return invalid("", "Binding", r.name, {required_value("target.name")});
  auto change = [&](const json::object& live) -> outcome<json::object> {
    std::string bound(json::get_string(live, {"spec", "nodeName"}));
    if (!bound.empty()) return conflict(*r.kind, r.name, "pod " + r.name + " is already assigned to node " + go_quote(bound));
    json::object next = live;
    json::ensure_object(next, "spec")["nodeName"] = node;
    json::object c;
    c["type"] = "PodScheduled";
    c["status"] = "True";
    c["lastProbeTime"] = nullptr;
    c["lastTransitionTime"] = s.now();
    auto& all = json::ensure_array(json::ensure_object(next, "status"), "conditions");
    auto same = [](const json::value& v) {
      return v.is_object() && json::get_string(v.get_object(), {"type"}) == "PodScheduled";
    };
    all.erase(std::remove_if(all.begin(), all.end(), same), all.end());
    all.push_back(std::move(c));
    return next;
  };
  KUBEOPERA_TRY(record_ptr rec, store_change(s, r, *r.kind, r.ns, r.name, change));
  static_cast<void>(rec);
  return json_response(201, created_status());
}

// A disruption budget that selects the pod and allows no more disruptions.
std::optional<refusal> budget_refuses(const server& s, const request& r, const record& pod) {
  kind_ptr budgets = builtin_kind("policy", "poddisruptionbudgets");
  auto all = s.store.list(*budgets, r.ns, 0, {});
  for (const auto& rec : all->records) {
    json::object o = parse_record(*budgets, *rec);
    if (!label_selector::from_object(json::get_object(o, {"spec", "selector"})).matches(pod.labels)) continue;
    if (json::get_int(o, {"status", "observedGeneration"}) == 0 || json::get_int(o, {"status", "disruptionsAllowed"}) > 0)
      continue;
    refusal no(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.");
    json::object cause;
    cause["reason"] = "DisruptionBudget";
    cause["message"] = "The disruption budget " + rec->name + " needs " +
                       std::to_string(json::get_int(o, {"status", "desiredHealthy"})) + " healthy pods and has " +
                       std::to_string(json::get_int(o, {"status", "currentHealthy"})) + " currently";
    no.details.emplace();
    json::ensure_array(*no.details, "causes").push_back(std::move(cause));
    no.retry_after = 10;
    return no;
  }
  return std::nullopt;
}

outcome<http::response> evict_pod(server& s, request& r) {
  KUBEOPERA_TRY(json::object eviction, small_body(r, "Eviction"));
  record_ptr pod = s.store.get(*r.kind, storage_name(r.ns, r.name));
  if (!pod) return not_found(*r.kind, r.name);
  if (auto no = budget_refuses(s, r, *pod)) return std::move(*no);
  const auto* options = json::get_object(eviction, {"deleteOptions"});
  KUBEOPERA_TRY(deletion d, remove_object(s, r, *r.kind, r.ns, r.name, options ? *options : json::object()));
  static_cast<void>(d);
  return json_response(201, created_status());
}

outcome<std::optional<std::int64_t>> count_of(const request& r, const char* key) {
  std::string text = r.query(key);
  if (text.empty()) return std::optional<std::int64_t>();
  std::int64_t n = 0;
  auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || p != text.data() + text.size() || n < 0) {
    return invalid("", "PodLogOptions", r.name, {invalid_value(key, go_quote(text), "must be greater than or equal to 0")});
  }
  return std::optional<std::int64_t>(n);
}

std::vector<std::string> container_names(const json::object& pod, const char* list) {
  std::vector<std::string> out;
  const auto* all = json::get_array(pod, {"spec", list});
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    if (const auto* c = (*all)[i].if_object()) out.emplace_back(json::get_string(*c, {"name"}));
  }
  return out;
}

outcome<api_log_request> read_log_request(const request& r, const json::object& pod) {
  api_log_request out;
  out.container = r.query("container");
  auto names = container_names(pod, "containers");
  auto all = container_names(pod, "initContainers");
  all.insert(all.end(), names.begin(), names.end());
  if (out.container.empty()) {
    if (names.size() != 1) {
      std::string list;
      for (const auto& n : names) list += (list.empty() ? "" : " ") + n;
      return bad_request("a container name must be specified for pod " + r.name + ", choose one of: [" + list + "]");
    }
    out.container = names[0];
  } else if (std::find(all.begin(), all.end(), out.container) == all.end()) {
    return bad_request("container " + out.container + " is not valid for pod " + r.name);
  }
  out.follow = r.flag("follow");
  out.previous = r.flag("previous");
  out.timestamps = r.flag("timestamps");
  KUBEOPERA_TRY(out.tail_lines, count_of(r, "tailLines"));
  KUBEOPERA_TRY(out.limit_bytes, count_of(r, "limitBytes"));
  KUBEOPERA_TRY(out.since_seconds, count_of(r, "sinceSeconds"));
  return out;
}

int status_of(errc code) {
  switch (code) {
    case errc::invalid_argument:
    case errc::failed_precondition:
      return 400;
    case errc::not_found:
      return 404;
    case errc::permission_denied:
      return 403;
    case errc::unavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

outcome<http::response> serve_subresource(server& s, request& r) {
  if (r.subresource == "status" || r.subresource == "finalize" || r.subresource == "resize" ||
      r.subresource == "ephemeralcontainers") {
    if (r.verb == "get") return get_object(s, r);
    return r.verb == "update" ? update_object(s, r) : patch_object(s, r);
  }
  if (r.subresource == "scale") return scale(s, r);
  if (r.subresource == "binding") return bind_pod(s, r);
  if (r.subresource == "eviction") return evict_pod(s, r);
  if (r.subresource == "token") return serve_review(s, r);
  return refusal(501, "NotImplemented", "this server does not serve " + r.plural + "/" + r.subresource);
}

asio::awaitable<http::response> serve_log(server_ptr s, request r) {
  record_ptr rec = s->store.get(*r.kind, storage_name(r.ns, r.name));
  if (!rec) co_return status_response(not_found(*r.kind, r.name));
  json::object pod = parse_record(*r.kind, *rec);
  auto wanted = read_log_request(r, pod);
  if (!wanted) co_return status_response(wanted.error());
  api_log_source source;
  {
    std::shared_lock guard(s->mutex);
    source = s->log_source;
  }
  if (!source) co_return status_response(refusal(500, "", "no preferred addresses found; known addresses: []"));
  auto log = co_await source(r.ns, r.name, std::move(*wanted));
  if (!log) {
    int code = status_of(log.error().code());
    co_return status_response(refusal(code,
                                      code == 400   ? "BadRequest"
                                      : code == 404 ? "NotFound"
                                                    : "InternalError",
                                      log.error().message()));
  }
  http::response out(200);
  out.headers.set("Content-Type", "text/plain");
  out.stream = std::move(*log);
  co_return out;
}

}  // namespace kubeopera::inline v1::testing::api
