// What makes an in-process Kubernetes API server live: controllers, a scheduler, a kubelet whose containers are simulated, and
// Flux. Deployments roll out, pods get ready (or fail as asked), Services get endpoints, owners are collected, Git is really
// fetched.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/http/message.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::testing {

/// What a simulated container does instead of running well.
///
/// How a pod gets one, first match wins:
/// 1. simulator::fail(image, kind), by exact image or image prefix with a trailing '*';
/// 2. the annotation `sim.kubeopera.io/fail: <word>` of the pod (so of the pod template), the words being those of to_string();
/// 3. the name of the image: a registry host that ends in `.invalid`, or the tag `missing` (image-pull); a repository whose last
///    part is, or begins with, `crash`, `oom`, `unready`, `slow` followed by nothing, '-' or ':' (crash, oom, readiness, slow); a
///    container command or argument `crash` or `oom` does the same;
/// 4. what the API says: a Secret or ConfigMap that env or envFrom refers to and that is missing, unless optional (config); a
///    request of more than a node has left (unschedulable).
enum class fault_kind {
  none,
  image_pull,     ///< ErrImagePull, then ImagePullBackOff
  crash,          ///< exits with 1 soon after its start, then CrashLoopBackOff
  oom,            ///< OOMKilled, exit code 137
  unschedulable,  ///< never bound to a node
  readiness,      ///< runs, its readiness probe fails
  slow,           ///< ready only after simulator_options::slow_ready
  config,         ///< CreateContainerConfigError
};

/// "none", "image-pull", "crash", "oom", "unschedulable", "readiness", "slow", "config".
std::string_view to_string(fault_kind kind) noexcept;
/// The reverse; nothing for an unknown word.
std::optional<fault_kind> fault_kind_from(std::string_view word) noexcept;

struct node_spec {
  node_spec() = default;
  std::string name = "node-0";
  std::string cpu = "16", memory = "64Gi";
  int pods = 1000;
};

struct simulator_options {
  simulator_options() = default;
  std::vector<node_spec> nodes = {node_spec()};
  /// Field manager of pod status; the recordings have "kwok".
  std::string kubelet_manager = "kubelet";
  /// Pod status with the few fields that kwok writes, for comparing with its recordings.
  bool minimal_pod_status = false;
  /// Pass through ContainerCreating before a container runs; off saves one write a pod.
  bool show_creating = true;
  duration schedule_delay = duration::zero();  ///< from a pod's creation to its binding
  duration collect_delay = duration::zero();   ///< before the garbage collector looks at an owner that waits for its dependents
  duration pull_time = duration::zero();
  /// From running to ready; the annotation `sim.kubeopera.io/ready-after: 3s` of a pod overrides it.
  duration ready_delay = duration::zero();
  duration slow_ready = std::chrono::seconds(20);
  /// How long a container lives on after the request to end; at most the pod's grace period.
  duration stop_time = duration::zero();
  duration crash_after = std::chrono::milliseconds(300);
  duration pull_backoff = std::chrono::seconds(10);     ///< doubles up to five minutes
  duration restart_backoff = std::chrono::seconds(10);  ///< doubles up to five minutes
  duration heartbeat = std::chrono::seconds(30);        ///< a log line of each running container
  std::size_t log_bytes = 1 << 20;                      ///< kept for each container
  bool events = true;

  /// Flux (source-controller and kustomize-controller); needs its CRDs, which it installs.
  bool flux = true;
  std::string flux_namespace = "flux-system";
  duration flux_health_poll = std::chrono::seconds(5);
  duration flux_minimum_timeout = std::chrono::seconds(30);
  duration flux_dependency_retry = std::chrono::seconds(30);
  /// A pass over a ready Kustomization that finds nothing to change writes its status once, at its end, and no event, where Flux
  /// writes every step: with many Kustomizations in a cluster, that is most of what a commit costs.
  bool flux_quiet = false;
  /// Directory for the object stores that repositories are fetched into; required when flux is on.
  std::string flux_directory;
  /// Makes the transport and the path for a GitRepository's url: http(s) URLs only; empty: http::make_client to the URL's host.
  /// A file:///… URL is always a directory of this machine.
  std::function<result<std::pair<std::shared_ptr<http::transport>, std::string>>(const std::string& url)> git_transport;
};

/// One backend that can answer for a Service: a ready pod.
struct backend {
  std::string ns, pod, container, image, ip, app, version;
};

/// The controllers of one cluster.
/// Thread safety: run() once; all others from any thread. Lifetime: the client must outlive run().
/// Limits: no StatefulSets, DaemonSets or CronJobs; no volumes are mounted; init containers succeed at once; probes are not sent.
class simulator {
 public:
  simulator(asio::any_io_executor executor, std::shared_ptr<kube::client> api, simulator_options options = simulator_options(),
            clock& clk = clock::real(), logger& log = logger::none());
  ~simulator();
  simulator(const simulator&) = delete;
  simulator& operator=(const simulator&) = delete;

  /// Works until cancelled, then stops every controller. Errors: cancelled.
  task<void> run();
  /// Waits until all caches are filled and the nodes exist. Errors: cancelled.
  task<void> wait_started();

  /// Makes every container with this image fail from its next start on. image may end in '*'.
  void fail(std::string image, fault_kind kind);
  /// Forgets fail() of one image, or of all ("").
  void heal(const std::string& image = {});

  /// For api_server::set_log_source.
  api_log_source log_source();
  /// Appends a line to a container's log, as if the container had printed it.
  void print(const std::string& ns, const std::string& pod, const std::string& line);

  /// The ready pods behind a Service port, oldest first; empty where the Service or a ready pod is missing.
  std::vector<backend> backends(const std::string& ns, const std::string& service) const;
  /// Ingresses as last seen, for a front door. Each call is a snapshot.
  std::vector<std::shared_ptr<const json::object>> ingresses() const;

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::testing
