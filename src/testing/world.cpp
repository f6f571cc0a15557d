// The world: host cluster, tenants' clusters, front door, and how to reach them.
#include "src/testing/world_front_door.hpp"
#include "src/testing/world_tenant.hpp"

#include <kubeopera/core/wait.hpp>
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/testing/world.hpp>

#include <boost/asio/strand.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace kubeopera::inline v1::testing {

using namespace std::chrono_literals;

struct world::state {
  state(asio::any_io_executor e, world_options o, clock& c, logger& l)
      : executor(std::move(e)), options(std::move(o)), time(c), log(l) {}
  asio::any_io_executor executor;
  world_options options;
  clock& time;
  logger& log;
  std::shared_ptr<cluster> host;
  vcluster_table table;
  crypto::key_pair apps_ca;
  std::shared_ptr<front_door> door;
  std::unique_ptr<http::server> front, plain;
  std::unique_ptr<sim::environment> env;
  std::unique_ptr<sim::engine> loop;
  std::atomic<bool> started{false};
  notifier changed;
};

namespace {

std::uint16_t remembered_port(const std::string& file) {
  auto text = read_file(file);
  unsigned port = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), port);
  return port < 65'536 ? static_cast<std::uint16_t>(port) : 0;
}

// Listens on the wanted port, or on that of the last start, or on any.
result<std::unique_ptr<http::server>> listen_again(world::state& s, std::uint16_t wanted, const std::string& name,
                                                   std::shared_ptr<const http::server_tls> tls, http::handler handler) {
  auto file = s.options.directory + "/" + name + ".port";
  http::server_options o;
  o.address = s.options.address;
  o.tls = std::move(tls);
  o.port = wanted != 0 ? wanted : remembered_port(file);
  o.drain_timeout = 200ms;
  o.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(4u << 20); };
  auto made = http::server::listen(s.executor, o, handler, s.log);
  if (!made && wanted == 0 && o.port != 0) {
    o.port = 0;
    made = http::server::listen(s.executor, o, handler, s.log);
  }
  if (!made) return made.error();
  KUBEOPERA_CHECK(write_file(file, std::to_string((*made)->port())));
  return made;
}

bool is_loopback_name(std::string_view authority) {
  auto host = authority.substr(0, authority.rfind(':'));
  return host == "127.0.0.1" || host == "localhost";
}

asio::awaitable<http::response> plain_answer(http::handler inner, std::string token, http::request request) {
  // A web page must not be able to use this door: no foreign name, no Origin.
  if (!is_loopback_name(request.headers.get("Host").value_or("")) || request.headers.get("Origin")) {
    co_return http::response(403, "text/plain", "this address is for programs of this machine only\n");
  }
  if (!request.headers.get("Authorization")) request.headers.set("Authorization", "Bearer " + token);
  co_return co_await inner(std::move(request));
}

asio::awaitable<http::response> door_answer(std::shared_ptr<front_door> door, http::request request) {
  co_return co_await door->answer(std::move(request));
}

result<void> open_front_door(world::state& s) {
  KUBEOPERA_TRY(s.apps_ca, stored_ca(s.options.directory, "apps-ca", "kubeopera apps CA"));
  auto* raw = &s;
  s.door = std::make_shared<front_door>(s.apps_ca, s.options.base_domain, [raw] {
    std::vector<std::shared_ptr<simulator>> out;
    for (const auto& [c, ns] : raw->table.all()) out.push_back(c->sim);
    out.push_back(raw->host->sim);
    return out;
  });
  auto tls = std::make_shared<http::server_tls>();
  KUBEOPERA_TRY(tls->identity, s.door->wildcard());
  auto door = s.door;
  tls->by_name = [door](std::string_view sni) { return door->identity(sni); };
  KUBEOPERA_TRY(s.front, listen_again(s, s.options.front_port, "front", tls,
                                      [door](http::request r) { return door_answer(door, std::move(r)); }));
  return {};
}

result<void> open_host(world::state& s, const std::string& token) {
  cluster_options o;
  o.name = "host";
  o.directory = s.options.directory + "/host";
  o.address = s.options.address;
  o.port = s.options.host_port;
  o.svc_host = "kubernetes.default.svc";
  o.flux = s.options.host_flux;
  o.persist = s.options.persist;
  o.simulation = s.options.simulation;
  o.tokens = s.options.tokens;
  o.tokens[token] = api_user("kubernetes-admin", {"system:masters"});
  KUBEOPERA_TRY(s.host, cluster::open(s.executor, std::move(o), s.time, s.log));
  return {};
}

task<void> install_crds(world::state& s) {
  auto client = s.host->admin_client;
  for (const auto& crd : s.options.crds) {
    kube::write_options w;
    w.field_manager = "kubeopera";
    w.force = true;
    auto made = co_await client->apply(kube::types::custom_resource_definitions(), crd, w);
    if (!made) co_return made.error();
    auto key = kube::key_of(*made);
    for (int tries = 0;; ++tries) {
      auto now = co_await client->get(kube::types::custom_resource_definitions(), key);
      if (!now) co_return now.error();
      if (kube::condition_true(*now, "Established")) break;
      if (tries > 500) co_return error(errc::unavailable, "NotEstablished", key.name + " is not established");
      KUBEOPERA_CO_CHECK(co_await sleep_for(10ms));
    }
  }
  co_return result<void>();
}

asio::awaitable<void> serve(http::server* server) {
  auto ended = co_await server->run();
  (void)ended;  // only ever cancelled
}

