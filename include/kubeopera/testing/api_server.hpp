// An in-process Kubernetes API server: enough of the real API for controllers, clients and kubectl, with injectable faults.
// It stores and admits; it controls nothing: Deployments, pods, garbage and namespaces need the controllers of testing/world.hpp.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/http/transport.hpp>
#include <kubeopera/json/value.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::testing {

/// Who calls. Members of group "system:masters" may do everything.
struct api_user {
  api_user() = default;
  api_user(std::string n, std::vector<std::string> g) : name(std::move(n)), groups(std::move(g)) {}
  std::string name;
  std::vector<std::string> groups;
};

/// What someone wants to do; what the allow callback decides on.
struct api_access {
  api_access() = default;
  api_user user;
  std::string verb;  ///< "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
  std::string group, resource, subresource;  ///< resource is empty for paths outside the API ("/version")
  std::string ns, name;
  std::string path;
};

/// What a request for logs asks. Source: the query of GET pods/{name}/log.
struct api_log_request {
  api_log_request() = default;
  std::string container;
  bool follow = false, previous = false, timestamps = false;
  std::optional<std::int64_t> tail_lines, limit_bytes, since_seconds;
};

/// Gives the log of one container. Called on the request's executor, once the pod and the container are known to exist.
/// An error becomes the Status that fits its code.
using api_log_source =
    std::function<task<std::unique_ptr<http::body_source>>(std::string ns, std::string pod, api_log_request request)>;

struct api_server_options {
  api_server_options() = default;
  std::string name = "kubernetes";
  clock* time = &clock::real();  ///< must outlive the server
  /// Bearer token to user. The default knows "admin".
  std::map<std::string, api_user> tokens = {{"admin", api_user("admin", {"system:masters"})}};
  bool anonymous = true;  ///< requests without credentials are anonymous_user; otherwise 401
  /// Who requests without credentials are. kubectl sends none over plain HTTP, so a listener on loopback may want an
  /// administrator here.
  api_user anonymous_user = api_user("system:anonymous", {"system:unauthenticated"});
  /// Decides for users outside system:masters. Empty: they may read /version, health, discovery and review themselves only.
  std::function<bool(const api_access&)> allow;
  std::string version = "v1.36.3";
  std::string address = "127.0.0.1:6443";  ///< what GET /api names as the server's address
  std::size_t history = 4'000;             ///< watch events kept for each resource
  std::size_t call_log = 1'000;            ///< requests remembered
  /// Every new namespace gets the ServiceAccount "default" and the ConfigMap "kube-root-ca.crt", as the real controllers make
  /// them.
  bool seed_namespaces = true;
  std::string cluster_ca;  ///< PEM written to kube-root-ca.crt
};

/// One committed change, for whoever keeps the objects elsewhere.
struct api_commit {
  std::string resource;  ///< "apps/deployments", "/pods"
  std::string ns, name;
  std::uint64_t resource_version = 0;
  std::string object;  ///< the whole object as JSON; empty: it was removed
};
/// Called under the store's lock, in the order of resourceVersion: it must be quick and must not call the server.
using api_commit_log = std::function<void(const api_commit&)>;

/// A request that was answered.
struct api_call {
  std::string verb, group, resource, subresource, ns, name, user, method, target;
  int status = 0;
};

/// One rule of the fault injector; empty fields match everything.
struct api_fault {
  api_fault() = default;
  std::string verb, resource, ns, name;
  int times = 1;   ///< how often; negative: until cleared
  int status = 0;  ///< 0: only delay
  std::string reason = "InternalError";
  std::string message = "injected fault";
  std::optional<int> retry_after;  ///< seconds; sent as header and in the Status
  duration delay = duration::zero();
};

/// Makes the server misbehave. Thread-safe.
class api_faults {
 public:
  api_faults();
  ~api_faults();
  api_faults(const api_faults&) = delete;
  api_faults& operator=(const api_faults&) = delete;
  void inject(api_fault rule);
  /// Forgets all rules and ends a down time.
  void clear();
  /// While down every request fails as a refused connection does on a transport, and with 503 through a listener; open watches
  /// end.
  void set_down(bool down);
  bool down() const noexcept;
  /// Ends every open watch of a resource ("" = of all) in the middle of the stream.
  void cut_watches(const std::string& resource = "");

  struct state;
  const std::shared_ptr<state>& shared() const noexcept { return state_; }

 private:
  std::shared_ptr<state> state_;
};

/// The server.
///
/// What it does: discovery (also aggregated), OpenAPI v2 and v3 (types only), get, list (pages, selectors, resourceVersion rules,
/// Table, PartialObjectMetadata), watch (history, bookmarks, initial events, 410), create, replace, patch (JSON, merge,
/// strategic, server-side apply with managedFields), delete and deletecollection (preconditions, finalizers, propagation, grace),
/// dry run, field validation, generation, status and scale, CustomResourceDefinitions with structural schemas, Pod Security and
/// ResourceQuota admission, logs through a callback, bindings, evictions, tokens.
///
/// Limits: JSON and YAML bodies only, no protobuf; no CEL rules (x-kubernetes-validations are stored, not evaluated); no
/// webhooks, no aggregated API servers, no conversion between versions of one kind (a CRD's versions share what is stored); exec,
/// attach, port-forward and proxy answer 501; RBAC objects are stored but do not decide (api_server_options::allow does);
/// validation of built-in kinds covers names, labels, immutability and what manifests get wrong most, not every rule; LimitRange,
/// priority and node admission are absent. Everything is in memory.
///
/// Thread safety: all members may be called from any thread. Lifetime: handlers and transports keep the state alive.
/// Source: Kubernetes API concepts, API conventions, server-side apply; compared with a recorded kube-apiserver 1.36.3.
class api_server {
 public:
  explicit api_server(api_server_options options = api_server_options());
  ~api_server();
  api_server(const api_server&) = delete;
  api_server& operator=(const api_server&) = delete;

  /// For a listener: authenticates by bearer token or verified client certificate (CN is the user, O are the groups).
  http::handler handler() const;
  /// In process, already authenticated as user; an Authorization header is not looked at.
  std::shared_ptr<http::transport> transport(api_user user = api_user("admin", {"system:masters"})) const;

  /// Tells log every object that is there, and from then on every change. Empty: tells nobody.
  void set_commit_log(api_commit_log log);
  /// Puts back what a commit log told, in any order; what was there before is forgotten, and watches from before get 410. A
  /// commit without a resource only says how far resource versions had come. Call it before anything uses the server.
  /// Errors: data_loss (an object that cannot be read, or a resource that no CustomResourceDefinition among them serves).
  result<void> restore(std::vector<api_commit> all);

  void set_log_source(api_log_source source);
  void add_token(std::string token, api_user user);
  void remove_token(const std::string& token);

  api_faults& faults() noexcept;
  /// The newest calls, oldest first.
  std::vector<api_call> calls() const;
  void clear_calls();

  /// The newest resourceVersion that was given out.
  std::uint64_t resource_version() const;
  /// Forgets the history up to now, as etcd's compaction does: older continue tokens, exact lists and watches get 410.
  void compact();

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::testing
