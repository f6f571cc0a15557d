// The Deployment controller.
#pragma once

#include "src/testing/sim_engine.hpp"

namespace kubeopera::inline v1::testing::sim {

std::unique_ptr<controller> make_deployment_controller(environment& env);
std::unique_ptr<controller> make_replica_set_controller(environment& env);

}  // namespace kubeopera::inline v1::testing::sim
