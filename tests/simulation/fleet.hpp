// A model of the fleet repository (one branch, moved by compare-and-swap only) and a committer of it. The committer gathers with
// the product's take_batch() and decides with its push_flow; only objects, packs and transports are left out.
#pragma once

#include "tests/simulation/engine.hpp"

#include <kubeopera/gitops/committer.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kubeopera::simulation {

/// What a directory holds, and which change brought it.
struct directory {
  std::string app;  ///< trailer Kubeopera-App
  std::int64_t revision = 0;
  std::map<std::string, std::string> files;
};

using fleet_tree = std::map<std::string, std::shared_ptr<const directory>>;

struct fleet_commit {
  std::string id, parent;
  fleet_tree tree;
  std::vector<gitops::change> told;  ///< the changes that it brings
};

class fleet {
 public:
  const std::string& tip() const noexcept { return tip_; }
  const fleet_tree& tree() const { return tree_of(tip_); }
  const fleet_tree& tree_of(const std::string& commit) const;
  bool contains(const std::string& commit) const { return places_.contains(commit); }
  bool is_ancestor(const std::string& ancestor, const std::string& descendant) const;
  std::size_t commits() const noexcept { return log_.size(); }
  /// Moves the branch from commit->parent. Errors: conflict.
  result<void> push(std::shared_ptr<const fleet_commit> commit);
  /// Told of each commit when it is on the branch, with the tree before it.
  std::function<void(const fleet_tree& before, const fleet_commit& now)> pushed;

 private:
  std::vector<std::shared_ptr<const fleet_commit>> log_;
  std::map<std::string, std::size_t> places_;
  std::string tip_;
};

std::shared_ptr<gitops::committer> make_model_committer(std::shared_ptr<process> from, std::shared_ptr<fleet> origin, clock& clk,
                                                        std::function<result<void>()> may_push);

}  // namespace kubeopera::simulation