asio::awaitable<void> run_tenants(world::state* s) {
  auto ended = co_await s->loop->run();
  (void)ended;  // only ever cancelled
  co_await uncancelled(s->loop->finish());
}

asio::awaitable<void> wind_up(std::shared_ptr<world::state> s, std::vector<background>& parts) {
  for (auto& p : parts) p.stop();
  for (auto& p : parts) {
    auto joined = co_await p.join();
    (void)joined;
  }
  for (const auto& [c, ns] : s->table.all()) co_await c->stop();
  co_await s->host->stop();
}

task<void> hold(std::shared_ptr<world::state> s, std::vector<background>& parts) {
  s->host->start();
  parts.push_back(background::start(s->executor, serve(s->front.get())));
  if (s->plain) parts.push_back(background::start(s->executor, serve(s->plain.get())));
  KUBEOPERA_CO_CHECK(co_await s->host->wait_started());
  KUBEOPERA_CO_CHECK(co_await install_crds(*s));
  parts.push_back(background::start(s->env->strand, run_tenants(s.get())));
  s->started = true;
  s->changed.notify();
  notifier never;
  co_return co_await never.wait(never.ticket());
}

}  // namespace

world::world(std::shared_ptr<state> s) : state_(std::move(s)) {}
world::~world() = default;

result<std::unique_ptr<world>> world::open(asio::any_io_executor executor, world_options options, clock& clk, logger& log) {
  if (options.directory.empty()) return error(errc::invalid_argument, "NoDirectory", "a directory is required");
  auto s = std::make_shared<state>(executor, std::move(options), clk, log);
  KUBEOPERA_CHECK(make_directory(s->options.directory));
  auto token = crypto::random_token();
  KUBEOPERA_CHECK(open_host(*s, token));
  KUBEOPERA_CHECK(open_front_door(*s));
  if (s->options.plain_listener) {
    auto inner = s->host->api->handler();
    KUBEOPERA_TRY(s->plain, listen_again(*s, s->options.plain_port, "plain", nullptr,
                                         [inner, token](http::request r) { return plain_answer(inner, token, std::move(r)); }));
  }
  tenant_settings t;
  t.executor = executor;
  t.directory = s->options.directory + "/vclusters";
  t.address = s->options.address;
  t.simulation = s->options.simulation;
  t.persist = s->options.persist;
  KUBEOPERA_CHECK(make_directory(t.directory));
  asio::any_io_executor strand = asio::make_strand(executor);
  s->env = std::make_unique<sim::environment>(strand, s->host->controller_client, simulator_options(), clk, log);
  s->loop = std::make_unique<sim::engine>(*s->env);
  s->loop->add(make_tenant_controller(*s->env, std::move(t), s->table));
  return std::unique_ptr<world>(new world(std::move(s)));
}

task<void> world::run() {
  auto s = state_;
  std::vector<background> parts;
  auto ended = co_await hold(s, parts);
  co_await uncancelled(wind_up(s, parts));
  co_return ended;
}

task<void> world::wait_started() {
  auto s = state_;
  while (true) {
    auto ticket = s->changed.ticket();
    if (s->started) co_return result<void>();
    KUBEOPERA_CO_CHECK(co_await s->changed.wait(ticket));
  }
}

api_server& world::host() noexcept { return *state_->host->api; }
simulator& world::host_simulator() noexcept { return *state_->host->sim; }
std::shared_ptr<kube::client> world::host_client() const { return state_->host->admin_client; }
std::uint16_t world::host_port() const noexcept { return state_->host->port(); }
std::uint16_t world::plain_port() const noexcept { return state_->plain ? state_->plain->port() : 0; }
std::string world::host_url() const { return state_->host->url(); }
std::string world::plain_url() const {
  return state_->plain ? "http://" + state_->options.address + ":" + std::to_string(state_->plain->port()) : std::string();
}
std::string world::host_kubeconfig() const { return state_->host->kubeconfig_file(); }
std::uint16_t world::front_port() const noexcept { return state_->front->port(); }
std::string world::apps_ca() const { return state_->apps_ca.certificate; }
std::string world::apps_ca_file() const { return state_->options.directory + "/apps-ca.pem"; }

std::vector<vcluster_info> world::vclusters() const {
  std::vector<vcluster_info> out;
  for (const auto& [c, ns] : state_->table.all()) {
    vcluster_info i;
    i.name = c->options.name;
    i.tenant_namespace = ns;
    i.host_namespace = "vc-" + i.name;
    i.svc_host = c->options.svc_host;
    i.port = c->port();
    i.kubeconfig = c->kubeconfig_file();
    out.push_back(std::move(i));
  }
  return out;
}

std::shared_ptr<api_server> world::vcluster_api(const std::string& name) const {
  auto c = state_->table.find(name);
  return c ? c->api : nullptr;
}

std::shared_ptr<simulator> world::vcluster_simulator(const std::string& name) const {
  auto c = state_->table.find(name);
  return c ? c->sim : nullptr;
}

std::shared_ptr<kube::client> world::vcluster_client(const std::string& name) const {
  auto c = state_->table.find(name);
  return c ? c->admin_client : nullptr;
}

std::optional<std::string> world::connect_to(std::string_view host) const {
  if (host.ends_with(":443")) host.remove_suffix(4);
  for (const auto& [c, ns] : state_->table.all()) {
    if (host == c->options.svc_host) return state_->options.address + ":" + std::to_string(c->port());
  }
  return std::nullopt;
}

}  // namespace kubeopera::inline v1::testing
