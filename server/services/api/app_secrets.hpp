// Secret values of apps inside their vClusters: written before an app's row is, and cleaned up where no row came.
#pragma once

#include "server/services/api/live.hpp"
#include "server/services/api/store.hpp"

#include <kubeopera/core/log.hpp>

#include <map>
#include <memory>
#include <string>

namespace kubeopera::inline v1::api {

/// Adds values to the Secret of app in its namespace, made where missing. What is there stays, so that a revision that is rolled
/// back to still finds its values. Errors: those of the vCluster; unavailable (SecretContended).
task<void> write_app_secret(std::shared_ptr<kube::client> vcluster, std::string app, std::string id,
                            std::map<std::string, std::string> values);

/// Removes what creates that failed or died have left: the Secret, and the namespace where it was made for it, of names that are
/// no app's. Looks again after each `stale`, which is also the age from which a create counts as dead. Ends when cancelled.
task<void> sweep_app_secrets(std::shared_ptr<store> rows, vcluster_lookup vcluster, std::chrono::seconds stale,
                             std::shared_ptr<logger> log);

}  // namespace kubeopera::inline v1::api
