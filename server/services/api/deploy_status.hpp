// The judgement of deploy-status: from what was observed to three stages. Pure; no clock, no network.
#pragma once

#include "server/services/api/model.hpp"
#include "server/services/api/store.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/kube/object.hpp>

#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::api {

/// The outcome of one request to the app's address.
struct probe_result {
  bool ok = false;
  int status = 0;
  std::string cause;  ///< DnsFailed, ConnectFailed, TlsFailed, HttpStatus, Redirected, Timeout ...
  std::string message;
};

/// Everything that was read. Objects are empty (no members) where they do not exist.
struct observation {
  bool resource_read = false;           ///< the host cluster answered
  kube::object resource;                ///< KubeOperaApp
  std::optional<error> host_error;      ///< why the host cluster did not answer
  std::optional<error> vcluster_error;  ///< why the vCluster could not be asked
  kube::object source, kustomization, deployment;
  std::vector<kube::object> replica_sets, pods, events;
  std::optional<probe_result> probe;  ///< only asked for once the workload is ready
  system_time now;
  int https_port = 443, http_port = 80;  ///< of app addresses
};

/// What a pod suffers from.
struct pod_cause {
  std::string reason, message, hint;
  bool fatal = false;  ///< will not go away by waiting
};
std::optional<pod_cause> diagnose_pod(const kube::object& pod);

/// "https://host", with the port where it is not the scheme's own.
std::string address_of(const app_row& app, int https_port = 443, int http_port = 80);

/// True when gitops and workload have succeeded and the address is worth asking.
bool wants_probe(const app_row& app, const observation& seen);
/// The whole status.
deploy_status_view judge(const app_row& app, const observation& seen);

/// Views of live objects.
pod_view view_pod(const kube::object& pod, std::string_view template_hash);
std::vector<condition_view> view_conditions(const kube::object& o);
app_status_view view_status(const app_row& app, const observation& seen);

}  // namespace kubeopera::inline v1::api
