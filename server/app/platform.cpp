#include "server/app/platform.hpp"

#include "server/app/health.hpp"
#include "server/app/migrations.hpp"
#include "server/app/roles.hpp"
#include "server/app/self_metrics.hpp"
#include "server/services/api/app_secrets.hpp"
#include "server/services/api/service.hpp"
#include "server/services/app/service.hpp"

#include <kubeopera/control/queue.hpp>
#include <kubeopera/core/id.hpp>
#include <kubeopera/core/wait.hpp>
#include <kubeopera/events/outbox.hpp>
#include <kubeopera/kube/lease.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <algorithm>
#include <atomic>
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
  std::shared_ptr<kube::informer> apps, tenants;
  std::shared_ptr<vcluster::resolver> resolver;
  std::shared_ptr<gitops::committer> committer;
  std::shared_ptr<app_controller::delivery_watch> deliveries;
  std::shared_ptr<control::queue> app_keys, reaper_keys;
  std::shared_ptr<events::outbox_relay> relay;
  std::function<void()> wake_outbox;
  std::vector<web::readiness_check> health;
  std::unique_ptr<kube::leader_elector> elector;
  notifier leading;  // one of the next two has changed
  std::atomic<bool> is_leading{false}, lead_is_over{false};
  std::map<std::string, std::unique_ptr<web::router>> routers;
  mutable std::mutex mutex;
  std::map<std::string, int> ports;

  bool has(std::string_view role) const { return std::find(roles.begin(), roles.end(), role) != roles.end(); }
  api::vcluster_lookup lookup();
  result<void> wire();
  void wire_informers();
  void wire_database();
  void wire_api();
  void wire_outbox(std::shared_ptr<api::resource_sync> sync);
  void wire_controller();
  void wire_election();
  task<void> elect();
  result<void> wire_faces();
  web::router_options face_options(const role& r);
};

namespace {

// An informer as a component that is ready once it has listed.
void add_informer(control::manager& m, std::string name, std::shared_ptr<kube::informer> informer) {
  m.add(
      control::group::caches, std::move(name), [informer] { return informer->run(); },
      [informer] { return informer->wait_synced(); });
}

task<std::shared_ptr<kube::client>> find_vcluster(std::shared_ptr<kube::informer> tenants, std::shared_ptr<kube::client> host,
                                                  std::shared_ptr<vcluster::resolver> resolver, std::string ns,
                                                  std::string name) {
  kube::object_key key{ns, name};
  auto known = tenants->get(key);
  kube::object resource;
  if (known && kube::condition_true(*known, "Ready") && !kube::being_deleted(*known)) {
    resource = *known;
  } else {
    auto read = co_await host->get(kube::types::kubeopera_tenants(), key);
    if (!read && read.error().code() == errc::not_found)
      co_return error(errc::not_found, "TenantNotFound", "there is no vCluster resource named " + name);
    if (!read) co_return read.error();
    resource = std::move(*read);
  }
  error waiting(errc::unavailable, "VClusterNotReady", "the vCluster " + name + " is being provisioned");
  waiting = std::move(waiting).with_retry_after(std::chrono::seconds(1));
  if (!kube::condition_true(resource, "Ready")) co_return waiting;
  auto which = vcluster::reference_of(resource);
  if (!which) co_return waiting;
  auto client = co_await resolver->resolve(*which);
  if (!client && client.error().reason() == "VClusterNotReady") co_return waiting;
  co_return std::move(client);
}

// Resources whose rows are gone or going: the reaper looks at each that was deleted on the cluster.
kube::informer_handler reap_handler(std::shared_ptr<control::queue> keys, std::string prefix) {
  kube::informer_handler h;
  h.deleted = [keys, prefix](const kube::object_ptr& o) { keys->add(prefix + std::string(kube::name_of(*o))); };
  return h;
}

task<void> deliver_row(std::shared_ptr<api::resource_sync> sync, std::shared_ptr<control::queue> reaper, events::outbox_row row) {
  bool is_app = row.topic == "app";
  result<api::remainder> left = is_app ? co_await sync->sync_app(row.aggregate) : co_await sync->sync_tenant(row.aggregate);
  if (!left) co_return left.error();
  // What goes away in its own time is watched by the reaper; the row has done its work.
  if (*left == api::remainder::waiting) reaper->add((is_app ? "app/" : "tenant/") + row.aggregate);
  co_return result<void>();
}

asio::awaitable<void> stand(kube::leader_elector* elector, kube::leader_body body) {
  auto ended = co_await elector->run(body);
  static_cast<void>(ended);  // the lead has ended, or it was cancelled
}

asio::awaitable<void> join(background& part) {
  auto joined = co_await part.join();
  static_cast<void>(joined);  // fails only where the waiting coroutine is cancelled; this one never is
}

task<void> serve(std::shared_ptr<http::server> server) { co_return co_await server->run(); }

}  // namespace

