// Scheduler and kubelet: binding, simulated containers, probes, restarts and ends.
#pragma once

#include "src/testing/sim_engine.hpp"

#include <mutex>

namespace kubeopera::inline v1::testing::sim {

/// What simulator::fail() set. Thread-safe.
class fault_table {
 public:
  void set(std::string image, fault_kind kind);
  void clear(const std::string& image);
  std::optional<fault_kind> find(const std::string& image) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, fault_kind> rules_;
};

/// What the image's name, command and the pod's annotations ask for; see simulator.hpp.
fault_kind fault_by_name(const object& pod, const object& container);
fault_kind fault_of(const object& pod, const object& container, const fault_table& table);

class log_store;

std::unique_ptr<controller> make_scheduler(environment& env, fault_table& faults);
/// Removes pods that are to end; takes precedence over everything.
std::unique_ptr<controller> make_pod_ender(environment& env, log_store& logs);
/// Runs pods that are bound; comes last.
std::unique_ptr<controller> make_kubelet(environment& env, fault_table& faults, log_store& logs);
/// The error text a runtime gives when it cannot pull an image.
std::string pull_error(std::string_view image);

}  // namespace kubeopera::inline v1::testing::sim
