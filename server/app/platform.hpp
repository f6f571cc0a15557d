// The composition of the roles in one process: the only place where concrete types meet.
#pragma once

#include "server/app/auth.hpp"
#include "server/services/api/live.hpp"
#include "server/services/api/sync.hpp"
#include "server/services/app_controller/reconciler.hpp"
#include "server/web/router.hpp"

#include <kubeopera/control/manager.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/http/server.hpp>
#include <kubeopera/kube/informer.hpp>
#include <kubeopera/postgres/pool.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kubeopera::inline v1::app {

/// What the surroundings give: real clusters and repositories, or the embedded ones.
struct surroundings {
  asio::any_io_executor executor;
  std::shared_ptr<logger> log;
  std::shared_ptr<metrics> stats = std::make_shared<metrics>();
  clock* clk = &clock::real();
  std::shared_ptr<kube::client> host;  ///< host cluster
  /// Where a service of the host cluster is reached; embedded: a loopback port. Empty result: by its own name.
  std::function<std::string(const std::string& svc_host)> connect_to;
  std::shared_ptr<gitops::object_store> fleet_store;
  std::function<std::unique_ptr<gitops::remote>()> fleet_remote;  ///< a new one at each call
  std::string database_url;
  std::function<result<web::identity>(std::string_view)> authenticate;
  std::string system_namespace = "kubeopera-system";
  std::string apps_base_domain = "apps.kubeopera.io";
  int apps_https_port = 443;
  api::prober_options probes;
  app_controller::options delivery;
  std::shared_ptr<app_service::client> manifests;  ///< null: in this process
  bool elect_leader = false;                       ///< more than one process may run the controllers
  std::chrono::seconds reservation{60};  ///< how long what a request that died had reserved (its Idempotency-Key) stays so
  duration outbox_lease = std::chrono::seconds(3);  ///< how long the outbox rows of a process that died wait
  /// Where set: puts something between the roles and the database.
  std::function<std::shared_ptr<postgres::pool>(std::shared_ptr<postgres::pool>)> wrap_pool;
  /// As in vcluster::resolver_options: makes the transports to vClusters.
  decltype(vcluster::resolver_options::transport) vcluster_transport;
};

/// One role's HTTP face.
struct face {
  std::string role;
  std::shared_ptr<web::router> router;
  std::string address;
  int port = 0;  ///< 0: any free one
};

/// Roles wired together. Construct, then run.
class platform {
 public:
  /// Opens the pool (lazily) and builds every part. role_names as in roles.cpp.
  static result<std::unique_ptr<platform>> make(surroundings s, std::vector<std::string> role_names, std::string listen_address,
                                                int port);
  ~platform();
  /// Applies the migrations. Errors: those of postgres::migrate.
  task<void> migrate();
  /// Runs until cancelled or stopped; see control::manager. Before that it makes the system namespace.
  task<void> run();
  void stop() noexcept;
  bool ready() const noexcept;
  /// The port that a role listens on, once run() has started it; 0 before.
  int port_of(const std::string& role) const;

 private:
  struct state;
  explicit platform(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::app
