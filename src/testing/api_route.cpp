// From a request to what it is about: authentication, the path grammar, content negotiation, authorization.
#include "src/testing/api_state.hpp"

#include <kubeopera/crypto/pki.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

refusal unauthorized() { return {401, "Unauthorized", "Unauthorized"}; }

refusal unknown_path() {
  refusal r(404, "NotFound", "404 page not found");
  r.text = "404 page not found\n";
  return r;
}

// "application/json;as=Table;v=v1;g=meta.k8s.io" taken apart.
struct media_range {
  std::string type, as, version, group;
};

std::string trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return std::string(s);
}

std::vector<media_range> read_accept(std::string_view text) {
  std::vector<media_range> out;
  while (!text.empty()) {
    auto comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    media_range m;
    bool first = true;
    while (!part.empty()) {
      auto semicolon = part.find(';');
      std::string word = trimmed(part.substr(0, semicolon));
      part = semicolon == std::string_view::npos ? std::string_view() : part.substr(semicolon + 1);
      if (first) {
        m.type = word;
        first = false;
      } else if (word.rfind("as=", 0) == 0) {
        m.as = word.substr(3);
      } else if (word.rfind("v=", 0) == 0) {
        m.version = word.substr(2);
      } else if (word.rfind("g=", 0) == 0) {
        m.group = word.substr(2);
      }
    }
    out.push_back(std::move(m));
  }
  return out;
}

bool accept(request& r, const media_range& m) {
  bool any = m.type == "*/*" || m.type == "application/*";
  if (m.type != "application/json" && !any) return false;
  r.as = view::plain;
  if (m.as.empty()) return true;
  r.as_version = m.version;
  if (m.as == "Table" && m.group == "meta.k8s.io") {
    r.as = view::table;
  } else if ((m.as == "PartialObjectMetadataList" || m.as == "PartialObjectMetadata") && m.group == "meta.k8s.io") {
    r.as = view::partial;
  } else if (m.as == "APIGroupDiscoveryList" && m.group == "apidiscovery.k8s.io") {
    if (m.version != "v2") return false;
    r.as = view::discovery;
  } else {
    return false;
  }
  return true;
}

std::optional<refusal> negotiate(request& r) {
  auto header = r.raw.headers.get("Accept");
  if (!header || trimmed(*header).empty()) return std::nullopt;
  for (const auto& m : read_accept(*header)) {
    if (accept(r, m)) return std::nullopt;
  }
  refusal no(406, "NotAcceptable",
             "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
             "application/vnd.kubernetes.protobuf, "
             "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
  no.details.emplace();
  return no;
}

std::string verb_of(const request& r) {
  const std::string& m = r.raw.method;
  bool item = !r.name.empty();
  if (m == "GET" || m == "HEAD") return item ? "get" : r.flag("watch") ? "watch" : "list";
  if (m == "POST" && (!item || !r.subresource.empty())) return "create";
  if (m == "PUT" && item) return "update";
  if (m == "PATCH" && item) return "patch";
  if (m == "DELETE") return item ? "delete" : "deletecollection";
  return {};
}

// The part of the path behind group and version. Returns false where it fits no resource.
bool read_resource(request& r, const std::vector<std::string>& seg, std::size_t at) {
  auto left = seg.size() - at;
  if (seg[at] == "namespaces" && left >= 3 &&
      !(left == 3 && r.group.empty() && (seg[at + 2] == "status" || seg[at + 2] == "finalize"))) {
    r.ns = seg[at + 1];
    at += 2;
    left -= 2;
  }
  r.plural = seg[at];
  if (left > 1) r.name = seg[at + 1];
  if (left > 2) r.subresource = seg[at + 2];
  return left <= 3 || r.subresource == "proxy";
}

std::string default_manager(const request& r) {
  std::string given = r.query("fieldManager");
  if (!given.empty()) return given;
  std::string agent(r.raw.headers.get("User-Agent").value_or(""));
  std::string prefix = agent.substr(0, agent.find('/'));
  return prefix.empty() ? "unknown" : prefix.substr(0, 128);
}

std::string access_text(const request& r) {
  std::string resource = r.subresource.empty() ? r.plural : r.plural + "/" + r.subresource;
  std::string out = "User " + go_quote(r.user.name) + " cannot " + r.verb + " resource " + go_quote(resource) + " in API group " +
                    go_quote(r.group);
  return out + (r.ns.empty() ? " at the cluster scope" : " in the namespace " + go_quote(r.ns));
}

}  // namespace

}  // namespace kubeopera::inline v1::testing::api

namespace kubeopera::inline v1::testing {

std::optional<api_user> certificate_users::find(const std::string& der) const {
  {
    std::lock_guard lock(mutex_);
    if (auto it = known_.find(der); it != known_.end()) return it->second;
  }
  auto facts = crypto::read_certificate_der(der);
  if (!facts || facts->common_name.empty()) return std::nullopt;
  api_user user(facts->common_name, facts->organizations);
  std::lock_guard lock(mutex_);
  if (known_.size() >= limit) known_.clear();
  known_.emplace(der, user);
  return user;
}

}  // namespace kubeopera::inline v1::testing

