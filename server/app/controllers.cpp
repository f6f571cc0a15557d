#include "server/app/controllers.hpp"

#include "server/services/app_controller/step.hpp"

#include <kubeopera/control/queue.hpp>
#include <kubeopera/core/id.hpp>
#include <kubeopera/core/wait.hpp>
#include <kubeopera/kube/gated_client.hpp>

#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::app {

struct controllers::state {
  explicit state(controller_parts given) : p(std::move(given)) {}
  controller_parts p;
  std::shared_ptr<kube::informer> apps, tenants;
  std::shared_ptr<control::queue> app_keys, reaper_keys;
  std::shared_ptr<api::resource_sync> sync;
  std::shared_ptr<app_controller::delivery_watch> deliveries;
  std::shared_ptr<events::outbox_relay> relay;
  std::shared_ptr<kube::leader_elector> elector;
  std::shared_ptr<gitops::committer> committer;
  std::shared_ptr<control::controller> app_controller;
  std::optional<error> stopped_leading;  // why the lead has ended, once it has
  notifier led;

  kube::informer_options informer_options() const;
  control::queue_options queue_options() const;
  void wire_informers();
  void wire_api();
  void wire_controller();
  void wire_election();
  std::function<result<void>()> may_act() const;
};

namespace {

using state_ptr = std::shared_ptr<controllers::state>;

task<std::shared_ptr<kube::client>> find_vcluster(state_ptr s, std::string name) {
  kube::object_key key{s->p.system_namespace, name};
  auto known = s->tenants->get(key);
  kube::object resource;
  if (known && kube::condition_true(*known, "Ready") && !kube::being_deleted(*known)) {
    resource = *known;
  } else {
    auto read = co_await s->p.host->get(kube::types::kubeopera_tenants(), key);
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
  auto client = co_await s->p.resolve(*which);
  if (!client && client.error().reason() == "VClusterNotReady") co_return waiting;
  co_return std::move(client);
}

// An informer as a component that is ready once it has listed.
void add_informer(control::manager& m, std::string name, std::shared_ptr<kube::informer> informer) {
  m.add(
      control::group::caches, std::move(name), [informer] { return informer->run(); },
      [informer] { return informer->wait_synced(); });
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

// Apps on the cluster whose rows have gone, as far as the cache knows.
task<void> seed_orphans(std::shared_ptr<api::row_source> rows, std::shared_ptr<control::queue> keys,
                        std::shared_ptr<kube::informer> apps) {
  constexpr std::size_t at_once = 1000;
  std::map<std::string, std::string> resource_of;
  std::vector<std::string> ids;
  auto all = apps->list();
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto id = std::string(json::get_string(*all[i], {"spec", "app_id"}));
    resource_of[id] = std::string(kube::name_of(*all[i]));
    ids.push_back(std::move(id));
    if (ids.size() < at_once && i + 1 < all.size()) continue;
    KUBEOPERA_CO_TRY(auto deleted, co_await rows->deleted_apps(std::exchange(ids, {})));
    for (const auto& gone : deleted) keys->add("app/" + resource_of[gone]);
  }
  co_return result<void>();
}

// What the reaper looks at without being told: rows that were going away when the last process ended, resources without rows.
task<void> seed_reaper(std::shared_ptr<api::row_source> rows, std::shared_ptr<control::queue> keys,
                       std::shared_ptr<kube::informer> apps, clock& clk) {
  while (true) {
    auto going = co_await rows->deleting_keys();
    if (!going && going.error().code() == errc::cancelled) co_return going.error();
    if (going)
      for (const auto& key : *going) keys->add(key);
    auto orphans = co_await seed_orphans(rows, keys, apps);
    if (!orphans && orphans.error().code() == errc::cancelled) co_return orphans.error();
    bool all = going && orphans;
    KUBEOPERA_CO_CHECK(co_await clk.sleep(all ? std::chrono::minutes(1) : std::chrono::seconds(1)));
  }
}

task<std::shared_ptr<kube::client>> find_gated(app_controller::vcluster_lookup find, std::function<result<void>()> gate,
                                               std::string name) {
  KUBEOPERA_CO_TRY(auto found, co_await find(name));
  co_return kube::make_gated_client(std::move(found), std::move(gate));
}

app_controller::vcluster_lookup gated(app_controller::vcluster_lookup find, std::function<result<void>()> gate) {
  return [find = std::move(find), gate = std::move(gate)](const std::string& name) { return find_gated(find, gate, name); };
}

// Which changes of a KubeOperaApp are news to its controller: not its own last word. A status that says it is still at work is
// news even so: the word may be a late one of a process that is no more.
kube::informer_handler app_handler(std::shared_ptr<control::queue> keys) {
  kube::informer_handler h;
  h.added = [keys](const kube::object_ptr& o) { keys->add(kube::key_of(*o).str()); };
  h.updated = [keys](const kube::object_ptr& before, const kube::object_ptr& now) {
    bool same =
        kube::generation_of(*before) == kube::generation_of(*now) && kube::being_deleted(*before) == kube::being_deleted(*now);
    bool at_work = json::get_string(*now, {"status", "phase"}) == "Delivering";
    if (!same || at_work || before == now) keys->add(kube::key_of(*now).str());
  };
  return h;
}

// A vCluster that comes, becomes ready or goes wakes its apps.
kube::informer_handler tenant_handler(std::shared_ptr<control::queue> keys, std::shared_ptr<kube::informer> apps,
                                      std::shared_ptr<app_controller::delivery_watch> watch) {
  auto wake = [keys, apps](const kube::object_ptr& tenant) {
    for (const auto& app : apps->list())
      if (json::get_string(*app, {"spec", "tenant_ref"}) == kube::name_of(*tenant)) keys->add(kube::key_of(*app).str());
  };
  kube::informer_handler h;
  h.added = wake;
  h.updated = [wake](const kube::object_ptr& before, const kube::object_ptr& now) {
    if (kube::condition_true(*before, "Ready") != kube::condition_true(*now, "Ready")) wake(now);
  };
  h.deleted = [wake, watch](const kube::object_ptr& last) {
    watch->forget(std::string(kube::name_of(*last)));
    wake(last);
  };
  return h;
}

// What only one process may run.
task<void> act(state_ptr s) {
  std::optional<result<void>> committed, reconciled;
  auto git = kubeopera::detail::capture<void>(s->committer->run(), committed);
  auto steps = kubeopera::detail::capture<void>(s->app_controller->run(), reconciled);
  co_await first_of(std::move(git), std::move(steps));
  if (committed && !*committed && committed->error().code() != errc::cancelled) co_return committed->error();
  if (reconciled && !*reconciled && reconciled->error().code() != errc::cancelled) co_return reconciled->error();
  co_return error(errc::cancelled, "Cancelled", "the app-controller was stopped");
}

asio::awaitable<void> lead(state_ptr s) {
  auto ended = co_await act(s);
  s->stopped_leading = std::move(ended).error();
  s->led.notify();
}

asio::awaitable<void> stand(state_ptr s) {
  kube::leader_body body = [s](std::int64_t) { return lead(s); };
  auto r = co_await s->elector->run(body);
  static_cast<void>(r);  // it ends because the lead has ended, or cancelled
}

asio::awaitable<void> until_led(state_ptr s) {
  while (true) {
    auto ticket = s->led.ticket();
    if (s->stopped_leading) co_return;
    if (auto waited = co_await s->led.wait(ticket); !waited) co_return;
  }
}

// Leads at most once: the elector cancels the work at once when the lead is lost, and then this ends with an error, and with it
// the process. What starts again starts from nothing.
task<void> elect(state_ptr s) {
  co_await first_of(stand(s), until_led(s));
  if (co_await kubeopera::detail::cancelled()) co_return error(errc::cancelled, "Cancelled", "the election was stopped");
  if (s->stopped_leading && s->stopped_leading->code() != errc::cancelled) co_return *s->stopped_leading;
  co_return error(errc::unavailable, "LeadershipLost", "another process leads now");
}

}  // namespace

kube::informer_options controllers::state::informer_options() const {
  kube::informer_options o;
  o.ns = p.system_namespace;
  o.time = p.clk;
  o.random = p.random;
  o.log = p.log;
  return o;
}

control::queue_options controllers::state::queue_options() const {
  control::queue_options o;
  o.random = p.random;
  return o;
}

void controllers::state::wire_informers() {
  apps = std::make_shared<kube::informer>(p.host, kube::types::kubeopera_apps(), informer_options());
  tenants = std::make_shared<kube::informer>(p.host, kube::types::kubeopera_tenants(), informer_options());
}

void controllers::state::wire_api() {
  reaper_keys = std::make_shared<control::queue>("reaper", queue_options(), *p.clk, p.stats);
  apps->add_handler(reap_handler(reaper_keys, "app/"));
  tenants->add_handler(reap_handler(reaper_keys, "tenant/"));
  sync = std::make_shared<api::resource_sync>(p.rows, p.host, p.system_namespace, *p.clk);
  events::relay_options o;
  o.lease = p.outbox_lease;
  o.random = p.random;
  auto keys = reaper_keys;
  events::outbox_sink sink = [sync = sync, keys](const events::outbox_row& row) { return deliver_row(sync, keys, row); };
  relay = events::make_outbox_relay(p.executor, p.outbox, sink, o, *p.clk, *p.log, p.stats);
}

void controllers::state::wire_controller() {
  app_keys = std::make_shared<control::queue>("app-controller", queue_options(), *p.clk, p.stats);
  auto keys = app_keys;
  auto wake = [keys](const std::string& key) { keys->add(key); };
  auto settled = [cache = apps](const std::string& key) {
    auto slash = key.find('/');
    if (slash == std::string::npos) return false;
    auto app = cache->get({key.substr(0, slash), key.substr(slash + 1)});
    return app && app_controller::is_delivered(*app);
  };
  deliveries = std::make_shared<app_controller::delivery_watch>(p.executor, wake, settled, informer_options());
  apps->add_handler(app_handler(app_keys));
  tenants->add_handler(tenant_handler(app_keys, apps, deliveries));
  if (p.elect_leader) wire_election();
  committer = p.make_committer(may_act());
}

// Nothing is written once the lead has ended, not even by a process that stood still and goes on where it was.
std::function<result<void>()> controllers::state::may_act() const {
  return [leader = elector]() -> result<void> {
    if (!leader || leader->leading()) return {};
    return error(errc::cancelled, "NotLeading", "this process does not lead any more");
  };
}

void controllers::state::wire_election() {
  auto o = p.lease;
  o.ns = p.system_namespace;
  o.name = "kubeopera-app-controller";
  o.identity = make_uuid_v7(*p.clk);
  o.time = p.clk;
  o.random = p.random;
  o.log = p.log;
  auto made = kube::leader_elector::make(p.host, o);
  if (!made) throw std::logic_error(to_string(made.error()));
  elector = std::move(*made);
}

controllers::controllers(controller_parts parts) : state_(std::make_shared<state>(std::move(parts))) {
  state_->wire_informers();
  if (state_->p.rows) state_->wire_api();
  if (state_->p.make_committer) state_->wire_controller();
}

// The controller's reconciler finds vClusters through the state that holds the controller.
controllers::~controllers() { state_->app_controller.reset(); }

void controllers::add_to(control::manager& m) {
  auto s = state_;
  auto& p = s->p;
  add_informer(m, "apps cache", s->apps);
  add_informer(m, "tenants cache", s->tenants);
  if (p.rows) {
    m.add(control::group::http,
          std::make_shared<control::controller>(p.executor, "reaper", s->reaper_keys, std::make_shared<api::row_reaper>(s->sync),
                                                control::controller_options(), *p.clk, *p.log, p.stats));
    m.add(control::group::stores, "reaper seed", [s] { return seed_reaper(s->p.rows, s->reaper_keys, s->apps, *s->p.clk); });
    m.add(control::group::http, "outbox relay", [s] { return s->relay->run(); });
  }
  if (!s->committer) return;
  auto options = p.delivery;
  options.system_namespace = p.system_namespace;
  auto step =
      std::make_shared<app_controller::reconciler>(kube::make_gated_client(p.host, s->may_act()), gated(lookup(), s->may_act()),
                                                   p.manifests, s->committer, s->deliveries, options, *p.clk, *p.log);
  control::controller_options o;
  o.workers = 8;
  s->app_controller =
      std::make_shared<control::controller>(p.executor, "app-controller", s->app_keys, step, o, *p.clk, *p.log, p.stats);
  m.add(control::group::leader_elected, "app-controller", [s] { return s->elector ? elect(s) : act(s); });
}

app_controller::vcluster_lookup controllers::lookup() const {
  return [s = state_](const std::string& name) { return find_vcluster(s, name); };
}
std::shared_ptr<kube::informer> controllers::apps() const { return state_->apps; }
std::shared_ptr<kube::informer> controllers::tenants() const { return state_->tenants; }
std::shared_ptr<gitops::committer> controllers::committer() const { return state_->committer; }
std::shared_ptr<app_controller::delivery_watch> controllers::deliveries() const { return state_->deliveries; }

std::function<void()> controllers::wake_outbox() const {
  return [relay = state_->relay] {
    if (relay) relay->wake();
  };
}

void controllers::stop_watches() {
  if (state_->deliveries) state_->deliveries->stop();
}

}  // namespace kubeopera::inline v1::app
