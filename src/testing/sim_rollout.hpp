// The arithmetic of a Deployment's rolling update and the conditions of its status: pure, no I/O.
// Source: Kubernetes' deployment controller (rolling.go, sync.go, progress.go, util/deployment_util.go).
#pragma once

#include "src/testing/sim_meta.hpp"

#include <string>
#include <vector>

namespace kubeopera::inline v1::testing::sim {

/// What the arithmetic looks at of one ReplicaSet.
struct rs_counts {
  std::string name;
  int spec = 0;      ///< spec.replicas
  int replicas = 0;  ///< status.replicas
  int ready = 0, available = 0;
  std::string created;  ///< creationTimestamp, then name: the order of age
};

struct rollout_spec {
  int replicas = 1;
  bool recreate = false;
  int max_surge = 1, max_unavailable = 0;  ///< resolved against replicas
};

/// replicas, strategy and the resolved fence posts of a Deployment.
rollout_spec rollout_spec_of(const object& deployment);

/// One change of a ReplicaSet's size.
struct scaling {
  std::size_t index = 0;  ///< into the vector that was given
  int to = 0;
  friend bool operator==(const scaling&, const scaling&) = default;
};

/// The size the newest ReplicaSet should have now.
int new_replica_set_size(const rollout_spec& spec, int new_size, int total_size);
/// Which old ReplicaSets give up how many pods now: unhealthy ones first, then healthy ones as far as availability allows.
std::vector<scaling> scale_down_old(const rollout_spec& spec, const rs_counts& newest, const std::vector<rs_counts>& old);
/// Sizes after the total changed in the middle of a rollout; each set keeps its share. index 0 is the newest set.
std::vector<scaling> proportional(const rollout_spec& spec, const std::vector<rs_counts>& sets,
                                  const std::vector<int>& max_annotations);

/// deployment.kubernetes.io/revision of an object; 0 where it has none.
long revision_of(const object& o);
/// Equal templates but for the pod-template-hash label.
bool same_template(const json::value* a, const json::value* b);
/// The hash that names a ReplicaSet.
std::string template_hash(const json::value& pod_template, int collisions);

/// Sets a condition as the controllers do: no change where status and reason are the same; the transition time stays with the
/// status.
void set_deployment_condition(array& conditions, std::string_view type, std::string_view status, std::string_view reason,
                              std::string_view message, const std::string& now);

}  // namespace kubeopera::inline v1::testing::sim
