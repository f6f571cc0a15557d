// A whole simulated installation: a host cluster, a vCluster for each KubeOperaTenant, Flux in all of them, and an HTTPS front
// door. Everything that talks is real (TLS, HTTP, Git, Kubernetes' API); containers, kubelets and the vCluster's control plane
// are simulated.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/testing/api_server.hpp>
#include <kubeopera/testing/simulator.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::testing {

struct world_options {
  world_options() = default;
  /// Where state lives: certificates, each cluster's objects (a log of changes, compacted now and then), fetched repositories,
  /// kubeconfig files. Made where missing, with mode 0700. Required.
  std::string directory;
  /// Installed in the host cluster at every start; manifest::crds().
  std::vector<json::object> crds;
  /// Addresses of apps are one label below it; the front door has a wildcard certificate for them.
  std::string base_domain = "apps.localhost";
  std::string address = "127.0.0.1";
  std::uint16_t host_port = 0;   ///< HTTPS of the host cluster; 0: the one of the last start where it is free, else any
  std::uint16_t front_port = 0;  ///< HTTPS of the front door; likewise
  /// Plain HTTP to the host cluster as administrator, for `kubectl --server http://…`. Loopback only; requests that come from a
  /// page of another origin or with a foreign Host are refused.
  bool plain_listener = false;
  std::uint16_t plain_port = 0;
  /// Tokens that the host cluster's API knows besides the administrator's own.
  std::map<std::string, api_user> tokens;
  simulator_options simulation;  ///< of every cluster; flux_directory is set by the world
  bool host_flux = false;
  /// Off: nothing is remembered beyond the process; certificates are.
  bool persist = true;
};

/// A vCluster as people and programs reach it.
struct vcluster_info {
  std::string name;  ///< of the KubeOperaTenant
  std::string tenant_namespace;
  std::string host_namespace;  ///< vc-<name>
  std::string svc_host;        ///< <name>.<host namespace>.svc
  std::uint16_t port = 0;      ///< on options.address
  std::string kubeconfig;      ///< path of a file whose server is https://127.0.0.1:port
};

/// The installation.
///
/// What it does with a KubeOperaTenant `<name>`: namespace `vc-<name>` (names are unique in the whole host cluster: a second
/// tenant of that name gets Ready=False, reason NamespaceTaken), ResourceQuota `vcluster` from spec.quota, Service `<name>`, a
/// Kubernetes API of its own behind mutual TLS with a CA of its own (names: <name>.vc-<name>.svc, localhost, 127.0.0.1), and the
/// Secret `vc-<name>` (labels app=vcluster, vcluster-name=<name>; keys config, certificate-authority, client-certificate,
/// client-key; the config's server is https://<name>.vc-<name>.svc:443). Status: phase, host_namespace, kubeconfig_secret,
/// condition Ready. Deleting the tenant ends the cluster, removes its state and the namespace, then the finalizer
/// sim.kubeopera.io/vcluster.
///
/// The front door answers for every Ingress host of every cluster with a simulated app's response (JSON with app, image, version,
/// pod, namespace, path), 503 where no pod is ready, 404 for an unknown host or path; each request is a line in a pod's log.
///
/// Thread safety: all members may be called from any thread; run() once.
class world {
 public:
  /// Makes or reads the directory and binds the listeners; nothing runs yet.
  /// Errors: invalid_argument (no directory), unavailable (disk, address in use), data_loss (state that cannot be read).
  static result<std::unique_ptr<world>> open(asio::any_io_executor executor, world_options options, clock& clk = clock::real(),
                                             logger& log = logger::none());
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  /// Works until cancelled, then stops every cluster. Errors: cancelled.
  task<void> run();
  /// Waits until the host cluster's controllers run and its CRDs are established. Errors: cancelled.
  task<void> wait_started();

  api_server& host() noexcept;
  simulator& host_simulator() noexcept;
  /// The host cluster's administrator.
  std::shared_ptr<kube::client> host_client() const;
  std::uint16_t host_port() const noexcept;
  std::uint16_t plain_port() const noexcept;  ///< 0 without a plain listener
  /// "https://127.0.0.1:port".
  std::string host_url() const;
  std::string plain_url() const;
  /// A kubeconfig file of the host cluster.
  std::string host_kubeconfig() const;

  std::vector<vcluster_info> vclusters() const;
  /// The API server, the simulator and an administrator of a vCluster; null for an unknown name. They live as long as the
  /// pointer.
  std::shared_ptr<api_server> vcluster_api(const std::string& name) const;
  std::shared_ptr<simulator> vcluster_simulator(const std::string& name) const;
  std::shared_ptr<kube::client> vcluster_client(const std::string& name) const;
  /// Where a service name of the simulated network is: "<name>.vc-<name>.svc", with or without ":443", gives "127.0.0.1:port".
  std::optional<std::string> connect_to(std::string_view host) const;

  std::uint16_t front_port() const noexcept;
  /// PEM of the CA that signs the addresses of apps, and the file that has it.
  std::string apps_ca() const;
  std::string apps_ca_file() const;

  struct state;

 private:
  explicit world(std::shared_ptr<state> s);
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::testing
