// Decorators of what a server reaches the outside through: each tells the sequence of effects, and fails where it says so.
#pragma once

#include "server/app/platform.hpp"
#include "tests/walk/effects.hpp"

namespace kubeopera::walk {

/// Every committed statement or transaction that changed a row is one effect. `seen` outlives what is returned, here and below.
std::shared_ptr<postgres::pool> observe(std::shared_ptr<postgres::pool> inner, effects& seen);
/// Every request that writes and is not refused is one effect.
std::shared_ptr<http::transport> observe(std::shared_ptr<http::transport> inner, effects& seen);
/// A client whose requests go through inner, and are observed.
std::shared_ptr<kube::client> observe(std::shared_ptr<kube::client> inner, effects& seen);
/// Every pack that is taken in is one effect.
std::shared_ptr<gitops::object_store> observe(std::shared_ptr<gitops::object_store> inner, effects& seen);
/// Every answered push is one effect.
std::unique_ptr<gitops::remote> observe(std::unique_ptr<gitops::remote> inner, effects& seen);
/// All of the above.
void observe(app::surroundings& s, effects& seen);

}  // namespace kubeopera::walk
