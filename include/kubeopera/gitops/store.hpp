// A bare Git repository on disk: reading commits and trees, taking in packs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/result.hpp>

namespace kubeopera::inline v1::gitops {

struct tree_entry {
  std::string name;
  std::string id;        ///< 40 hex
  std::uint32_t mode = 0;  ///< 0100644, 040000 ...
};

struct commit_info {
  std::string id, tree;
  std::vector<std::string> parents;
  std::string author_name, author_email, message;
  system_time time;
};

/// Thread safety: all members may be called concurrently. They block on the local disk only: call through offload on hot loops.
/// Errors of all: not_found (no such object), data_loss (damaged), unavailable (disk).
class object_store {
 public:
  virtual ~object_store() = default;
  virtual const std::string& directory() const = 0;
  virtual bool contains(const std::string& id) const = 0;
  virtual result<commit_info> read_commit(const std::string& id) const = 0;
  /// Entries of the tree at path of a commit ("" is the root).
  virtual result<std::vector<tree_entry>> list_tree(const std::string& commit, const std::string& path) const = 0;
  virtual result<std::string> read_file(const std::string& commit, const std::string& path) const = 0;
  /// Every file under a directory of a commit, as (path relative to it, content), sorted by path.
  virtual result<std::vector<std::pair<std::string, std::string>>> read_files(const std::string& commit, const std::string& directory) const = 0;
  /// The id of the tree or blob at path; not_found where there is none.
  virtual result<std::string> id_at(const std::string& commit, const std::string& path) const = 0;
  /// True when ancestor equals descendant or is reachable from it.
  virtual result<bool> is_ancestor(const std::string& ancestor, const std::string& descendant) const = 0;
  /// Takes in a pack: verifies, indexes, syncs to disk. complete=false allows deltas against objects that are there already.
  virtual result<void> add_pack(const std::string& pack) = 0;
};

/// Opens, or makes, the bare repository in directory.
result<std::shared_ptr<object_store>> open_store(const std::string& directory);

}  // namespace kubeopera::inline v1::gitops
