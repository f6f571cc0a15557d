// What the product promises, as checks of the model's state: some at every change, the rest when all should be still.
#pragma once

#include "tests/simulation/cluster.hpp"
#include "tests/simulation/database.hpp"
#include "tests/simulation/fleet.hpp"
#include "tests/simulation/flux.hpp"

#include <map>
#include <memory>
#include <string>

namespace kubeopera::simulation {

struct vcluster_model {
  std::shared_ptr<cluster> inside;
  std::shared_ptr<flux> delivery;
};

/// The state that the promises are about.
struct scene {
  engine* e = nullptr;
  std::shared_ptr<database> db;
  std::shared_ptr<cluster> host;
  std::shared_ptr<fleet> git;
  std::map<std::string, vcluster_model> vclusters;
};

class promises {
 public:
  explicit promises(scene& s) : s_(s) {}
  void host_changed(const actor& who, const kube::resource_type& type, const object_ptr& before, const object_ptr& now);
  void deleting(const actor& who, const cluster& where, const kube::resource_type& type, const object& obj);
  void pushed(const fleet_tree& before, const fleet_commit& now);
  void delivered(const outbox_record& row);
  void given_up(const outbox_record& row);
  /// Why the world is not as it should be in the end; empty when it is.
  std::string unsettled() const;

 private:
  void finalizer_gone(const object& app);
  std::string unsettled_app(const std::string& id, const app_history& h) const;
  std::string leftover_of(const std::string& id, const app_history& h) const;
  std::string not_delivered(const api::app_row& row) const;

  scene& s_;
  std::map<std::string, std::string> resource_of_;       // app id -> its one resource
  std::map<std::string, std::int64_t> newest_resource_;  // app id -> newest revision a resource had
  std::map<std::string, std::int64_t> newest_commit_;    // app id -> newest revision committed
  std::map<std::pair<std::string, std::int64_t>, int> commits_;
};

}  // namespace kubeopera::simulation
