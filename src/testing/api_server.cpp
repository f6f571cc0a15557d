// The server's face: one function that takes a request through routing, authorization, faults and the verbs.
#include "src/testing/api_state.hpp"
#include "src/testing/api_strategy.hpp"

#include <kubeopera/json/write.hpp>

namespace kubeopera::inline v1::testing {

std::uint64_t api_faults::state::cut_count(const std::string& resource) const {
  std::lock_guard guard(mutex);
  std::uint64_t out = 0;
  for (const auto& key : {std::string(), resource}) {
    if (auto it = cuts.find(key); it != cuts.end()) out += it->second;
  }
  return out;
}

std::optional<api_fault> api_faults::state::match(const api::request& r) {
  std::lock_guard guard(mutex);
  for (auto it = rules.begin(); it != rules.end(); ++it) {
    auto fits = [](const std::string& want, const std::string& is) { return want.empty() || want == is; };
    if (!fits(it->verb, r.verb) || !fits(it->resource, r.plural) || !fits(it->ns, r.ns) || !fits(it->name, r.name)) continue;
    api_fault found = *it;
    if (it->times > 0 && --it->times == 0) rules.erase(it);
    return found;
  }
  return std::nullopt;
}

api_faults::api_faults() : state_(std::make_shared<state>()) {}
api_faults::~api_faults() = default;

void api_faults::inject(api_fault rule) {
  std::lock_guard guard(state_->mutex);
  if (rule.times != 0) state_->rules.push_back(std::move(rule));
}

void api_faults::clear() {
  std::lock_guard guard(state_->mutex);
  state_->rules.clear();
  state_->down = false;
}

void api_faults::set_down(bool down) {
  state_->down = down;
  if (down && state_->wake) state_->wake();
}

bool api_faults::down() const noexcept { return state_->down; }

void api_faults::cut_watches(const std::string& resource) {
  {
    std::lock_guard guard(state_->mutex);
    ++state_->cuts[resource];
  }
  if (state_->wake) state_->wake();
}

namespace api {
namespace {

void seed_object(server& s, const kind_info& kind, json::object o, const std::string& manager) {
  request r;
  r.manager = manager;
  default_object(kind, o);
  auto made = store_new(s, r, kind, std::move(o), false);
  // Somebody may have made it first; that is as good.
  static_cast<void>(made);
}

json::object named(const kind_info& kind, const std::string& ns, const std::string& name) {
  json::object o;
  o["kind"] = kind.kind;
  o["apiVersion"] = kind.api_version();
  auto& meta = json::ensure_object(o, "metadata");
  meta["name"] = name;
  if (!ns.empty()) meta["namespace"] = ns;
  return o;
}

void seed_namespace(server& s, const std::string& ns) {
  kind_ptr maps = builtin_kind("", "configmaps"), accounts = builtin_kind("", "serviceaccounts");
  json::object ca = named(*maps, ns, "kube-root-ca.crt");
  json::ensure_object(json::ensure_object(ca, "metadata"), "annotations")["kubernetes.io/description"] =
      "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
      "service IP or "
      "kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
  json::ensure_object(ca, "data")["ca.crt"] = s.options.cluster_ca;
  seed_object(s, *maps, std::move(ca), "kube-controller-manager");
  seed_object(s, *accounts, named(*accounts, ns, "default"), "kube-controller-manager");
}

void seed_cluster(server& s) {
  kind_ptr namespaces = builtin_kind("", "namespaces");
  for (const char* name : {"default", "kube-node-lease", "kube-public", "kube-system"}) {
    seed_object(s, *namespaces, named(*namespaces, "", name), "kube-apiserver");
    if (s.options.seed_namespaces) seed_namespace(s, name);
  }
}

outcome<http::response> dispatch(const server_ptr& s, request& r) {
  if (!r.kind) return serve_path(*s, r);
  if (!r.subresource.empty()) return serve_subresource(*s, r);
  if (r.verb == "get") return get_object(*s, r);
  if (r.verb == "list") return list_objects(*s, r);
  if (r.verb == "watch") return watch_objects(s, r);
  if (r.verb == "create") {
    auto out = create_object(*s, r);
    bool new_namespace = out && !r.dry_run && s->options.seed_namespaces && r.kind->is("", "namespaces");
    if (new_namespace) {
      std::vector<std::string> ignored;
      auto made = parse_body(r, *r.kind, ignored);
      std::string name(made && made->is_object() ? json::get_string(made->get_object(), {"metadata", "name"}) : "");
      if (!name.empty()) seed_namespace(*s, name);
    }
    return out;
  }
  if (r.verb == "update") return update_object(*s, r);
  if (r.verb == "patch") return patch_object(*s, r);
  if (r.verb == "delete") return delete_object(*s, r);
  return delete_collection(*s, r);
}

http::response with_warnings(http::response out, const request& r) {
  for (const auto& w : r.warnings) out.headers.add("Warning", "299 - " + go_quote(w));
  return out;
}

void remember(server& s, const request& r, int status) {
  if (s.options.call_log == 0) return;
  api_call c;
  c.verb = r.verb;
  c.group = r.group;
  c.resource = r.plural;
  c.subresource = r.subresource;
  c.ns = r.ns;
  c.name = r.name;
  c.user = r.user.name;
  c.method = r.raw.method;
  c.target = r.raw.target;
  c.status = status;
  std::lock_guard guard(s.calls_mutex);
  s.calls.push_back(std::move(c));
  while (s.calls.size() > s.options.call_log) s.calls.pop_front();
}

refusal fault_refusal(const api_fault& f) {
  refusal r(f.status, f.reason, f.message);
  r.retry_after = f.retry_after;
  return r;
}

asio::awaitable<http::response> serve(server_ptr s, http::request raw, std::optional<api_user> known) {
  request r;
  if (known) {
    r.user = std::move(*known);
  } else {
    auto who = authenticate(*s, raw);
    if (!who) co_return status_response(who.error());
    r.user = std::move(*who);
  }
  r.raw = std::move(raw);
  auto no = route(*s, r);
  if (!no || no->code == 405 || (no->code == 404 && !r.plural.empty() && !r.kind)) {
    if (auto denied = authorize(*s, r)) no = std::move(denied);
  }
  if (!no) no = check_options(r);
  if (!no) {
    if (auto fault = s->faults.shared()->match(r)) {
      if (fault->delay > duration::zero()) {
        auto slept = co_await s->options.time->sleep(fault->delay);
        if (!slept) co_return http::response(499);
      }
      if (fault->status > 0) no = fault_refusal(*fault);
    }
  }
  http::response out;
  if (no) {
    out = status_response(*no);
  } else if (r.subresource == "log") {
    remember(*s, r, 200);
    co_return co_await serve_log(s, std::move(r));
  } else {
    auto answer = dispatch(s, r);
    out = answer ? with_warnings(std::move(*answer), r) : status_response(answer.error());
  }
  remember(*s, r, out.status);
  co_return out;
}

// In process: a server that is down looks like a refused connection.
class server_transport final : public http::transport {
 public:
  server_transport(server_ptr s, std::shared_ptr<http::transport> inner) : server_(std::move(s)), inner_(std::move(inner)) {}
  task<http::response> send(http::request req, bool want_stream) override {
    if (server_->faults.down()) co_return error(errc::unavailable, "ConnectionRefused", "the API server is down");
    co_return co_await inner_->send(std::move(req), want_stream);
  }

