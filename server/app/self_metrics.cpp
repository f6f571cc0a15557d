#include "server/app/self_metrics.hpp"

namespace kubeopera::inline v1::app {
namespace {

void show(metrics& all, const kube::informer_stats& s, std::string_view cluster, std::string_view resource) {
  metric_labels where = {{"cluster", cluster}, {"resource", resource}};
  all.gauge("kubeopera_informer_objects", "Objects in the local copy", static_cast<double>(s.objects), where);
  all.total("kubeopera_informer_lists_total", "Complete lists; more than one for a copy: it had to list again",
            static_cast<double>(s.lists), where);
  all.total("kubeopera_informer_events_total", "Watch events, bookmarks included", static_cast<double>(s.events), where);
  all.total("kubeopera_informer_errors_total", "Lists and watches that failed", static_cast<double>(s.errors), where);
  if (s.quiet)
    all.gauge("kubeopera_informer_quiet_seconds", "Time since the API server last said anything",
              std::chrono::duration<double>(*s.quiet).count(), where);
}

// A collector over something that may be gone by the time it is called.
template <class T, class F>
void watch(metrics& all, const std::shared_ptr<T>& what, F show_it) {
  all.add_collector([weak = std::weak_ptr<T>(what), show_it](metrics& m) {
    if (auto still_there = weak.lock()) show_it(m, *still_there);
  });
}

}  // namespace

void watch_process(metrics& all, const std::string& version) {
  all.gauge("kubeopera_build_info", "Always 1; the labels say what runs", 1,
            {{"version", version}, {"compiler", "clang " __clang_version__}});
  add_process_metrics(all);
}

void watch_informer(metrics& all, const std::shared_ptr<kube::informer>& copy) {
  watch(all, copy, [](metrics& m, const kube::informer& i) { show(m, i.stats(), "host", i.type().plural); });
}

void watch_deliveries(metrics& all, const std::shared_ptr<app_controller::delivery_watch>& deliveries) {
  watch(all, deliveries, [](metrics& m, app_controller::delivery_watch& w) {
    auto [watches, sum] = w.stats();
    show(m, sum, "vclusters", kube::types::kustomizations().plural);
    m.gauge("kubeopera_vcluster_watches", "vClusters whose deliveries are watched", static_cast<double>(watches));
  });
}

void watch_resolver(metrics& all, const std::shared_ptr<vcluster::resolver>& resolver) {
  watch(all, resolver, [](metrics& m, const vcluster::resolver& r) {
    auto s = r.stats();
    m.total("kubeopera_resolver_hits_total", "vCluster clients given out from memory", static_cast<double>(s.hits));
    m.total("kubeopera_resolver_misses_total", "vCluster Secrets read", static_cast<double>(s.misses));
    m.total("kubeopera_resolver_failures_total", "vCluster Secrets read in vain", static_cast<double>(s.failures));
    m.gauge("kubeopera_resolver_entries", "vClusters known to the resolver", static_cast<double>(s.entries));
  });
}

void watch_committer(metrics& all, const std::shared_ptr<gitops::committer>& git) {
  watch(all, git, [](metrics& m, const gitops::committer& g) {
    m.gauge("kubeopera_git_waiting_changes", "Changes that wait for the next batch", static_cast<double>(g.waiting()));
  });
}

void watch_server(metrics& all, const std::string& service, const std::shared_ptr<http::server>& server) {
  watch(all, server, [service](metrics& m, const http::server& s) {
    m.gauge("kubeopera_http_connections", "Connections open now", static_cast<double>(s.connections()), {{"service", service}});
  });
}

}  // namespace kubeopera::inline v1::app
