// From settings to the host cluster and the fleet repository: what serve works with and doctor looks at.
#pragma once

#include "server/app/config.hpp"

#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/kube/kubeconfig.hpp>

#include <functional>
#include <memory>
#include <string>

namespace kubeopera::inline v1::app {

/// Errors: failed_precondition (FileNotFound).
result<std::string> slurp(const std::string& path);

/// The host cluster: the operator's kubeconfig, or the pod's own identity. Errors: those of read_kubeconfig and slurp,
/// invalid_argument (NoCluster).
result<kube::cluster_access> host_access(const settings& s);

/// The fleet repository; what comes out makes a new remote at each call. Credentials: a Secret of the system namespace as Flux
/// reads it (username, password; or identity, known_hosts, which are written to key_dir for ssh). Errors: those of the host
/// cluster, invalid_argument (FLUX_GIT_URL), unavailable (CannotWrite).
task<std::function<std::unique_ptr<gitops::remote>()>> open_remote(asio::any_io_executor executor, const settings& s,
                                                                   std::shared_ptr<kube::client> host,
                                                                   std::shared_ptr<gitops::object_store> store,
                                                                   std::string key_dir);

}  // namespace kubeopera::inline v1::app
