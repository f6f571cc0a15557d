#include "server/app/platform.hpp"

#include "server/app/controllers.hpp"
#include "server/app/health.hpp"
#include "server/app/migrations.hpp"
#include "server/app/roles.hpp"
#include "server/app/self_metrics.hpp"
#include "server/services/api/app_secrets.hpp"
#include "server/services/api/service.hpp"
#include "server/services/app/service.hpp"

#include <kubeopera/events/outbox_table.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <algorithm>
#include <map>
#include <mutex>

namespace kubeopera::inline v1::app {

struct platform::state {
  surroundings s;
  std::vector<std::string> roles;
  std::string address;
  int port = 0;
  std::unique_ptr<control::manager> manager;
  std::shared_ptr<postgres::pool> pool;
  std::shared_ptr<api::store> store;
  std::shared_ptr<vcluster::resolver> resolver;
  std::unique_ptr<controllers> acting;
  std::function<void()> wake_outbox;
  std::vector<web::readiness_check> health;
  std::map<std::string, std::unique_ptr<web::router>> routers;
  mutable std::mutex mutex;
  std::map<std::string, int> ports;

  bool has(std::string_view role) const { return std::find(roles.begin(), roles.end(), role) != roles.end(); }
  result<void> wire();
  void wire_database();
  void wire_controllers();
  void wire_signals();
  void wire_api();
  result<void> wire_faces();
  web::router_options face_options(const role& r);
};

namespace {

task<void> serve(std::shared_ptr<http::server> server) { co_return co_await server->run(); }

}  // namespace

void platform::state::wire_database() {
  postgres::pool_options p;
  p.url = s.database_url;
  p.schema = find_role("api")->schema;
  p.size = 8;
  pool = postgres::make_pool(s.executor, p, *s.log, s.stats.get());
  if (s.wrap_pool) pool = s.wrap_pool(pool);
  store = std::make_shared<api::store>(pool);
  health.push_back(database_check(pool));
}

void platform::state::wire_controllers() {
  vcluster::resolver_options r;
  r.connect_to = s.connect_to;
  r.transport = s.vcluster_transport;
  r.time = s.clk;
  r.log = s.log.get();
  resolver = std::make_shared<vcluster::resolver>(s.executor, s.host, r);
  watch_resolver(*s.stats, resolver);
  controller_parts p;
  p.executor = s.executor;
  p.clk = s.clk;
  p.log = s.log.get();
  p.stats = s.stats.get();
  p.host = s.host;
  p.system_namespace = s.system_namespace;
  p.resolve = [by_secret = resolver](const vcluster::reference& which) { return by_secret->resolve(which); };
  if (has("api")) {
    p.rows = store;
    p.outbox = events::make_outbox_table(pool);
    p.outbox_lease = s.outbox_lease;
  }
  if (has("app-controller")) {
    p.make_committer = [this](std::function<result<void>()> may_push) {
      gitops::committer_options co;
      co.branch = s.delivery.fleet_branch;
      co.may_push = std::move(may_push);
      return gitops::make_committer(s.executor, s.fleet_store, s.fleet_remote(), co, *s.clk, *s.log, s.stats.get());
    };
    p.manifests = s.manifests ? s.manifests : app_service::make_local_client();
    p.delivery = s.delivery;
    p.delivery.apps_base_domain = s.apps_base_domain;
    p.elect_leader = s.elect_leader;
  }
  acting = std::make_unique<controllers>(std::move(p));
  watch_informer(*s.stats, acting->apps());
  watch_informer(*s.stats, acting->tenants());
  health.push_back(cluster_check(s.host, acting->apps()));
  if (!has("app-controller")) return;
  watch_committer(*s.stats, acting->committer());
  watch_deliveries(*s.stats, acting->deliveries());
  health.push_back(git_check(s.fleet_remote(), s.delivery.fleet_branch));
}

// Outbox rows that other processes wrote: they say so after their commit, on a channel named after the schema.
void platform::state::wire_signals() {
  auto channel = find_role("api")->schema + "_outbox";
  auto wake = acting->wake_outbox();
  auto signal = events::make_outbox_signal(pool, channel, *s.log);
  manager->add(control::group::http, "outbox signal", [signal] { return signal->run(); });
  auto listener = postgres::make_listener(s.executor, s.database_url, *s.log);
  listener->subscribe(channel, [wake, signal](std::string_view word) {
    if (!signal->own(word)) wake();
  });
  manager->add(control::group::http, "outbox listener", [listener] { return listener->run(); });
  wake_outbox = [wake, signal] {
    wake();
    signal->signal();
  };
}

void platform::state::wire_api() {
  manager->add(control::group::http, "secret sweep", [store = store, find = acting->lookup(), wait = s.reservation, log = s.log] {
    return api::sweep_app_secrets(store, find, wait, log);
  });
  api::live_options lo;
  lo.system_namespace = s.system_namespace;
  lo.apps_https_port = s.apps_https_port;
  auto live =
      std::make_shared<api::live>(s.host, acting->lookup(), std::make_shared<api::prober>(s.executor, s.probes), lo, *s.clk);
  api::api_options ao;
  ao.apps_base_domain = s.apps_base_domain;
  ao.apps_https_port = s.apps_https_port;
  ao.system_namespace = s.system_namespace;
  ao.reservation = s.reservation;
  auto service = std::make_shared<api::api_service>(store, live, s.host, ao, wake_outbox, *s.clk);
  auto o = face_options(*find_role("api"));
  o.idempotency = api::make_idempotency(pool, s.reservation);
  auto router = std::make_unique<web::router>(o);
  router->add(api::api_service::routes(service));
  routers["api"] = std::move(router);
}

web::router_options platform::state::face_options(const role& r) {
  web::router_options o;
  o.service = r.service;
  o.title = r.title;
  o.authenticate = s.authenticate;
  o.clk = s.clk;
  o.log = s.log.get();
  o.stats = s.stats.get();
  o.ready = health;  // of the process: what any of its roles needs
  return o;
}

result<void> platform::state::wire_faces() {
  int next = port;
  for (const auto& name : roles) {
    const auto* r = find_role(name);
    auto& router = routers[name];
    if (!router) {
      router = std::make_unique<web::router>(face_options(*r));
      if (name == "app") router->add(app_service::service::routes(std::make_shared<app_service::service>()));
    }
    http::server_options o;
    o.address = address;
    o.port = static_cast<std::uint16_t>(next < 0 ? 0 : next > 0 ? next : r->port);
    if (next > 0) next = -1;  // PORT is the first role's; the others take any free one
    KUBEOPERA_TRY(auto made, http::server::listen(s.executor, o, router->handler(), *s.log));
    std::shared_ptr<http::server> server = std::move(made);
    ports[name] = server->port();
    watch_server(*s.stats, r->service, server);
    manager->add(control::group::http, name + " http", [server] { return serve(server); });
  }
  return {};
}

result<void> platform::state::wire() {
  watch_process(*s.stats, web::router_options().version);
  if (has("api")) wire_database();
  wire_controllers();
  manager = std::make_unique<control::manager>(s.executor, control::manager_options(), *s.log);
  acting->add_to(*manager);
  if (has("api")) {
    wire_signals();
    wire_api();
  }
  return wire_faces();
}

platform::platform(std::unique_ptr<state> s) : state_(std::move(s)) {}
platform::~platform() = default;

result<std::unique_ptr<platform>> platform::make(surroundings s, std::vector<std::string> role_names, std::string listen_address,
                                                 int port) {
  for (const auto& name : role_names)
    if (!find_role(name)) return error(errc::invalid_argument, "UnknownRole", "there is no role named " + name);
  auto st = std::make_unique<state>();
  st->s = std::move(s);
  st->roles = std::move(role_names);
  st->address = std::move(listen_address);
  st->port = port;
  KUBEOPERA_CHECK(st->wire());
  return std::unique_ptr<platform>(new platform(std::move(st)));
}

task<void> platform::migrate() {
  if (!state_->pool) co_return result<void>();
  auto all = api_schema_migrations();
  KUBEOPERA_CO_CHECK(co_await postgres::migrate(*state_->pool, find_role("api")->schema, all));
  co_return result<void>();
}

task<void> platform::run() {
  kube::write_options o;
  o.force = true;
  auto ns = kube::make_object(kube::types::namespaces(), {"", state_->s.system_namespace});
  KUBEOPERA_CO_CHECK(co_await state_->s.host->apply(kube::types::namespaces(), ns, o));
  auto ended = co_await state_->manager->run();
  state_->acting->stop_watches();
  if (state_->pool) state_->pool->close();
  co_return ended;
}

void platform::stop() noexcept { state_->manager->stop(); }
bool platform::ready() const noexcept { return state_->manager->ready(); }
int platform::port_of(const std::string& role) const {
  auto it = state_->ports.find(role);
  return it == state_->ports.end() ? 0 : it->second;
}

}  // namespace kubeopera::inline v1::app
