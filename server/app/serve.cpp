#include "server/app/serve.hpp"

#include "server/app/config.hpp"
#include "server/app/migrations.hpp"
#include "server/app/platform.hpp"
#include "server/app/roles.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/url.hpp>
#include <kubeopera/kube/kubeconfig.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kubeopera::inline v1::app {
namespace {

constexpr const char* account_dir = "/var/run/secrets/kubernetes.io/serviceaccount/";

result<std::string> slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return error(errc::failed_precondition, "FileNotFound", "cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The host cluster: the operator's kubeconfig, or the pod's own identity.
result<std::shared_ptr<kube::client>> host_client(asio::any_io_executor executor, const settings& s) {
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
    KUBEOPERA_TRY(auto token, slurp(std::string(account_dir) + "token"));
    access.token = secret(std::move(token));
  }
  return kube::make_client(std::move(executor), access);
}

// Credentials of the fleet repository: a Secret as Flux reads it (username, password; or identity, known_hosts).
// What comes out makes a new remote at each call.
task<std::function<std::unique_ptr<gitops::remote>()>> open_remote(asio::any_io_executor executor, const settings& s,
                                                                   std::shared_ptr<kube::client> host,
                                                                   std::shared_ptr<gitops::object_store> store) {
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
      path = s.store_dir + "/" + key;
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

task<surroundings> gather(asio::any_io_executor executor, const settings& s, const std::vector<std::string>& roles) {
  surroundings out;
  out.executor = executor;
  auto lvl = s.log_level == "debug"   ? level::debug
             : s.log_level == "warn"  ? level::warn
             : s.log_level == "error" ? level::error
                                      : level::info;
  out.log = make_json_logger(STDERR_FILENO, lvl);
  KUBEOPERA_CO_TRY(out.host, host_client(executor, s));
  out.database_url = s.database_url;
  crypto::jwt_options jwt;
  jwt.issuer = s.jwt_issuer;
  jwt.audience = s.jwt_audience;
  KUBEOPERA_CO_TRY(out.authenticate, make_authenticator(s.jwt_secret, jwt));
  out.system_namespace = s.system_namespace;
  out.apps_base_domain = s.apps_base_domain;
  out.probes.policy = probe_policy(s.probe_networks);
  out.delivery.fleet_url = s.flux_git_url;
  out.delivery.fleet_branch = s.flux_git_branch;
  out.delivery.fleet_secret_ref = s.flux_git_secret_ref;
  out.delivery.flux_interval = s.flux_interval;
  out.delivery.wildcard_tls_secret = s.apps_wildcard_secret;
  out.elect_leader = true;
  bool delivers = std::find(roles.begin(), roles.end(), "app-controller") != roles.end();
  if (delivers) {
    if (s.flux_git_url.empty())
      co_return error(errc::invalid_argument, "InvalidSettings", "FLUX_GIT_URL is required")
          .with_violation("FLUX_GIT_URL", "is required");
    KUBEOPERA_CO_TRY(out.fleet_store, gitops::open_store(s.store_dir + "/fleet.git"));
    KUBEOPERA_CO_TRY(out.fleet_remote, co_await open_remote(executor, s, out.host, out.fleet_store));
  }
  co_return std::move(out);
}

struct process {
  boost::asio::io_context io;
  boost::asio::signal_set signals{io, SIGINT, SIGTERM};
  std::unique_ptr<platform> running;
  bool stopped = false;
};

task<void> serve_all(process& p, settings s, std::vector<std::string> roles) {
  KUBEOPERA_CO_TRY(auto around, co_await gather(p.io.get_executor(), s, roles));
  auto log = around.log;
  KUBEOPERA_CO_TRY(p.running, platform::make(std::move(around), roles, s.listen_address, s.port));
  KUBEOPERA_CO_CHECK(co_await p.running->migrate());
  for (const auto& r : roles) log->info("serving", {{"role", r}, {"port", static_cast<long long>(p.running->port_of(r))}});
  if (p.stopped) co_return result<void>();
  co_return co_await p.running->run();
}

asio::awaitable<void> keep(process& p, task<void> work, result<void>& out) {
  out = co_await std::move(work);
  p.signals.cancel();
}

}  // namespace

result<void> run_serve(const serve_options& options) {
  KUBEOPERA_TRY(auto s, read_settings());
  process p;
  p.signals.async_wait([&p](boost::system::error_code ec, int) {
    if (ec) return;
    p.stopped = true;
    if (p.running) p.running->stop();
  });
  result<void> out = error();
  spawn(p.io.get_executor(), keep(p, serve_all(p, s, options.roles), out));
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(2u, std::thread::hardware_concurrency()); ++i) threads.emplace_back([&p] { p.io.run(); });
  p.io.run();
  for (auto& t : threads) t.join();
  return out;
}

namespace {

task<void> migrate_all(asio::any_io_executor executor, std::string url) {
  postgres::pool_options o;
  o.url = std::move(url);
  o.schema = find_role("api")->schema;
  auto pool = postgres::make_pool(executor, o);
  auto all = api_schema_migrations();
  KUBEOPERA_CO_CHECK(co_await postgres::migrate(*pool, o.schema, all));
  pool->close();
  co_return result<void>();
}

}  // namespace

result<void> run_migrate() {
  const char* url = std::getenv("DATABASE_URL");
  if (!url || !*url)
    return error(errc::invalid_argument, "InvalidSettings", "DATABASE_URL is required")
        .with_violation("DATABASE_URL", "is required");
  process p;
  result<void> out = error();
  spawn(p.io.get_executor(), keep(p, migrate_all(p.io.get_executor(), url), out));
  p.io.run();
  return out;
}

}  // namespace kubeopera::inline v1::app
