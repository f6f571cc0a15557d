// What goes into one batch, and the commit that it becomes. Pure but for the store it reads.
#pragma once

#include "src/gitops/pack.hpp"
#include "src/gitops/tree.hpp"

#include <kubeopera/gitops/committer.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

/// A change that waits, and its answer once there is one.
struct pending_change {
  explicit pending_change(change c) : what(std::move(c)) {}
  change what;
  std::optional<result<receipt>> answer;  // guarded by the committer's mutex
  bool taken = false;
  notifier answered;
};

using pending_list = std::vector<std::shared_ptr<pending_change>>;

/// A batch that holds this much takes no more.
constexpr std::size_t max_batch_bytes = std::size_t(16) << 20;

/// Takes changes off the front of queue, at most max, up to one that lies inside or around a directory already taken
/// (the order of the two would matter).
pending_list take_batch(std::deque<std::shared_ptr<pending_change>>& queue, std::size_t max);

/// The outcome of building a batch on a base.
struct built_batch {
  bool differs = false;
  oid commit;                 ///< set where differs
  finished_pack pack;         ///< everything the commit needs beyond base; set where differs
  std::vector<bool> changed;  ///< for each change of the batch
  std::vector<std::optional<error>> failed;
};

/// Builds batches on a tip, with the trees of the last ones kept. Not thread-safe.
class batch_builder {
 public:
  batch_builder(std::shared_ptr<object_store> store, std::string author_name, std::string author_email);
  /// base: 40 hex or "" for an empty repository. Errors: what the store returns.
  result<built_batch> build(const pending_list& batch, const std::string& base, std::int64_t now);

 private:
  struct base_commit {
    std::optional<oid> id, tree;
    std::int64_t time = 0;
  };
  result<base_commit> load_base(const std::string& base);
  result<std::shared_ptr<const std::string>> read_tree(const oid& id);

  std::shared_ptr<object_store> store_;
  std::string author_name_, author_email_;
  tree_cache cache_;
  base_commit last_;  // the commit made last: mostly the next base
};

}  // namespace kubeopera::inline v1::gitops::detail
