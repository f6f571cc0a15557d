// The inside of a simulator, shared by its parts.
#pragma once

#include "src/testing/sim_cleanup.hpp"
#include "src/testing/sim_kubelet.hpp"
#include "src/testing/sim_logs.hpp"

#include <kubeopera/gitops/store.hpp>

#include <atomic>

namespace kubeopera::inline v1::testing {

namespace sim {

/// The fetched repositories, by GitRepository. Not thread-safe.
struct fetched_sources {
  std::map<object_key, std::shared_ptr<gitops::object_store>> stores;
};

}  // namespace sim

struct simulator::state {
  state(asio::any_io_executor strand, std::shared_ptr<kube::client> api, simulator_options o, clock& clk, logger& l)
      : env(std::move(strand), std::move(api), std::move(o), clk, l), logs(clk, env.options.log_bytes), loop(env) {}
  sim::environment env;
  sim::log_store logs;
  sim::fault_table faults;
  sim::type_registry registry;
  sim::fetched_sources sources;
  sim::engine loop;
  std::atomic<bool> started{false};
  notifier changed;

  /// What other threads may look at: the last copy that the strand made.
  struct snapshot {
    std::vector<sim::shared_object> services, pods, ingresses;
  };
  mutable std::mutex mutex;
  std::shared_ptr<const snapshot> seen = std::make_shared<snapshot>();
  bool stale = false;
};

}  // namespace kubeopera::inline v1::testing
