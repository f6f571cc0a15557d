#include "server/app/serve.hpp"

#include "server/app/config.hpp"
#include "server/app/connections.hpp"
#include "server/app/migrations.hpp"
#include "server/app/platform.hpp"
#include "server/app/roles.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <csignal>
#include <thread>
#include <unistd.h>

namespace kubeopera::inline v1::app {
namespace {

task<surroundings> gather(asio::any_io_executor executor, const settings& s, const std::vector<std::string>& roles) {
  surroundings out;
  out.executor = executor;
  auto lvl = s.log_level == "debug"   ? level::debug
             : s.log_level == "warn"  ? level::warn
             : s.log_level == "error" ? level::error
                                      : level::info;
  out.log = make_json_logger(STDERR_FILENO, lvl);
  KUBEOPERA_CO_TRY(auto access, host_access(s));
  KUBEOPERA_CO_TRY(out.host, kube::make_client(executor, access));
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
    KUBEOPERA_CO_TRY(out.fleet_remote, co_await open_remote(executor, s, out.host, out.fleet_store, s.store_dir));
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
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of that write, not our end
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
