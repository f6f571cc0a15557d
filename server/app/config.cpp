#include "server/app/config.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace kubeopera::inline v1::app {
namespace {

void take(std::string& out, const char* name) {
  if (const char* v = std::getenv(name); v && *v) out = v;
}

std::vector<http::network> take_networks(const char* name, std::vector<violation>& bad) {
  std::string all;
  take(all, name);
  std::vector<http::network> out;
  for (std::string_view rest = all; !rest.empty();) {
    auto one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    auto network = http::parse_network(one);
    if (network)
      out.push_back(*network);
    else
      bad.push_back({name, "must be networks like 10.1.0.0/16, joined by commas"});
  }
  return out;
}

}  // namespace

settings collect_settings(std::vector<violation>& bad) {
  settings s;
  take(s.database_url, "DATABASE_URL");
  std::string key;
  take(key, "AUTH_JWT_ACCESS_SECRET");
  s.jwt_secret = secret(std::move(key));
  take(s.jwt_issuer, "AUTH_JWT_ISSUER");
  take(s.jwt_audience, "AUTH_JWT_AUDIENCE");
  take(s.flux_git_url, "FLUX_GIT_URL");
  take(s.flux_git_branch, "FLUX_GIT_BRANCH");
  take(s.flux_git_secret_ref, "FLUX_GIT_SECRET_REF");
  take(s.flux_interval, "FLUX_INTERVAL");
  take(s.apps_base_domain, "APPS_BASE_DOMAIN");
  take(s.apps_wildcard_secret, "APPS_WILDCARD_TLS_SECRET");
  take(s.kubeconfig, "KUBECONFIG");
  take(s.system_namespace, "KUBEOPERA_NAMESPACE");
  take(s.store_dir, "KUBEOPERA_STORE_DIR");
  take(s.listen_address, "LISTEN_ADDRESS");
  take(s.log_level, "LOG_LEVEL");
  s.probe_networks = take_networks("APPS_PROBE_NETWORKS", bad);
  take(s.broker_url, "RABBITMQ_URL");
  if (s.database_url.empty()) bad.push_back({"DATABASE_URL", "is required"});
  if (s.jwt_secret.empty()) bad.push_back({"AUTH_JWT_ACCESS_SECRET", "is required"});
  std::string port;
  take(port, "PORT");
  if (!port.empty()) {
    auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), s.port);
    if (ec != std::errc() || end != port.data() + port.size() || s.port < 1 || s.port > 65535)
      bad.push_back({"PORT", "must be a port number"});
  }
  if (s.log_level != "debug" && s.log_level != "info" && s.log_level != "warn" && s.log_level != "error")
    bad.push_back({"LOG_LEVEL", "must be debug, info, warn or error"});
  return s;
}

result<settings> read_settings() {
  std::vector<violation> bad;
  auto s = collect_settings(bad);
  if (bad.empty()) return s;
  std::string text = "the environment is not complete:";
  for (const auto& v : bad) text += " " + v.pointer + " " + v.message + ";";
  return error(errc::invalid_argument, "InvalidSettings", text).with_violations(std::move(bad));
}

http::address_policy probe_policy(std::vector<http::network> allowed) {
  return
      [allowed = std::move(allowed), elsewhere = http::public_internet_only()](const http::ip_address& address) -> result<void> {
        for (const auto& network : allowed)
          if (network.contains(address)) return {};
        return elsewhere(address);
      };
}

}  // namespace kubeopera::inline v1::app
