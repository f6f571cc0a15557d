// One cluster of the world: API server, its objects on disk, controllers, and an HTTPS listener with mutual TLS.
#pragma once

#include "src/testing/world_certificates.hpp"
#include "src/testing/world_journal.hpp"

#include <kubeopera/http/server.hpp>
#include <kubeopera/testing/world.hpp>

namespace kubeopera::inline v1::testing {

struct cluster_options {
  cluster_options() = default;
  std::string name, directory, address, svc_host;
  std::uint16_t port = 0;
  bool flux = true, persist = true;
  simulator_options simulation;
  std::map<std::string, api_user> tokens;
};

/// Thread safety: facts from any thread; start() and stop() once each, by one caller.
class cluster {
 public:
  /// Restores the state and binds the listener. Errors: unavailable, data_loss.
  static result<std::shared_ptr<cluster>> open(asio::any_io_executor executor, cluster_options options, clock& clk, logger& log);
  /// Runs the listener and the controllers in the background.
  void start();
  /// Waits until the controllers run. Errors: cancelled.
  task<void> wait_started() { return sim->wait_started(); }
  /// Stops both and waits for their end.
  asio::awaitable<void> stop();

  std::uint16_t port() const noexcept { return listener->port(); }
  std::string url() const { return "https://" + options.address + ":" + std::to_string(port()); }
  std::string kubeconfig_file() const { return options.directory + "/kubeconfig"; }
  /// With the name that a program inside the simulated network uses.
  std::string inner_kubeconfig() const;

  cluster_options options;
  crypto::key_pair ca, admin;
  std::unique_ptr<journal> log_file;
  std::shared_ptr<api_server> api;
  std::shared_ptr<kube::client> controller_client, admin_client;
  std::shared_ptr<simulator> sim;
  std::unique_ptr<http::server> listener;

 private:
  cluster(asio::any_io_executor executor, cluster_options o) : options(std::move(o)), executor_(std::move(executor)) {}
  result<void> prepare(clock& clk, logger& log);
  result<void> listen(logger& log);
  asio::any_io_executor executor_;
  background serving_, simulating_;
};

}  // namespace kubeopera::inline v1::testing
