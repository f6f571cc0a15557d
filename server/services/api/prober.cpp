#include "server/services/api/prober.hpp"

#include <kubeopera/http/url.hpp>

namespace kubeopera::inline v1::api {
namespace {

constexpr std::size_t max_clients = 1000;

probe_result judge_response(const http::response& r, const std::string& host) {
  probe_result out;
  out.status = r.status;
  if (r.status >= 300 && r.status < 400) {
    auto to = r.headers.get("Location").value_or("");
    auto target = http::parse_url(to);
    if (!to.starts_with('/') && (!target || target->host != host)) {
      out.cause = "Redirected";
      out.message = "the address redirects to " + std::string(to.substr(0, 200));
      return out;
    }
  }
  // 401, 403 and 404 are the app's own answers; 5xx is not what a user wants to see.
  out.ok = r.status < 500;
  if (!out.ok) {
    out.cause = "HttpStatus";
    out.message = "the address answered with HTTP " + std::to_string(r.status);
  }
  return out;
}

}  // namespace

result<std::shared_ptr<http::transport>> prober::client_for(const std::string& origin) {
  std::lock_guard lock(mutex_);
  if (auto it = clients_.find(origin); it != clients_.end()) return it->second;
  http::client_options o(origin);
  o.tls.ca_pem = options_.ca_pem;
  o.connect_to = options_.connect_to;
  o.policy = options_.policy;
  o.connect_timeout = options_.timeout;
  o.response_timeout = options_.timeout;
  o.max_idle_connections = 0;  // each probe proves a new connection
  o.max_response_bytes = 256 << 10;
  KUBEOPERA_TRY(auto client, http::make_client(executor_, o));
  if (clients_.size() >= max_clients) clients_.clear();
  clients_[origin] = client;
  return client;
}

asio::awaitable<probe_result> prober::probe(std::string host, bool tls) {
  probe_result out;
  auto client = client_for((tls ? "https://" : "http://") + host);
  if (!client) {
    out.cause = client.error().reason();
    out.message = client.error().message();
    co_return out;
  }
  http::request req("GET", "/");
  req.headers.set("User-Agent", "kubeopera-probe");
  auto r = co_await (*client)->send(std::move(req));
  if (!r) {
    auto e = r.error();
    out.cause = e.code() == errc::deadline_exceeded ? "Timeout" : e.reason();
    out.message = e.message();
    if (e.code() == errc::too_large) out.ok = true;  // it answers, and much
    co_return out;
  }
  co_return judge_response(*r, host);
}

}  // namespace kubeopera::inline v1::api