 private:
  server_ptr server_;
  std::shared_ptr<http::transport> inner_;
};

refusal down() {
  refusal r(503, "ServiceUnavailable", "the server is currently unable to handle the request");
  r.retry_after = 1;
  return r;
}

asio::awaitable<http::response> serve_listener(server_ptr s, http::request raw) {
  if (s->faults.down()) co_return status_response(down());
  co_return co_await serve(s, std::move(raw), std::nullopt);
}

}  // namespace
}  // namespace api

api_server::state::state(api_server_options o) : options(std::move(o)), store(options.history) {
  table = std::make_shared<api::kind_table>(api::builtin_kinds());
  for (auto& [token, user] : options.tokens) tokens.emplace(token, user);
}

std::shared_ptr<const api::kind_table> api_server::state::kinds() const {
  std::shared_lock guard(mutex);
  return table;
}

void api_server::state::set_kinds(std::shared_ptr<const api::kind_table> next) {
  std::unique_lock guard(mutex);
  table = std::move(next);
}

api_server::api_server(api_server_options options) : state_(std::make_shared<state>(std::move(options))) {
  std::weak_ptr<state> weak = state_;
  state_->faults.shared()->wake = [weak] {
    if (auto s = weak.lock()) s->store.notify_all();
  };
  api::seed_cluster(*state_);
}

api_server::~api_server() = default;

http::handler api_server::handler() const {
  return [s = state_](http::request raw) { return api::serve_listener(s, std::move(raw)); };
}

std::shared_ptr<http::transport> api_server::transport(api_user user) const {
  auto inner = http::make_local_transport([s = state_, user](http::request raw) { return api::serve(s, std::move(raw), user); });
  return std::make_shared<api::server_transport>(state_, std::move(inner));
}

void api_server::set_log_source(api_log_source source) {
  std::unique_lock guard(state_->mutex);
  state_->log_source = std::move(source);
}

void api_server::add_token(std::string token, api_user user) {
  std::unique_lock guard(state_->mutex);
  state_->tokens[std::move(token)] = std::move(user);
}

void api_server::remove_token(const std::string& token) {
  std::unique_lock guard(state_->mutex);
  state_->tokens.erase(token);
}

api_faults& api_server::faults() noexcept { return state_->faults; }

std::vector<api_call> api_server::calls() const {
  std::lock_guard guard(state_->calls_mutex);
  return {state_->calls.begin(), state_->calls.end()};
}

void api_server::clear_calls() {
  std::lock_guard guard(state_->calls_mutex);
  state_->calls.clear();
}

std::uint64_t api_server::resource_version() const { return state_->store.current(); }

void api_server::compact() { state_->store.compact(); }

}  // namespace kubeopera::inline v1::testing
