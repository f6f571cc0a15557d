// From a tenant's vCluster to a client of it: reads its kubeconfig Secret on the host cluster, checks it, keeps the client for a
// while. Source: the Secret vc-<name> that vCluster writes; closed-world checks in kube/kubeconfig.hpp.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/kube/kubeconfig.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kubeopera::inline v1::vcluster {

/// One vCluster. The tenant is part of what is cached: no tenant is ever served from another's entry.
struct reference {
  reference() = default;
  reference(std::string t, std::string ns, std::string n)
      : tenant(std::move(t)), host_namespace(std::move(ns)), name(std::move(n)) {}
  std::string tenant;          ///< id of the tenant that owns it
  std::string host_namespace;  ///< namespace on the host cluster in which it runs
  std::string name;            ///< of the KubeOperaTenant, and of the vCluster
  friend bool operator==(const reference&, const reference&) = default;
};

/// The reference that a KubeOperaTenant stands for: spec.tenant_id, status.host_namespace, metadata.name.
/// Errors: not_found (VClusterNotReady) while status.host_namespace is not set.
result<reference> reference_of(const kube::object& tenant_resource);

struct resolver_options {
  resolver_options() = default;
  duration fresh_for = std::chrono::seconds(30);        ///< then the Secret is read again; drawn from half of it to all of it
  duration failure_kept_for = std::chrono::seconds(1);  ///< a failure is answered from memory this long; drawn likewise
  duration forget_after = std::chrono::minutes(10);     ///< entries that nobody asked for since
  std::chrono::hours warn_before{24 * 14};              ///< a certificate that ends sooner is logged
  kube::client_options client;                          ///< of the clients made; the token is the Secret's
  /// "host:port" to connect to instead of a service host ("t1.ns.svc"), or "": the embedded mode's map.
  std::function<std::string(const std::string& service_host)> connect_to;
  /// Makes transports; empty: kube::make_transport. For tests and in-process clusters.
  std::function<result<std::shared_ptr<http::transport>>(const kube::cluster_access&, const std::string& connect_to)> transport;
  clock* time = nullptr;                  ///< null means clock::real(); must outlive the resolver and its clients
  std::function<std::uint64_t()> random;  ///< jitter; empty means random_u64()
  logger* log = nullptr;                  ///< must outlive the resolver
};

/// What a resolver has answered so far.
struct resolver_stats {
  resolver_stats() = default;
  std::uint64_t hits = 0;      ///< from memory, known failures included
  std::uint64_t misses = 0;    ///< the Secret was read
  std::uint64_t failures = 0;  ///< of these, without a client to show for it
  std::size_t entries = 0;
};

/// Thread safety: all members may be called from any thread. Lifetime: clients that were given out outlive the resolver.
class resolver {
 public:
  resolver(asio::any_io_executor executor, std::shared_ptr<kube::client> host, resolver_options options = resolver_options());
  ~resolver();
  resolver(const resolver&) = delete;
  resolver& operator=(const resolver&) = delete;

  /// The vCluster's client. However many ask at once, the Secret is read once. While the host cluster is unavailable a client
  /// that was good goes on being given out. A client whose server answers 401, or whose TLS fails, drops its entry by itself.
  /// Errors: not_found (VClusterNotReady: no Secret, or nothing in it yet), failed_precondition (KubeconfigRefused with the
  /// violations, CertificateExpired), invalid_argument (names), unavailable and others of the host cluster, cancelled.
  task<std::shared_ptr<kube::client>> resolve(const reference& which);
  /// The client where it is at hand and fresh, else null. Takes one short lock and allocates nothing.
  std::shared_ptr<kube::client> cached(const reference& which) const noexcept;
  /// Reads the Secret again for the next caller, at most once a second for each vCluster.
  void invalidate(const reference& which);
  /// For metrics.
  resolver_stats stats() const;

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::vcluster
