// Matching, authentication, access, idempotency, metrics and error mapping, in this order.
#include "server/web/router.hpp"

#include "server/web/problem.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/http/url.hpp>
#include <kubeopera/json/read.hpp>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace kubeopera::inline v1::web {

// ---- call ----------------------------------------------------------------------------------------------------------

const std::string& call::param(std::string_view name) const {
  for (const auto& [k, v] : path)
    if (k == name) return v;
  throw std::logic_error("route has no path parameter " + std::string(name));
}

std::optional<std::string> call::if_match() const {
  auto h = request.headers.get("If-Match");
  if (!h || *h == "*") return std::nullopt;
  auto v = *h;
  if (v.size() >= 2 && v.front() == '"' && v.back() == '"') v = v.substr(1, v.size() - 2);
  return std::string(v);
}

result<std::string> call::acting_tenant() const {
  if (!who.platform_admin) return *who.tenant;
  std::optional<std::string> acting;
  for (const auto& [k, v] : query)
    if (k == "acting_tenant") acting = v;
  if (acting && !acting->empty()) return *acting;
  if (who.tenant) return *who.tenant;
  return error(errc::invalid_argument, "TenantRequired", "a platform administrator names the tenant with acting_tenant")
      .with_violation("?acting_tenant", "is required");
}

std::optional<std::string> call::visible_tenant() const {
  if (!who.platform_admin) return who.tenant;
  for (const auto& [k, v] : query)
    if (k == "acting_tenant" && !v.empty()) return v;
  return std::nullopt;
}

// ---- what the typed part of a route uses ----------------------------------------------------------------------------

namespace detail {

result<json::object> query_object(const call& c, const json::object& schema) {
  const auto& properties = schema.at("properties").as_object();
  json::object out;
  std::vector<violation> bad;
  for (const auto& [name, text] : c.query) {
    if (name == "acting_tenant") continue;
    auto* p = properties.if_contains(name);
    if (!p) {
      bad.push_back({"?" + name, "unknown query parameter"});
      continue;
    }
    if (out.contains(name)) {
      bad.push_back({"?" + name, "is there twice"});
      continue;
    }
    auto type = json::get_string(p->as_object(), {"type"});
    if (type == "integer") {
      std::int64_t i = 0;
      auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), i);
      if (ec != std::errc() || end != text.data() + text.size())
        bad.push_back({"?" + name, "must be an integer"});
      else
        out[name] = i;
    } else if (type == "boolean") {
      if (text == "true" || text == "1")
        out[name] = true;
      else if (text == "false" || text == "0")
        out[name] = false;
      else
        bad.push_back({"?" + name, "must be true or false"});
    } else {
      out[name] = text;
    }
  }
  if (!bad.empty())
    return error(errc::invalid_argument, "InvalidQuery", "the query string is not valid").with_violations(std::move(bad));
  return out;
}

result<void> no_query(const call& c) {
  std::vector<violation> bad;
  for (const auto& [name, text] : c.query)
    if (name != "acting_tenant") bad.push_back({"?" + name, "unknown query parameter"});
  if (bad.empty()) return {};
  return error(errc::invalid_argument, "InvalidQuery", "the query string is not valid").with_violations(std::move(bad));
}

