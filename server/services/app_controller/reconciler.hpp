// Delivers KubeOperaApps: resolve the vCluster, generate manifests, commit them, let Flux inside the vCluster apply them, say so
// in the status; on deletion take everything away again. Level-based and restart-safe: every step looks first.
#pragma once

#include "server/services/app/client.hpp"

#include <kubeopera/control/controller.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/kube/informer.hpp>
#include <kubeopera/manifest/resources.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kubeopera::inline v1::app_controller {

struct options {
  options() = default;
  std::string system_namespace = "kubeopera-system";
  std::string fleet_url;  ///< as Flux inside a vCluster reaches it
  std::string fleet_branch = "main";
  std::string fleet_secret_ref;  ///< Secret with Git credentials inside the vCluster; empty: none
  std::string flux_interval = "1m";
  std::string ingress_class = "nginx";
  std::string wildcard_tls_secret;  ///< certificate of the default addresses
  std::string apps_base_domain = "apps.kubeopera.io";
};

/// A client of the vCluster that a KubeOperaTenant names.
using vcluster_lookup = std::function<task<std::shared_ptr<kube::client>>(const std::string& tenant_cr_name)>;

/// Watches the Kustomizations of every vCluster in use, so that a delivery is noticed when it happens. Thread-safe.
class delivery_watch {
 public:
  /// wake is called with the app's key ("namespace/name") when its Kustomization changes. Of an app that settled() says is
  /// delivered only what undoes that counts: every commit makes Flux go over every Kustomization of its vCluster, and what that
  /// costs must not grow with the apps. like: time, jitter and log of its informers.
  delivery_watch(asio::any_io_executor executor, std::function<void(const std::string& key)> wake,
                 std::function<bool(const std::string& key)> settled, kube::informer_options like);
  /// Starts a watch for a vCluster where there is none.
  void ensure(const std::string& tenant, std::shared_ptr<kube::client> client);
  void forget(const std::string& tenant);
  void stop();
  /// How many vClusters are watched, and what their informers did in all; quiet is the longest.
  std::pair<std::size_t, kube::informer_stats> stats();

 private:
  struct entry {
    std::shared_ptr<kube::informer> cache;
    background running;
  };
  asio::any_io_executor executor_;
  std::function<void(const std::string&)> wake_;
  std::function<bool(const std::string&)> settled_;
  kube::informer_options like_;
  std::mutex mutex_;
  std::map<std::string, entry> all_;
  kube::informer_stats ended_;  // of those that were forgotten
};

class reconciler final : public control::reconciler {
 public:
  reconciler(std::shared_ptr<kube::client> host, vcluster_lookup vcluster, std::shared_ptr<app_service::client> manifests,
             std::shared_ptr<gitops::committer> git, std::shared_ptr<delivery_watch> watch, options o, clock& clk, logger& log);
  /// key is "namespace/name" of a KubeOperaApp.
  task<control::outcome> reconcile(const std::string& key) override;

 private:
  struct step;  // one reconcile under way
  task<control::outcome> deliver(step& s);
  task<control::outcome> retire(step& s);
  task<void> remove_directory(step& s);
  task<bool> ensure_finalizer(step& s);
  task<void> resolve(step& s);
  task<void> render(step& s);
  task<void> commit(step& s);
  task<void> configure_flux(step& s);
  task<bool> poke(step& s, const kube::object& source);
  task<control::outcome> observe_delivery(step& s);
  task<void> save_status(step& s);
  task<control::outcome> stop_at(step& s, const char* condition, const error& e);

  std::shared_ptr<kube::client> host_;
  vcluster_lookup vcluster_;
  std::shared_ptr<app_service::client> manifests_;
  std::shared_ptr<gitops::committer> git_;
  std::shared_ptr<delivery_watch> watch_;
  options options_;
  clock& clock_;
  logger& log_;
};

}  // namespace kubeopera::inline v1::app_controller