api::vcluster_lookup platform::state::lookup() {
  auto cache = tenants;
  auto host = s.host;
  auto by_secret = resolver;
  auto ns = s.system_namespace;
  return [cache, host, by_secret, ns](const std::string& name) { return find_vcluster(cache, host, by_secret, ns, name); };
}

void platform::state::wire_informers() {
  kube::informer_options o;
  o.ns = s.system_namespace;
  o.log = s.log.get();
  apps = std::make_shared<kube::informer>(s.host, kube::types::kubeopera_apps(), o);
  tenants = std::make_shared<kube::informer>(s.host, kube::types::kubeopera_tenants(), o);
  add_informer(*manager, "apps cache", apps);
  add_informer(*manager, "tenants cache", tenants);
  watch_informer(*s.stats, apps);
  watch_informer(*s.stats, tenants);
  health.push_back(cluster_check(s.host, apps));
  vcluster::resolver_options r;
  r.connect_to = s.connect_to;
  r.transport = s.vcluster_transport;
  r.time = s.clk;
  r.log = s.log.get();
  resolver = std::make_shared<vcluster::resolver>(s.executor, s.host, r);
  watch_resolver(*s.stats, resolver);
}

void platform::state::wire_database() {
  postgres::pool_options p;
  p.url = s.database_url;
  p.schema = find_role("api")->schema;
  p.size = 8;
  pool = postgres::make_pool(s.executor, p, *s.log, s.stats.get());
  if (s.wrap_pool) pool = s.wrap_pool(pool);
  health.push_back(database_check(pool));
}

void platform::state::wire_outbox(std::shared_ptr<api::resource_sync> sync) {
  events::relay_options ro;
  ro.lease = s.outbox_lease;
  auto keys = reaper_keys;
  events::outbox_sink sink = [sync, keys](const events::outbox_row& row) { return deliver_row(sync, keys, row); };
  relay = events::make_outbox_relay(s.executor, pool, sink, ro, *s.clk, *s.log, s.stats.get());
  auto running = relay;
  manager->add(control::group::http, "outbox relay", [running] { return running->run(); });
  // Rows that other processes wrote: they say so after their commit, on a channel named after the schema.
  auto channel = find_role("api")->schema + "_outbox";
  auto signal = events::make_outbox_signal(pool, channel, *s.log);
  manager->add(control::group::http, "outbox signal", [signal] { return signal->run(); });
  auto listener = postgres::make_listener(s.executor, s.database_url, *s.log);
  listener->subscribe(channel, [running, signal](std::string_view word) {
    if (!signal->own(word)) running->wake();
  });
  manager->add(control::group::http, "outbox listener", [listener] { return listener->run(); });
  wake_outbox = [running, signal] {
    running->wake();
    signal->signal();
  };
}

