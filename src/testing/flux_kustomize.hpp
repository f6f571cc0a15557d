// One reconciliation of a Kustomization: apply, prune and health, apart from the status that tells about it.
#pragma once

#include "src/testing/flux_build.hpp"
#include "src/testing/flux_controllers.hpp"

#include <map>

namespace kubeopera::inline v1::testing::sim {

/// An entry of status.inventory: what was applied.
struct inventory_entry {
  object_key key;
  std::string group, kind, version;
  std::string id() const { return key.ns + "_" + key.name + "_" + group + "_" + kind; }
  static std::optional<inventory_entry> parse(std::string_view id, std::string_view version);
};

std::vector<inventory_entry> inventory_of(const object& status);
/// In the order of applying, so that pruning backwards removes definitions last.
object inventory_json(const std::vector<inventory_entry>& entries);

/// Objects that were found to be as wanted. Applying the same again to an object that nobody has written since changes nothing,
/// so the dry run is spared: a new commit costs every Kustomization a look at its objects, not an apply of each.
class settled_objects {
 public:
  bool holds(const resource_type& type, const object& now, const std::string& wanted) const;
  void remember(const resource_type& type, const object& now, std::string wanted);
  void forget(const resource_type& type, const object_key& key) { all_.erase({type.plural + "." + type.group, key}); }

 private:
  struct state {
    std::string uid, resource_version, wanted;
  };
  std::map<std::pair<std::string, object_key>, state> all_;
};

/// Applies and removes objects as kustomize-controller does. Lives for one pass.
class applier {
 public:
  applier(environment& env, type_registry& registry, settled_objects& settled, object_key owner);
  /// Every object of a stage is checked with a dry run before any is written. Fills entries and changes ("Deployment/shop/a
  /// created"). Errors: failed_precondition (reason ReconciliationFailed, the message Flux gives).
  task<void> apply(std::vector<object> objects);
  /// Deletes what is in before and not among the entries; "ConfigMap/shop/b2 deleted" goes to changes.
  task<void> prune(std::vector<inventory_entry> before);
  std::vector<inventory_entry> entries;
  std::vector<std::string> changes;

 private:
  task<resource_type> type_of(const object& o);
  task<object> dry_run(resource_type type, const object& o);
  task<void> stage(std::vector<object> objects);
  task<void> wait_established(std::vector<object> objects);
  environment& env_;
  type_registry& registry_;
  settled_objects& settled_;
  object_key owner_;
};

}  // namespace kubeopera::inline v1::testing::sim
