// What removes things: the garbage collector and the namespace controller.
#pragma once

#include "src/testing/sim_engine.hpp"
#include "src/testing/sim_types.hpp"

namespace kubeopera::inline v1::testing::sim {

/// Owner references: background, foreground and orphan. Follows every kind the cluster serves and keeps registry up to date.
std::unique_ptr<controller> make_garbage_collector(environment& env, type_registry& registry);
/// Empties and ends namespaces that are being deleted.
std::unique_ptr<controller> make_namespace_controller(environment& env, type_registry& registry);

}  // namespace kubeopera::inline v1::testing::sim
