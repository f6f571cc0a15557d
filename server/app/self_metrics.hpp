// Metrics that are looked at when they are asked for: of the process, its copies of cluster objects, its queues towards Git.
#pragma once

#include "server/services/app_controller/reconciler.hpp"

#include <kubeopera/core/metrics.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/http/server.hpp>
#include <kubeopera/kube/informer.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <memory>
#include <string>

namespace kubeopera::inline v1::app {

/// kubeopera_build_info{version,compiler} and the metrics of add_process_metrics().
void watch_process(metrics& all, const std::string& version);
/// kubeopera_informer_objects, _lists_total, _events_total, _errors_total, _quiet_seconds, all {cluster="host",resource}.
void watch_informer(metrics& all, const std::shared_ptr<kube::informer>& copy);
/// The same of the copies in vClusters, added up: {cluster="vclusters"}; _quiet_seconds is of the quietest one. Also
/// kubeopera_vcluster_watches.
void watch_deliveries(metrics& all, const std::shared_ptr<app_controller::delivery_watch>& watch);
/// kubeopera_resolver_hits_total, _misses_total, _failures_total, _entries.
void watch_resolver(metrics& all, const std::shared_ptr<vcluster::resolver>& resolver);
/// kubeopera_git_waiting_changes.
void watch_committer(metrics& all, const std::shared_ptr<gitops::committer>& git);
/// kubeopera_http_connections{service}.
void watch_server(metrics& all, const std::string& service, const std::shared_ptr<http::server>& server);

}  // namespace kubeopera::inline v1::app
