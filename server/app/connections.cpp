#include "server/app/connections.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/url.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <sys/stat.h>

namespace kubeopera::inline v1::app {
namespace {

constexpr const char* account_dir = "/var/run/secrets/kubernetes.io/serviceaccount/";

}  // namespace

result<std::string> slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return error(errc::failed_precondition, "FileNotFound", "cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

result<kube::cluster_access> host_access(const settings& s) {
  kube::cluster_access access;
  if (!s.kubeconfig.empty()) {
    KUBEOPERA_TRY(auto text, slurp(s.kubeconfig));
    kube::kubeconfig_policy policy;
    policy.addresses = [](const http::ip_address&) { return result<void>(); };  // the operator's word
    KUBEOPERA_TRY(access, kube::read_kubeconfig(text, policy));
  } else {
    const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
    const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
    if (!host || !port)
      return error(errc::invalid_argument, "NoCluster", "set KUBECONFIG, or run inside a cluster")
          .with_violation("KUBECONFIG", "is required outside a cluster");
    access.host = host;
    access.port = static_cast<std::uint16_t>(std::strtoul(port, nullptr, 10));
    KUBEOPERA_TRY(access.ca_pem, slurp(std::string(account_dir) + "ca.crt"));
    access.token_file = std::string(account_dir) + "token";  // renewed by the kubelet while we run
    KUBEOPERA_TRY(auto token, slurp(access.token_file));
    if (token.empty()) return error(errc::failed_precondition, "NoToken", "there is no token in " + access.token_file);
  }
  return access;
}

task<std::function<std::unique_ptr<gitops::remote>()>> open_remote(asio::any_io_executor executor, const settings& s,
                                                                   std::shared_ptr<kube::client> host,
                                                                   std::shared_ptr<gitops::object_store> store,
                                                                   std::string key_dir) {
  std::function<std::unique_ptr<gitops::remote>()> make;
  std::map<std::string, std::string> credentials;
  if (!s.flux_git_secret_ref.empty()) {
    KUBEOPERA_CO_TRY(auto object, co_await host->get(kube::types::secrets(), {s.system_namespace, s.flux_git_secret_ref}));
    if (auto* data = json::get_object(object, {"data"}))
      for (const auto& m : *data) {
        KUBEOPERA_CO_TRY(credentials[std::string(m.key())], crypto::base64_decode(json::as_view(m.value())));
      }
  }
  if (s.flux_git_url.starts_with("ssh://")) {
    auto rest = s.flux_git_url.substr(6);
    auto slash = rest.find('/');
    auto authority = rest.substr(0, slash);
    gitops::ssh_options o;
    auto at = authority.find('@');
    o.user = at == std::string::npos ? "git" : authority.substr(0, at);
    auto place = at == std::string::npos ? authority : authority.substr(at + 1);
    auto colon = place.find(':');
    o.host = place.substr(0, colon);
    if (colon != std::string::npos) o.port = std::atoi(place.c_str() + colon + 1);
    o.path = slash == std::string::npos ? "/" : rest.substr(slash);
    auto keep = [&](const char* key, std::string& path) -> result<void> {
      path = key_dir + "/" + key;
      std::ofstream out(path, std::ios::binary);
      ::chmod(path.c_str(), 0600);
      out << credentials[key];
      if (!out) return error(errc::unavailable, "CannotWrite", "cannot write " + path);
      return {};
    };
    KUBEOPERA_CO_CHECK(keep("identity", o.identity_file));
    KUBEOPERA_CO_CHECK(keep("known_hosts", o.known_hosts_file));
    make = [=] { return gitops::make_ssh_remote(executor, o, store); };
    co_return make;
  }
  auto url = http::parse_url(s.flux_git_url);
  if (!url)
    co_return error(errc::invalid_argument, "InvalidSettings", "FLUX_GIT_URL must be an https:// or ssh:// URL")
        .with_violation("FLUX_GIT_URL", url.error().message());
  KUBEOPERA_CO_TRY(auto transport, http::make_client(executor, http::client_options(url->origin())));
  auto path = url->target, user = credentials["username"];
  secret password(credentials["password"]);
  make = [=] { return gitops::make_http_remote(transport, path, store, user, password); };
  co_return make;
}

}  // namespace kubeopera::inline v1::app
