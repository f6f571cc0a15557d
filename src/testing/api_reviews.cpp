// Tokens and reviews: objects that are answered and never stored.
#include "src/testing/api_managed.hpp"
#include "src/testing/api_state.hpp"
#include "src/testing/api_strategy.hpp"
#include "src/testing/api_types.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/write.hpp>

namespace kubeopera::inline v1::testing::api {
namespace {

json::object empty_of(const kind_info& kind) {
  json::object o = zero_object(*kind.t);
  o["kind"] = kind.kind;
  o["apiVersion"] = kind.api_version();
  return o;
}

json::object user_object(const api_user& u) {
  json::object o;
  o["username"] = u.name;
  json::array groups;
  for (const auto& g : u.groups) groups.emplace_back(g);
  groups.emplace_back("system:authenticated");
  o["groups"] = std::move(groups);
  return o;
}

std::string text(const json::object& o, std::initializer_list<std::string_view> path) {
  return std::string(json::get_string(o, path));
}

void answer_token_review(const server& s, json::object& o) {
  std::shared_lock guard(s.mutex);
  auto it = s.tokens.find(text(o, {"spec", "token"}));
  auto& status = json::ensure_object(o, "status");
  status.clear();
  if (it == s.tokens.end()) {
    status["user"] = json::object();
    status["error"] = "invalid bearer token";
    return;
  }
  status["authenticated"] = true;
  status["user"] = user_object(it->second);
}

void answer_access_review(const server& s, const request& r, json::object& o) {
  api_access a;
  a.user = r.user;
  a.verb = text(o, {"spec", "resourceAttributes", "verb"});
  a.group = text(o, {"spec", "resourceAttributes", "group"});
  a.resource = text(o, {"spec", "resourceAttributes", "resource"});
  a.subresource = text(o, {"spec", "resourceAttributes", "subresource"});
  a.ns = text(o, {"spec", "resourceAttributes", "namespace"});
  a.name = text(o, {"spec", "resourceAttributes", "name"});
  if (a.resource.empty()) {
    a.verb = text(o, {"spec", "nonResourceAttributes", "verb"});
    a.path = text(o, {"spec", "nonResourceAttributes", "path"});
  }
  json::ensure_object(o, "status")["allowed"] = allowed(s, a);
}

outcome<http::response> token_request(server& s, request& r) {
  static const kind_ptr kind = [] {
    auto k = std::make_shared<kind_info>();
    k->group = "authentication.k8s.io";
    k->version = "v1";
    k->plural = "tokenrequests";
    k->kind = "TokenRequest";
    k->t = builtin_types().find("TokenRequest");
    return k;
  }();
  record_ptr account = s.store.get(*r.kind, storage_name(r.ns, r.name));
  if (!account) return not_found(*r.kind, r.name);
  KUBEOPERA_TRY(body b, read_object(r, *kind));
  json::object o = std::move(b.object);
  default_object(*kind, o);
  track_update(*kind, empty_of(*kind), o, {r.manager, "token", s.now()}, true);
  auto& spec = json::ensure_object(o, "spec");
  if (const auto* a = json::get_array(spec, {"audiences"}); !a || a->empty()) {
    json::array audiences;
    audiences.emplace_back("https://kubernetes.default.svc");
    spec["audiences"] = std::move(audiences);
  }
  if (const auto* ref = json::get_object(spec, {"boundObjectRef"}); !ref || ref->empty()) spec["boundObjectRef"] = nullptr;
  auto& meta = json::ensure_object(o, "metadata");
  meta["name"] = r.name;
  meta["namespace"] = r.ns;
  meta["uid"] = make_uuid_v4();
  meta["creationTimestamp"] = s.now();
  std::string token = crypto::random_token(32);
  auto& status = json::ensure_object(o, "status");
  status["token"] = token;
  auto lifetime = std::chrono::seconds(json::get_int(spec, {"expirationSeconds"}, 3600));
  status["expirationTimestamp"] = format_rfc3339(s.options.time->now() + lifetime);
  std::unique_lock guard(s.mutex);
  s.tokens[token] =
      api_user("system:serviceaccount:" + r.ns + ":" + r.name, {"system:serviceaccounts", "system:serviceaccounts:" + r.ns});
  return json_response(201, o);
}

}  // namespace

outcome<http::response> serve_review(server& s, request& r) {
  if (r.subresource == "token") return token_request(s, r);
  const kind_info& kind = *r.kind;
  KUBEOPERA_TRY(body b, read_object(r, kind));
  if (auto no = settle_findings(r, kind, b.findings)) return std::move(*no);
  json::object o = std::move(b.object);
  track_update(kind, empty_of(kind), o, {r.manager, "", s.now()}, true);
  if (kind.plural == "tokenreviews") answer_token_review(s, o);
  if (kind.plural == "selfsubjectaccessreviews") answer_access_review(s, r, o);
  if (kind.plural == "selfsubjectreviews") json::ensure_object(o, "status")["userInfo"] = user_object(r.user);
  return json_response(201, o);
}

}  // namespace kubeopera::inline v1::testing::api