void platform::state::wire_api() {
  auto store = std::make_shared<api::store>(pool);
  auto sync = std::make_shared<api::resource_sync>(store, s.host, s.system_namespace);
  reaper_keys = std::make_shared<control::queue>("reaper", control::queue_options(), *s.clk, s.stats.get());
  apps->add_handler(reap_handler(reaper_keys, "app/"));
  tenants->add_handler(reap_handler(reaper_keys, "tenant/"));
  auto reaper = std::make_shared<control::controller>(s.executor, "reaper", reaper_keys, std::make_shared<api::row_reaper>(sync),
                                                      control::controller_options(), *s.clk, *s.log, s.stats.get());
  manager->add(control::group::http, reaper);
  auto seed_keys = reaper_keys;
  // Rows that were going away when the last process ended.
  manager->add(control::group::stores, "reaper seed", [store, seed_keys]() -> task<void> {
    while (true) {
      auto going = co_await store->deleting_keys();
      if (going) {
        for (const auto& key : *going) seed_keys->add(key);
      } else if (going.error().code() == errc::cancelled) {
        co_return going.error();
      }
      KUBEOPERA_CO_CHECK(co_await sleep_for(going ? std::chrono::minutes(5) : std::chrono::seconds(1)));
    }
  });
  manager->add(control::group::http, "secret sweep", [store, find = lookup(), wait = s.reservation, log = s.log] {
    return api::sweep_app_secrets(store, find, wait, log);
  });
  wire_outbox(sync);
  api::live_options lo;
  lo.system_namespace = s.system_namespace;
  lo.apps_https_port = s.apps_https_port;
  auto live = std::make_shared<api::live>(s.host, lookup(), std::make_shared<api::prober>(s.executor, s.probes), lo, *s.clk);
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

void platform::state::wire_controller() {
  gitops::committer_options co;
  co.branch = s.delivery.fleet_branch;
  committer = gitops::make_committer(s.executor, s.fleet_store, s.fleet_remote(), co, *s.clk, *s.log, s.stats.get());
  watch_committer(*s.stats, committer);
  health.push_back(git_check(s.fleet_remote(), co.branch));
  auto git = committer;
  manager->add(control::group::leader_elected, "committer", [git] { return git->run(); });
  app_keys = std::make_shared<control::queue>("app-controller", control::queue_options(), *s.clk, s.stats.get());
  auto keys = app_keys;
  auto wake = [keys](const std::string& key) { keys->add(key); };
  deliveries = std::make_shared<app_controller::delivery_watch>(s.executor, wake, *s.log);
  watch_deliveries(*s.stats, deliveries);
  kube::informer_handler h;
  h.added = [keys](const kube::object_ptr& o) { keys->add(kube::key_of(*o).str()); };
  h.updated = [keys](const kube::object_ptr& before, const kube::object_ptr& now) {
    // Our own status writes are no news.
    bool same =
        kube::generation_of(*before) == kube::generation_of(*now) && kube::being_deleted(*before) == kube::being_deleted(*now);
    if (!same || before == now) keys->add(kube::key_of(*now).str());
  };
  apps->add_handler(std::move(h));
  auto cache = apps;
  auto watch = deliveries;
  kube::informer_handler t;
  auto wake_tenant = [keys, cache](const kube::object_ptr& tenant) {
    for (const auto& app : cache->list())
      if (json::get_string(*app, {"spec", "tenant_ref"}) == kube::name_of(*tenant)) keys->add(kube::key_of(*app).str());
  };
  t.added = wake_tenant;
  t.updated = [wake_tenant](const kube::object_ptr& before, const kube::object_ptr& now) {
    if (kube::condition_true(*before, "Ready") != kube::condition_true(*now, "Ready")) wake_tenant(now);
  };
  t.deleted = [wake_tenant, watch](const kube::object_ptr& last) {
    watch->forget(std::string(kube::name_of(*last)));
    wake_tenant(last);
  };
  tenants->add_handler(std::move(t));
  auto options = s.delivery;
  options.system_namespace = s.system_namespace;
  options.apps_base_domain = s.apps_base_domain;
  auto manifests = s.manifests ? s.manifests : app_service::make_local_client();
  auto step =
      std::make_shared<app_controller::reconciler>(s.host, lookup(), manifests, committer, deliveries, options, *s.clk, *s.log);
  control::controller_options copt;
  copt.workers = 8;
  manager->add(control::group::leader_elected, std::make_shared<control::controller>(s.executor, "app-controller", app_keys, step,
                                                                                     copt, *s.clk, *s.log, s.stats.get()));
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

// The Lease lets one process run the controllers. Losing it ends this process, so that nothing of ours goes on acting.
void platform::state::wire_election() {
  kube::lease_options o;
  o.ns = s.system_namespace;
  o.name = "kubeopera-app-controller";
  o.identity = make_uuid_v7(*s.clk);
  o.time = s.clk;
  o.log = s.log.get();
  auto made = kube::leader_elector::make(s.host, o);
  if (!made) throw std::logic_error(to_string(made.error()));
  elector = std::move(*made);
  manager->add(control::group::caches, "election", [this] { return elect(); });
}

// Leads at most once: what starts again after that starts from nothing.
task<void> platform::state::elect() {
  kube::leader_body body = [this](std::int64_t) -> asio::awaitable<void> {
    is_leading = true;
    leading.notify();
    auto ended = co_await sleep_for(std::chrono::hours(24 * 365));
    static_cast<void>(ended);
    is_leading = false;
    lead_is_over = true;
    leading.notify();
  };
  auto candidacy = background::start(s.executor, stand(elector.get(), body));
  result<void> waited;
  while (waited && !lead_is_over) {
    auto ticket = leading.ticket();
    if (lead_is_over) break;
    waited = co_await leading.wait(ticket);
  }
  candidacy.stop();
  co_await uncancelled(join(candidacy));
  if (!waited) co_return waited.error();
  co_return error(errc::unavailable, "LeadershipLost", "another process leads now");
}

result<void> platform::state::wire() {
  control::manager_options mo;
  if (s.elect_leader && has("app-controller")) {
    mo.leader_gate = [this]() -> task<void> {
      while (true) {
        auto ticket = leading.ticket();
        if (is_leading) co_return result<void>();
        KUBEOPERA_CO_CHECK(co_await leading.wait(ticket));
      }
    };
  }
  manager = std::make_unique<control::manager>(s.executor, mo, *s.log);
  watch_process(*s.stats, web::router_options().version);
  if (has("api")) wire_database();
  wire_informers();
  if (has("app-controller")) {
    if (s.elect_leader) wire_election();
    wire_controller();
  }
  if (has("api")) wire_api();
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
  if (state_->deliveries) state_->deliveries->stop();
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
