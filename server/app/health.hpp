// What a process depends on, as checks for readyz.
#pragma once

#include "server/web/readiness.hpp"

#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/kube/informer.hpp>
#include <kubeopera/postgres/pool.hpp>

#include <memory>
#include <string>

namespace kubeopera::inline v1::app {

/// One statement on a connection of the pool.
web::readiness_check database_check(std::shared_ptr<postgres::pool> pool);
/// The API server answers, and the copy that this process works on is current.
web::readiness_check cluster_check(std::shared_ptr<kube::client> host, std::shared_ptr<kube::informer> copy);
/// The fleet repository tells its branch's tip. origin: a remote of its own, so that no push is waited for; asked every ten
/// seconds at most.
web::readiness_check git_check(std::shared_ptr<gitops::remote> origin, std::string branch);

}  // namespace kubeopera::inline v1::app