namespace {

std::string lower_trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// JSON in UTF-8 and as it is: another charset or coding would make the bytes mean something else to another reader.
bool is_json(const http::fields& headers) {
  auto type = headers.get("Content-Type").value_or("");
  auto bare = lower_trimmed(type.substr(0, type.find(';')));
  if (bare != "application/json" && bare != "application/merge-patch+json") return false;
  if (auto parameters = type.find(';'); parameters != std::string_view::npos) {
    auto charset = lower_trimmed(type.substr(parameters + 1));
    if (charset != "charset=utf-8" && charset != "charset=\"utf-8\"") return false;
  }
  return lower_trimmed(headers.get("Content-Encoding").value_or("identity")) == "identity";
}

// Where a text holds a NUL, which neither PostgreSQL nor a process's environment can hold; nullopt where none does.
std::optional<std::string> find_nul(const json::value& v, const std::string& at) {
  constexpr char nul = 0;
  if (v.is_string()) return json::as_view(v).find(nul) == std::string_view::npos ? std::nullopt : std::optional(at);
  if (auto* a = v.if_array()) {
    for (std::size_t i = 0; i < a->size(); ++i)
      if (auto found = find_nul((*a)[i], json::pointer_step(at, i))) return found;
  } else if (auto* o = v.if_object()) {
    for (const auto& m : *o) {
      std::string_view key = m.key();
      if (key.find(nul) != std::string_view::npos) return at;
      if (auto found = find_nul(m.value(), json::pointer_step(at, key))) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

result<json::value> body_value(const call& c) {
  if (!is_json(c.request.headers))
    return error(errc::invalid_argument, "UnsupportedMediaType", "send application/json in UTF-8, without a content encoding");
  KUBEOPERA_TRY(auto body, json::read(c.request.body));
  if (auto at = find_nul(body, ""))
    return error(errc::invalid_argument, "InvalidBody", "a text of the body holds a NUL character")
        .with_violation(*at, "may not hold a NUL character");
  return body;
}

std::string operation_name(std::string_view pretty) {
  // "... [F = &kubeopera::v1::api::service::list_apps]"
  auto at = pretty.rfind("::");
  auto name = pretty.substr(at == std::string_view::npos ? 0 : at + 2);
  return std::string(name.substr(0, name.find_first_of("];> (")));
}

http::response json_response(int status, const json::value& v, const std::string& etag) {
  http::response r(status, "application/json", json::write(v));
  r.headers.set("Cache-Control", "no-store");
  if (!etag.empty()) r.headers.set("ETag", "\"" + etag + "\"");
  return r;
}

}  // namespace detail

// ---- matching -------------------------------------------------------------------------------------------------------

struct router::node {
  std::map<std::string, std::unique_ptr<node>, std::less<>> fixed;
  std::unique_ptr<node> any;
  std::string any_name;
  std::map<std::string, std::size_t, std::less<>> by_method;  // index into rows_
};

struct router::match {
  const route* row = nullptr;
  bool path_exists = false;
  std::string allow;
};

router::router(router_options options)
    : options_(std::move(options)),
      root_(std::make_unique<node>()),
      ready_(options_.ready, options_.service, *options_.clk, *options_.log, options_.stats),
      telemetry_(options_.service, *options_.clk, *options_.log, options_.stats) {}
router::~router() = default;

void router::add(std::vector<route> rows) {
  for (auto& r : rows) {
    node* at = root_.get();
    std::string_view rest = r.path;
    while (!rest.empty()) {
      rest.remove_prefix(1);
      auto step = rest.substr(0, rest.find('/'));
      rest.remove_prefix(step.size());
      if (step.starts_with('{')) {
        if (!at->any) at->any = std::make_unique<node>();
        at->any_name = step.substr(1, step.size() - 2);
        at = at->any.get();
      } else {
        auto& next = at->fixed[std::string(step)];
        if (!next) next = std::make_unique<node>();
        at = next.get();
      }
    }
    if (!at->by_method.emplace(r.method, rows_.size()).second) throw std::logic_error("two routes: " + r.method + " " + r.path);
    rows_.push_back(std::move(r));
  }
}

router::match router::find(const std::vector<std::string>& segments, std::string_view method, call& c) const {
  const node* at = root_.get();
  for (const auto& s : segments) {
    if (auto it = at->fixed.find(s); it != at->fixed.end()) {
      at = it->second.get();
    } else if (at->any && !s.empty()) {
      c.path.emplace_back(at->any_name, s);
      at = at->any.get();
    } else {
      return {};
    }
  }
  match m;
  for (const auto& [name, index] : at->by_method) {
    m.path_exists = true;
    m.allow += (m.allow.empty() ? "" : ", ") + name;
    if (name == method || (method == "HEAD" && name == "GET")) m.row = &rows_[index];
  }
  return m;
}

// ---- the pipeline ---------------------------------------------------------------------------------------------------

namespace {

// Of these headers one value is taken; two could be read differently by two readers.
result<void> check_single(const http::fields& headers) {
  for (std::string_view name : {"Content-Type", "Content-Encoding", "Idempotency-Key", "If-Match", "Last-Event-ID"})
    if (headers.count(name) > 1)
      return error(errc::invalid_argument, "DuplicateHeader", "more than one " + std::string(name) + " header");
  return {};
}

bool is_idempotency_key(std::string_view key) {
  if (key.empty() || key.size() > 200) return false;
  return std::all_of(key.begin(), key.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

error no_such_path() { return {errc::not_found, "NotFound", "no such path"}; }

bool sane_request_id(std::string_view id) {
  if (id.empty() || id.size() > 64) return false;
  return std::all_of(id.begin(), id.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.'; });
}

// Goes on in the caller's trace; what is not one valid traceparent begins a new trace.
trace_context trace_of(const http::fields& headers) {
  if (headers.count("traceparent") != 1) return new_trace();
  auto parent = parse_traceparent(*headers.get("traceparent"));
  return parent ? child_of(*parent) : new_trace();
}

result<std::string_view> bearer(const http::fields& headers) {
  error none(errc::unauthenticated, "TokenMissing", "an access token is required: Authorization: Bearer <token>");
  auto n = headers.count("Authorization");
  if (n == 0) return none;
  if (n > 1) return error(errc::unauthenticated, "TokenMalformed", "more than one Authorization header");
  auto h = *headers.get("Authorization");
  if (!h.starts_with("Bearer "))
    return error(errc::unauthenticated, "TokenMalformed", "the Authorization header is not \"Bearer <token>\"");
  return h.substr(7);
}

}  // namespace

result<void> router::admit(const route& r, call& c) const {
  if (r.access.what() == access::kind::open) return {};
  KUBEOPERA_TRY(auto token, bearer(c.request.headers));
  KUBEOPERA_TRY(c.who, options_.authenticate(token));
  if (!c.who.platform_admin && (!c.who.tenant || c.who.tenant->empty()))
    return error(errc::permission_denied, "TenantMissing", "this account belongs to no tenant");
  if (c.who.platform_admin) {
    auto n = std::count_if(c.query.begin(), c.query.end(), [](const auto& q) { return q.first == "acting_tenant"; });
    if (n > 1)
      return error(errc::invalid_argument, "InvalidQuery", "acting_tenant is there twice")
          .with_violation("?acting_tenant", "is there twice");
    for (const auto& [k, v] : c.query)
      if (k == "acting_tenant" && !is_tenant_id(v))
        return error(errc::invalid_argument, "InvalidQuery", "acting_tenant is no tenant's id")
            .with_violation("?acting_tenant", "is no tenant's id");
  }
  if (r.access.what() == access::kind::platform_admin && !c.who.platform_admin)
    return error(errc::permission_denied, "NotAllowed", "only platform administrators may do this");
  if (r.access.what() == access::kind::permission && !c.who.may(r.access.permission()))
    return error(errc::permission_denied, "NotAllowed", "the permission " + r.access.permission() + " is missing");
  return {};
}

task<http::response> router::run_idempotent(const route& r, call& c, const std::string& key) {
  if (!is_idempotency_key(key))
    co_return error(errc::invalid_argument, "InvalidIdempotencyKey",
                    "Idempotency-Key must have 1 to 200 printable ASCII characters");
  auto fingerprint = crypto::sha256_hex(r.method + " " + c.request.target + "\n" + c.request.body);
  KUBEOPERA_CO_TRY(auto saved, co_await options_.idempotency->begin(c, key, fingerprint));
  if (saved) {
    http::response again(saved->status, saved->status >= 400 ? "application/problem+json" : "application/json", saved->body);
    if (!saved->location.empty()) again.headers.set("Location", saved->location);
    if (!saved->etag.empty()) again.headers.set("ETag", saved->etag);
    again.headers.set("Idempotency-Replayed", "true");
    co_return std::move(again);
  }
  c.idempotency_key = key;
  auto reply = co_await r.run(c);
  bool keep = reply ? reply->status < 500 : !reply.error().transient() && status_of(reply.error().code()) < 500;
  if (!keep || (reply && reply->stream)) {
    KUBEOPERA_CO_CHECK(co_await options_.idempotency->abandon(c, key));
    co_return std::move(reply);
  }
  if (!reply) reply = problem_response(reply.error(), c.request_id);
  saved_reply record;
  record.status = reply->status;
  record.body = reply->body;
  record.location = reply->headers.get("Location").value_or("");
  record.etag = reply->headers.get("ETag").value_or("");
  if (!c.reply_kept) KUBEOPERA_CO_CHECK(co_await options_.idempotency->finish(c, key, record));
  co_return std::move(reply);
}

task<http::response> router::run_route(const route& r, call& c) {
  KUBEOPERA_CO_CHECK(admit(r, c));
  auto key = c.request.headers.get("Idempotency-Key");
  if (r.method == "POST" && key && options_.idempotency) {
    std::string owned(*key);
    co_return co_await run_idempotent(r, c, owned);
  }
  co_return co_await r.run(c);
}

std::optional<http::response> router::builtin(const call& c, const std::string& path) {
  if (c.request.method != "GET" && c.request.method != "HEAD") return std::nullopt;
  if (path == "healthz" || path == "livez") return http::response(200, "text/plain; charset=utf-8", "ok\n");
  if (path == "metrics" && options_.stats)
    return http::response(200, "text/plain; version=0.0.4; charset=utf-8", options_.stats->expose());
  if (path == "openapi.json") return http::response(200, "application/json", json::write(openapi()));
  if (path == "docs") {
    http::response page(200, "text/html; charset=utf-8", docs_page(options_.title));
    page.headers.set("Content-Security-Policy",
                     "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'");
    return page;
  }
  return std::nullopt;
}

task<http::response> router::dispatch(call& c) {
  KUBEOPERA_CO_TRY(auto target, http::parse_target(c.request.target));
  KUBEOPERA_CO_CHECK(check_single(c.request.headers));
  c.query = std::move(target.query);
  if (target.segments.size() == 1) {
    c.route = "/" + target.segments[0];
    bool reads = c.request.method == "GET" || c.request.method == "HEAD";
    if (target.segments[0] == "readyz" && reads) co_return co_await ready_.answer();
    if (auto r = builtin(c, target.segments[0])) co_return std::move(*r);
    c.route.clear();
  }
  auto m = find(target.segments, c.request.method, c);
  if (!m.path_exists) co_return no_such_path();
  if (!m.row) {
    auto r = problem_response(error(errc::invalid_argument, "MethodNotAllowed", "this path takes " + m.allow), c.request_id);
    r.headers.set("Allow", m.allow);
    co_return std::move(r);
  }
  c.route = m.row->path;
  co_return co_await run_route(*m.row, c);
}

asio::awaitable<http::response> router::handle(http::request req) {
  call c;
  c.request = std::move(req);
  auto given = c.request.headers.get("X-Request-Id");
  c.request_id = given && sane_request_id(*given) ? std::string(*given) : make_uuid_v7(*options_.clk);
  c.trace = trace_of(c.request.headers);
  telemetry::exchange watched(telemetry_, c);
  auto reply = co_await dispatch(c);
  http::response out;
  std::optional<error> why;
  if (reply) {
    out = std::move(*reply);
  } else {
    why = reply.error();
    out = problem_response(*why, c.request_id);
  }
  out.headers.set("X-Request-Id", c.request_id);
  out.headers.set("traceparent", c.trace.header());
  out.headers.set("X-Content-Type-Options", "nosniff");
  watched.finish(out, why);
  co_return out;
}

http::handler router::handler() {
  return [this](http::request req) { return handle(std::move(req)); };
}

json::object router::openapi() const { return openapi_document(options_, rows_); }

}  // namespace kubeopera::inline v1::web
