// A model of Flux inside one vCluster: fetches the branch late, applies the directory of each Kustomization later still, prunes
// when a Kustomization is deleted. It belongs to the world: it makes no mistakes, it only takes its time.
#pragma once

#include "tests/simulation/cluster.hpp"
#include "tests/simulation/fleet.hpp"

#include <map>
#include <memory>
#include <string>

namespace kubeopera::simulation {

class flux : public std::enable_shared_from_this<flux> {
 public:
  flux(std::shared_ptr<cluster> inside, std::shared_ptr<fleet> origin) : inside_(std::move(inside)), origin_(std::move(origin)) {}
  /// Looks at a change of its cluster.
  void see(const kube::resource_type& type, const object_ptr& before, const object_ptr& now);
  /// What runs in a namespace: the files applied last.
  const std::map<std::string, std::string>* deployed(const std::string& ns) const;

 private:
  void fetch_after(duration delay);
  void fetch();
  void look_after(duration delay, const std::string& app);
  void look(const std::string& app);
  void apply(const std::string& app, const object& k);
  void prune(const std::string& app, const object& k);
  void say(const std::string& app, bool ready, const std::string& reason, bool applied);

  std::shared_ptr<cluster> inside_;
  std::shared_ptr<fleet> origin_;
  std::string artifact_;
  std::map<std::string, std::map<std::string, std::string>> deployed_;
  std::map<std::string, bool> looking_;
  bool polling_ = false;
};

/// The vCluster operator: makes KubeOperaTenants ready, late, and takes them down.
class provisioner : public std::enable_shared_from_this<provisioner> {
 public:
  explicit provisioner(std::shared_ptr<cluster> host) : host_(std::move(host)) {}
  void see(const object_ptr& before, const object_ptr& now);
  /// Says that a tenant is ready, or not.
  void set_ready(const std::string& name, bool ready);
  /// Makes and ends the vCluster behind a tenant.
  std::function<void(const std::string& name)> begin, end;

 private:
  std::shared_ptr<cluster> host_;
};

inline constexpr const char* system_namespace = "kubeopera-system";

}  // namespace kubeopera::simulation
