// Opening, running and ending one cluster.
#include "src/testing/world_cluster.hpp"

#include <charconv>

namespace kubeopera::inline v1::testing {

namespace {

asio::awaitable<void> serve(http::server* server) {
  auto ended = co_await server->run();
  (void)ended;  // only ever cancelled
}

asio::awaitable<void> simulate(std::shared_ptr<simulator> sim) {
  auto ended = co_await sim->run();
  (void)ended;  // only ever cancelled
}

std::uint16_t remembered_port(const std::string& file) {
  auto text = read_file(file);
  unsigned port = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), port);
  return port < 65'536 ? static_cast<std::uint16_t>(port) : 0;
}

}  // namespace

result<std::shared_ptr<cluster>> cluster::open(asio::any_io_executor executor, cluster_options options, clock& clk, logger& log) {
  std::shared_ptr<cluster> c(new cluster(std::move(executor), std::move(options)));
  KUBEOPERA_CHECK(c->prepare(clk, log));
  KUBEOPERA_CHECK(c->listen(log));
  return c;
}

result<void> cluster::prepare(clock& clk, logger& log) {
  KUBEOPERA_CHECK(make_directory(options.directory));
  KUBEOPERA_TRY(ca, stored_ca(options.directory, "ca", options.name + " CA"));
  KUBEOPERA_TRY(admin, stored_admin(options.directory, ca));
  api_server_options a;
  a.name = options.name;
  a.time = &clk;
  a.tokens = options.tokens;
  a.cluster_ca = ca.certificate;
  api = std::make_shared<api_server>(a);
  if (options.persist) {
    KUBEOPERA_TRY(log_file, journal::open(options.directory + "/objects.jsonl", log));
    auto loaded = log_file->take_loaded();
    if (!loaded.empty()) KUBEOPERA_CHECK(api->restore(std::move(loaded)));
    auto* file = log_file.get();
    api->set_commit_log([file](const api_commit& c) { file->append(c); });
  }
  kube::client_options k;
  k.user_agent = "kube-controller-manager";
  controller_client = kube::make_client(api->transport(api_user("system:kube-controller-manager", {"system:masters"})), k);
  k.user_agent = "kubeopera";
  admin_client = kube::make_client(api->transport(api_user("kubernetes-admin", {"system:masters"})), k);
  auto s = options.simulation;
  s.flux = options.flux;
  s.flux_directory = options.directory + "/sources";
  KUBEOPERA_CHECK(make_directory(s.flux_directory));
  sim = std::make_shared<simulator>(executor_, controller_client, s, clk, log);
  api->set_log_source(sim->log_source());
  return {};
}

result<void> cluster::listen(logger& log) {
  std::vector<std::string> names{"localhost"};
  if (!options.svc_host.empty()) names.push_back(options.svc_host);
  KUBEOPERA_TRY(auto server, crypto::issue_server(ca, names, {"127.0.0.1"}));
  auto tls = std::make_shared<http::server_tls>();
  tls->identity = http::tls_identity(server.certificate, server.private_key);
  tls->client_ca_pem = ca.certificate;
  http::server_options h;
  h.address = options.address;
  h.tls = tls;
  h.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(4u << 20); };
  h.drain_timeout = std::chrono::milliseconds(200);
  auto file = options.directory + "/port";
  h.port = options.port != 0 ? options.port : remembered_port(file);
  auto made = http::server::listen(executor_, h, api->handler(), log);
  if (!made && options.port == 0 && h.port != 0) {
    h.port = 0;
    made = http::server::listen(executor_, h, api->handler(), log);
  }
  if (!made) return made.error();
  listener = std::move(*made);
  KUBEOPERA_CHECK(write_file(file, std::to_string(listener->port())));
  return write_file(kubeconfig_file(), kubeconfig_text(options.name, url(), ca.certificate, admin));
}

std::string cluster::inner_kubeconfig() const {
  return kubeconfig_text(options.name, "https://" + options.svc_host + ":443", ca.certificate, admin);
}

void cluster::start() {
  serving_ = background::start(executor_, serve(listener.get()));
  simulating_ = background::start(executor_, simulate(sim));
}

asio::awaitable<void> cluster::stop() {
  serving_.stop();
  simulating_.stop();
  auto served = co_await serving_.join();
  auto simulated = co_await simulating_.join();
  (void)served;
  (void)simulated;
  if (api) api->set_commit_log({});
}

}  // namespace kubeopera::inline v1::testing
