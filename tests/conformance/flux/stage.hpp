// What a Flux scenario is played on: a simulated cluster with Flux, a Git repository behind a smart HTTP handler, and open
// watches.
#pragma once

#include "tests/unit/testing/sim_rig.hpp"

#include <kubeopera/gitops/server.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kubeopera::conformance::flux {

/// A repository that the git program writes, served as http://127.0.0.1:18090/fleet.git without a socket.
class git_place {
 public:
  git_place();
  ~git_place();
  /// Commits files (empty content removes one) and pushes; rewrite: replaces the last commit and forces.
  void commit(const std::map<std::string, std::string>& files, bool rewrite = false);
  result<std::pair<std::shared_ptr<http::transport>, std::string>> open(const std::string& url);
  std::atomic<bool> down{false};
  const std::string& directory() const { return directory_; }

 private:
  void git(const std::string& arguments);
  std::string directory_;
};

/// The events of one object since it was opened.
class tape {
 public:
  tape(std::shared_ptr<kube::client> client, asio::any_io_executor executor, kube::resource_type type, kube::object_key key,
       std::string rv);
  ~tape();
  std::vector<json::object> objects() const;

 private:
  struct state {
    mutable std::mutex mutex;
    std::vector<json::object> seen;
  };
  static asio::awaitable<void> record(std::shared_ptr<kube::client> client, kube::resource_type type, kube::object_key key,
                                      std::string rv, std::shared_ptr<state> s);
  std::shared_ptr<state> state_ = std::make_shared<state>();
  background work_;
};

/// One cluster for a series of scenarios.
class stage {
 public:
  stage();
  git_place git;
  testing_rig::rig cluster;

  void create_source();
  void create_kustomization(const std::string& name, const std::string& path, bool wait = true,
                            const std::string& depends_on = {});
  void poke_source();
  void poke(const std::string& kustomization);
  void patch_source(const std::string& body);
  void patch_kustomization(const std::string& name, const std::string& body);
  /// Waits until the source has the tip of the branch as its artifact and every Kustomization given is Ready for it.
  bool settled(const std::vector<std::string>& kustomizations);
  std::optional<kube::object> source() { return cluster.get(kube::types::git_repositories(), "flux-system", "fleet"); }
  std::optional<kube::object> kustomization(const std::string& name) {
    return cluster.get(kube::types::kustomizations(), "flux-system", name);
  }
  std::unique_ptr<tape> watch(const kube::resource_type& type, const std::string& name);

 private:
  int pokes_ = 0;
};

/// A Deployment as in the recordings; replicas below zero are refused, none leaves them out.
std::string deployment_yaml(const std::string& name, const std::string& image, std::optional<int> replicas);
std::string config_map_yaml(const std::string& name, const std::string& value);

}  // namespace kubeopera::conformance::flux
