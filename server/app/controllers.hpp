// Everything that acts without being asked: informers, outbox relay, reaper, app-controller and the election, wired together.
// It is given interfaces only; platform.cpp gives it the real ones, a simulation its models.
#pragma once

#include "server/services/api/sync.hpp"
#include "server/services/app_controller/reconciler.hpp"

#include <kubeopera/control/manager.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>
#include <kubeopera/events/outbox_table.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/kube/informer.hpp>
#include <kubeopera/kube/lease.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kubeopera::inline v1::app {

/// What the controllers act on. Lifetime: clk, log and stats outlive them.
struct controller_parts {
  controller_parts() = default;
  asio::any_io_executor executor;
  clock* clk = &clock::real();
  logger* log = &logger::none();
  metrics* stats = nullptr;
  std::function<std::uint64_t()> random = random_u64;
  std::shared_ptr<kube::client> host;
  std::string system_namespace;
  /// A client of a vCluster.
  std::function<task<std::shared_ptr<kube::client>>(const vcluster::reference&)> resolve;

  // Role api; unset: another process has it.
  std::shared_ptr<api::row_source> rows;
  std::shared_ptr<events::outbox_table> outbox;
  duration outbox_lease = std::chrono::seconds(3);  ///< how long the rows of a process that died wait

  // Role app-controller; unset: another process has it.
  /// Makes the committer, which is to ask may_push before each push.
  std::function<std::shared_ptr<gitops::committer>(std::function<result<void>()> may_push)> make_committer;
  std::shared_ptr<app_service::client> manifests;
  app_controller::options delivery;
  /// More than one process may run the app-controller: a Lease lets one. Losing it ends the process, so that nothing goes on
  /// acting.
  bool elect_leader = false;
  kube::lease_options lease;  ///< its timings; the rest is filled in
};

/// Thread safety: as its parts; add_to() once.
class controllers {
 public:
  explicit controllers(controller_parts parts);
  ~controllers();
  controllers(const controllers&) = delete;
  controllers& operator=(const controllers&) = delete;

  void add_to(control::manager& m);
  /// A client of the vCluster that a KubeOperaTenant names. Errors: not_found (TenantNotFound), unavailable (VClusterNotReady).
  app_controller::vcluster_lookup lookup() const;
  std::shared_ptr<kube::informer> apps() const;
  std::shared_ptr<kube::informer> tenants() const;
  /// Null without the role app-controller, as is deliveries().
  std::shared_ptr<gitops::committer> committer() const;
  std::shared_ptr<app_controller::delivery_watch> deliveries() const;
  /// Says that outbox rows were added. Never blocks.
  std::function<void()> wake_outbox() const;
  /// Ends the watches inside vClusters; after the manager has ended.
  void stop_watches();

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::app
