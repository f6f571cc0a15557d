// Flux in the simulated cluster: source-controller for GitRepositories, kustomize-controller for Kustomizations.
// Both write status step by step as Flux 1.9 was recorded doing it: conditions first, then the rest, in two patches.
#pragma once

#include "src/testing/sim_state.hpp"

namespace kubeopera::inline v1::testing::sim {

/// Adds both controllers to the simulator's loop.
void add_flux(simulator::state& s);
/// Installs the CRDs and the namespace. Errors: those of the client.
task<void> install_flux(environment& env);
/// The CustomResourceDefinitions of GitRepository and Kustomization, reduced to what the simulator reads.
std::vector<object> flux_crds();

/// A controller whose objects are worked on at the same time, each by one coroutine that may wait long.
class worker_controller : public controller {
 public:
  using controller::controller;
  task<void> reconcile(const object_key& key) override;
  task<void> stop() override;

 protected:
  /// One pass over the object; the wait until the next one, none for not by itself.
  virtual task<std::optional<duration>> pass(object_key key) = 0;

 private:
  struct worker {
    bool running = false, dirty = false;
    int failures = 0;
    background work;
  };
  asio::awaitable<void> work(object_key key);
  std::map<object_key, worker> workers_;
};

/// The status of a Flux object while it is being worked on.
class flux_status {
 public:
  flux_status(environment& env, const resource_type& type, const object& obj, std::string manager);
  const object& obj() const noexcept { return obj_; }
  std::int64_t generation() const noexcept { return kube::generation_of(obj_); }
  /// Everything in status but the conditions; changes are written by patch().
  object& rest() noexcept { return rest_; }
  json::array& conditions() noexcept { return conditions_; }
  const object* find(std::string_view type) const;
  bool is_true(std::string_view type) const;
  void set(std::string_view type, std::string_view status, std::string_view reason, std::string message);
  void drop(std::string_view type);
  /// Writes what changed: the conditions, then the rest. Nothing while held.
  task<void> patch();
  /// Writes what changed, all in one, and ends a hold.
  task<void> patch_at_once();
  void hold(bool on) noexcept { held_ = on; }
  bool held() const noexcept { return held_; }
  /// Writes metadata.finalizers.
  task<void> set_finalizers(json::array finalizers);

 private:
  task<void> write(object status);
  object changed_rest() const;
  environment& env_;
  resource_type type_;
  std::string manager_;
  object obj_, rest_, rest_written_;
  json::array conditions_;
  std::string conditions_written_;
  bool held_ = false;
};

inline constexpr std::string_view flux_finalizer = "finalizers.fluxcd.io";
inline constexpr std::string_view flux_request = "reconcile.fluxcd.io/requestedAt";

std::unique_ptr<controller> make_source_controller(environment& env, fetched_sources& sources);
std::unique_ptr<controller> make_kustomize_controller(environment& env, fetched_sources& sources, type_registry& registry);

}  // namespace kubeopera::inline v1::testing::sim
