// Routing and answering at the front door.
#include "src/testing/world_front_door.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing {

namespace {

bool host_fits(std::string_view rule, std::string_view host) {
  if (rule.empty() || rule == host) return true;
  if (!rule.starts_with("*.")) return false;
  auto dot = host.find('.');
  return dot != std::string_view::npos && dot > 0 && host.substr(dot) == rule.substr(1);
}

// How well a path rule fits: 0 not at all; exact beats any prefix.
std::size_t path_fit(std::string_view type, std::string_view rule, std::string_view path) {
  if (type == "Exact") return rule == path ? 1'000'000 : 0;
  if (rule.empty() || rule == "/") return 1;
  auto trimmed = rule.back() == '/' ? rule.substr(0, rule.size() - 1) : rule;
  if (!path.starts_with(trimmed)) return 0;
  if (path.size() > trimmed.size() && path[trimmed.size()] != '/') return 0;
  return 1 + trimmed.size();
}

http::response json_answer(int status, const json::object& body) {
  return http::response(status, "application/json", json::write_pretty(json::value(body)) + "\n");
}

http::response refuse(int status, std::string_view word, std::string message) {
  json::object o;
  o["error"] = word;
  o["message"] = std::move(message);
  return json_answer(status, o);
}

std::string lower_host(std::string_view authority) {
  std::string host(authority.substr(0, authority.rfind(':') == std::string_view::npos ? authority.size() : authority.rfind(':')));
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return host;
}

// What goes into a log line must not be able to begin another one.
std::string printable(std::string_view text) {
  std::string out;
  for (unsigned char c : text.substr(0, 300)) out += c < 0x20 || c == 0x7f || c == '"' ? '.' : static_cast<char>(c);
  return out;
}

http::response app_answer(const http::request& request, const backend& b, const std::string& host, const std::string& path) {
  bool text = request.headers.get("Accept").value_or("").find("text/plain") != std::string_view::npos;
  http::response out;
  if (text) {
    out = http::response(200, "text/plain; charset=utf-8",
                         "Hello from " + b.app + "\nimage: " + b.image + "\nversion: " + b.version + "\npod: " + b.pod +
                             "\npath: " + printable(path) + "\n");
  } else {
    json::object o;
    o["app"] = b.app;
    o["image"] = b.image;
    o["version"] = b.version;
    o["pod"] = b.pod;
    o["namespace"] = b.ns;
    o["host"] = host;
    o["method"] = request.method;
    o["path"] = path;
    o["message"] = "Hello from " + b.app;
    out = json_answer(200, o);
  }
  out.headers.set("X-App-Pod", b.pod);
  out.headers.set("X-App-Version", b.version);
  out.headers.set("Cache-Control", "no-store");
  return out;
}

}  // namespace

ingress_route find_route(const std::vector<std::shared_ptr<const json::object>>& ingresses, std::string_view host,
                         std::string_view path) {
  ingress_route best;
  std::size_t best_fit = 0;
  for (const auto& ingress : ingresses) {
    const auto* rules = json::get_array(*ingress, {"spec", "rules"});
    if (!rules) continue;
    for (const auto& rule : *rules) {
      auto rule_host = json::get_string(rule.as_object(), {"host"});
      if (rule_host.empty() || !host_fits(rule_host, host)) continue;
      best.found_host = true;
      const auto* paths = json::get_array(rule.as_object(), {"http", "paths"});
      if (!paths) continue;
      for (const auto& p : *paths) {
        const auto& o = p.as_object();
        auto fit = path_fit(json::get_string(o, {"pathType"}), json::get_string(o, {"path"}), path);
        auto service = json::get_string(o, {"backend", "service", "name"});
        if (fit <= best_fit || service.empty()) continue;
        best_fit = fit;
        best.found = true;
        best.ns = std::string(kube::namespace_of(*ingress));
        best.service = std::string(service);
      }
    }
  }
  return best;
}

bool terminates_tls(const std::vector<std::shared_ptr<const json::object>>& ingresses, std::string_view host) {
  for (const auto& ingress : ingresses) {
    const auto* all = json::get_array(*ingress, {"spec", "tls"});
    if (!all) continue;
    for (const auto& tls : *all) {
      const auto* hosts = json::get_array(tls.as_object(), {"hosts"});
      if (!hosts) continue;
      for (const auto& h : *hosts) {
        if (host_fits(json::as_view(h), host)) return true;
      }
    }
  }
  return false;
}

front_door::front_door(crypto::key_pair ca, std::string base_domain, clusters all)
    : ca_(std::move(ca)), base_domain_(std::move(base_domain)), all_(std::move(all)) {}

result<http::tls_identity> front_door::wildcard() {
  KUBEOPERA_TRY(auto made, crypto::issue_server(ca_, {"*." + base_domain_, base_domain_}));
  http::tls_identity identity(made.certificate, made.private_key);
  std::lock_guard lock(mutex_);
  wildcard_ = std::make_shared<const http::tls_identity>(identity);
  return identity;
}

bool front_door::served(std::string_view host) const {
  for (const auto& sim : all_()) {
    if (terminates_tls(sim->ingresses(), host)) return true;
  }
  return false;
}

std::shared_ptr<const http::tls_identity> front_door::identity(std::string_view sni) {
  auto below = "." + base_domain_;
  if (sni == base_domain_ ||
      (sni.ends_with(below) && sni.substr(0, sni.size() - below.size()).find('.') == std::string_view::npos)) {
    std::lock_guard lock(mutex_);
    return wildcard_;
  }
  if (!served(sni)) return nullptr;
  std::lock_guard lock(mutex_);
  auto& kept = identities_[std::string(sni)];
  if (kept) return kept;
  auto made = crypto::issue_server(ca_, {std::string(sni)});
  if (!made) return nullptr;
  kept = std::make_shared<const http::tls_identity>(made->certificate, made->private_key);
  return kept;
}

asio::awaitable<http::response> front_door::answer(http::request request) {
  auto host = lower_host(request.headers.get("Host").value_or(""));
  auto path = request.target.substr(0, request.target.find('?'));
  bool known_host = false;
  for (const auto& sim : all_()) {
    auto route = find_route(sim->ingresses(), host, path);
    known_host = known_host || route.found_host;
    if (!route.found) continue;
    auto ready = sim->backends(route.ns, route.service);
    if (ready.empty()) {
      auto r = refuse(503, "no-ready-endpoint", "Service " + route.ns + "/" + route.service + " has no ready endpoint");
      r.headers.set("Retry-After", "1");
      co_return r;
    }
    const auto& b = ready[turn_++ % ready.size()];
    auto out = app_answer(request, b, host, path);
    auto agent = printable(request.headers.get("User-Agent").value_or("-"));
    auto peer = request.peer.substr(0, request.peer.rfind(':'));
    sim->print(b.ns, b.pod,
               "level=info msg=request client=" + peer + " method=" + printable(request.method) + " path=\"" +
                   printable(request.target) + "\" status=200 bytes=" + std::to_string(out.body.size()) + " agent=\"" + agent +
                   "\"");
    co_return out;
  }
  if (known_host) co_return refuse(404, "no-route", "no Ingress of " + host + " has a rule for this path");
  co_return refuse(404, "unknown-host", "no Ingress has this host");
}

}  // namespace kubeopera::inline v1::testing
