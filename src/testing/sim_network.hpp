// Services, Ingresses and what limits or runs pods besides Deployments.
#pragma once

#include "src/testing/sim_engine.hpp"

namespace kubeopera::inline v1::testing::sim {

const resource_type& endpoint_slices();
std::unique_ptr<controller> make_endpoints_controller(environment& env);
std::unique_ptr<controller> make_ingress_controller(environment& env);
std::unique_ptr<controller> make_quota_controller(environment& env);
std::unique_ptr<controller> make_autoscaler(environment& env);
std::unique_ptr<controller> make_disruption_controller(environment& env);
std::unique_ptr<controller> make_claim_controller(environment& env);
std::unique_ptr<controller> make_job_controller(environment& env);

/// The number a Service port leads to in a pod; 0 where a named port is missing.
std::int64_t target_port(const object& service_port, const object& pod);

}  // namespace kubeopera::inline v1::testing::sim