namespace kubeopera::inline v1::testing::api {

outcome<api_user> authenticate(const server& s, const http::request& r) {
  if (auto header = r.headers.get("Authorization")) {
    constexpr std::string_view scheme = "Bearer ";
    if (header->substr(0, scheme.size()) != scheme) return unauthorized();
    std::shared_lock guard(s.mutex);
    auto it = s.tokens.find(std::string(header->substr(scheme.size())));
    if (it == s.tokens.end()) return unauthorized();
    return it->second;
  }
  if (!r.client_certificate.empty()) {
    auto user = s.certificates.find(r.client_certificate);
    if (!user) return unauthorized();
    return std::move(*user);
  }
  if (!s.options.anonymous) return unauthorized();
  return s.options.anonymous_user;
}

std::optional<refusal> route(const server& s, request& r) {
  auto parsed = http::parse_target(r.raw.target);
  if (!parsed) return bad_request(parsed.error().message());
  r.target = std::move(*parsed);
  auto seg = r.target.segments;
  if (!seg.empty() && seg.back().empty()) seg.pop_back();
  bool core = !seg.empty() && seg[0] == "api";
  bool named = !seg.empty() && seg[0] == "apis";
  std::size_t head = core ? 2 : 3;
  if (auto no = negotiate(r)) {
    bool resource = (core || named) && seg.size() > head;
    if (resource || core || named) return no;
  }
  if ((!core && !named) || seg.size() <= head) {
    r.verb = "get";
    return std::nullopt;
  }
  r.group = core ? "" : seg[1];
  r.version = seg[head - 1];
  auto kinds = s.kinds();
  if (!kinds->serves(r.group, r.version)) return unknown_path();
  if (!read_resource(r, seg, head)) return unknown_path();
  r.kind = kinds->find(r.group, r.version, r.plural);
  r.verb = verb_of(r);
  if (!r.kind) return no_such_resource();
  if (!r.subresource.empty() && !r.kind->subresource(r.subresource)) return no_such_resource();
  if (!r.kind->namespaced && !r.ns.empty()) return no_such_resource();
  if (r.kind->namespaced && r.ns.empty() && (!r.name.empty() || r.verb == "create")) {
    return r.name.empty() ? method_not_allowed() : no_such_resource();
  }
  const auto* sub = r.subresource.empty() ? nullptr : r.kind->subresource(r.subresource);
  bool can = sub ? std::find(sub->verbs.begin(), sub->verbs.end(), r.verb) != sub->verbs.end() : r.kind->has_verb(r.verb);
  if (r.verb.empty() || !can) return method_not_allowed();
  r.manager = default_manager(r);
  r.dry_run = r.query("dryRun") == "All";
  if (auto v = r.query("fieldValidation"); !v.empty()) r.field_validation = v;
  r.include_object = r.query("includeObject");
  return std::nullopt;
}

bool allowed(const server& s, const api_access& a) {
  const auto& groups = a.user.groups;
  auto in = [&](const char* g) { return std::find(groups.begin(), groups.end(), g) != groups.end(); };
  if (in("system:masters")) return true;
  bool known = !in("system:unauthenticated");
  if (a.resource.empty()) {
    auto is = [&](std::string_view prefix) { return a.path == prefix || a.path.rfind(std::string(prefix) + "/", 0) == 0; };
    if (is("/version") || is("/healthz") || is("/livez") || is("/readyz")) return true;
    if (known && (is("/api") || is("/apis") || is("/openapi"))) return true;
  } else if (known && a.verb == "create" && a.resource.rfind("selfsubject", 0) == 0) {
    return true;
  }
  return s.options.allow && s.options.allow(a);
}

std::optional<refusal> authorize(const server& s, const request& r) {
  api_access a;
  a.user = r.user;
  a.verb = r.verb;
  a.group = r.group;
  a.resource = r.plural;
  a.subresource = r.subresource;
  a.ns = r.ns;
  a.name = r.name;
  a.path = std::string(r.target.raw_path);
  if (allowed(s, a)) return std::nullopt;
  refusal no(403, "Forbidden", {});
  no.details.emplace();
  if (r.plural.empty()) {
    no.message = "forbidden: User " + go_quote(r.user.name) + " cannot " + r.verb + " path " + go_quote(a.path);
    return no;
  }
  std::string subject = qualified(r.plural, r.group);
  if (!r.name.empty()) {
    subject += " " + go_quote(r.name);
    (*no.details)["name"] = r.name;
  }
  if (!r.group.empty()) (*no.details)["group"] = r.group;
  (*no.details)["kind"] = r.plural;
  no.message = subject + " is forbidden: " + access_text(r);
  return no;
}

}  // namespace kubeopera::inline v1::testing::api
