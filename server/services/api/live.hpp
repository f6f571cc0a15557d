// Reads what is really running: the app's resource on the host cluster and its objects inside the tenant's vCluster.
// However many ask about one app, the clusters are asked once an interval.
#pragma once

#include "server/services/api/prober.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/kube/client.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kubeopera::inline v1::api {

/// A client of the vCluster that a KubeOperaTenant names. Errors: not_found or unavailable (VClusterNotReady), those of the
/// resolver.
using vcluster_lookup = std::function<task<std::shared_ptr<kube::client>>(const std::string& tenant_cr_name)>;

struct live_options {
  live_options() = default;
  std::string system_namespace = "kubeopera-system";
  int apps_https_port = 443, apps_http_port = 80;
  duration fresh_for = std::chrono::milliseconds(150);   ///< how old a shared observation may be
  duration probe_again_after = std::chrono::seconds(2);  ///< after a success
};

/// Thread-safe.
class live {
 public:
  live(std::shared_ptr<kube::client> host, vcluster_lookup vcluster, std::shared_ptr<prober> probes, live_options options,
       clock& clk = clock::real());

  /// Everything about an app, shared between callers: at most one round of requests an app and interval.
  task<std::shared_ptr<const observation>> observe(app_row app);
  /// The status from a shared observation.
  task<deploy_status_view> status(app_row app);
  /// The vCluster's client for app. Errors: as vcluster_lookup.
  task<std::shared_ptr<kube::client>> client_of(const app_row& app) { return vcluster_(app.vcluster); }
  /// Pods of the app, newest first.
  task<std::vector<kube::object>> pods(const app_row& app);
  const live_options& options() const noexcept { return options_; }
  /// Apps that were asked for within the last minute or two.
  std::size_t remembered() const;

 private:
  struct entry {
    std::shared_ptr<const observation> value;
    steady_time read_at{}, asked_at{};
    std::int64_t version = 0;
    bool reading = false;
    notifier changed;
    probe_result last_probe;
    steady_time probed_at{};
    std::int64_t probed_revision = -1;
  };
  std::shared_ptr<entry> entry_of(const std::string& id);
  asio::awaitable<observation> read(app_row app, std::shared_ptr<entry> e);
  task<void> read_vcluster(const app_row& app, observation& seen);
  asio::awaitable<void> probe(const app_row& app, observation& seen, entry& e);

  std::shared_ptr<kube::client> host_;
  vcluster_lookup vcluster_;
  std::shared_ptr<prober> probes_;
  live_options options_;
  clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<entry>> entries_;
  steady_time next_sweep_{};
};

}  // namespace kubeopera::inline v1::api
