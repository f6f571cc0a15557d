// The controller of KubeOperaTenants in the host cluster: each gets a vCluster.
#pragma once

#include "src/testing/flux_controllers.hpp"
#include "src/testing/world_cluster.hpp"

namespace kubeopera::inline v1::testing {

/// The running vClusters. Thread-safe.
class vcluster_table {
 public:
  void put(std::shared_ptr<cluster> c, std::string tenant_namespace);
  std::shared_ptr<cluster> take(const std::string& name);
  std::shared_ptr<cluster> find(const std::string& name) const;
  std::vector<std::pair<std::shared_ptr<cluster>, std::string>> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<std::shared_ptr<cluster>, std::string>> clusters_;
};

struct tenant_settings {
  tenant_settings() = default;
  asio::any_io_executor executor;
  std::string directory, address;
  simulator_options simulation;
  bool persist = true;
};

/// @param table  outlives the controller
std::unique_ptr<sim::controller> make_tenant_controller(sim::environment& env, tenant_settings settings, vcluster_table& table);

inline constexpr std::string_view vcluster_finalizer = "sim.kubeopera.io/vcluster";

}  // namespace kubeopera::inline v1::testing
