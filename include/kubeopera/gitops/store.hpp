// A bare Git repository on disk: reading commits and trees, taking in packs, keeping one bookmark a branch.
// Not here: who moves branches (committer.hpp) and how objects travel (the remotes).
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::gitops {

struct tree_entry {
  std::string name;
  std::string id;          ///< 40 hex
  std::uint32_t mode = 0;  ///< 0100644, 040000 ...
};

struct commit_info {
  std::string id, tree;
  std::vector<std::string> parents;
  std::string author_name, author_email, message;
  system_time time;
};

/// Takes in one pack piece by piece, as it comes from the wire. Dropping it without commit() leaves nothing behind.
/// Thread safety: one call at a time.
class pack_writer {
 public:
  virtual ~pack_writer() = default;
  /// Errors: data_loss (not a pack), unavailable (disk).
  virtual result<void> append(std::string_view bytes) = 0;
  /// Completes a thin pack from the store, indexes it, syncs it to disk and makes it readable. Errors: as above.
  virtual result<void> commit() = 0;
};

/// Thread safety: all members may be called concurrently. They block on the local disk only: call through offload on hot loops.
/// Errors of all: not_found (no such object), data_loss (damaged), unavailable (disk), invalid_argument (not an object id).
/// Reading fleet content also fails with failed_precondition where a path holds a symbolic link, a submodule or an executable.
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
  virtual result<std::vector<std::pair<std::string, std::string>>> read_files(const std::string& commit,
                                                                              const std::string& directory) const = 0;
  /// The id of the tree or blob at path; not_found where there is none.
  virtual result<std::string> id_at(const std::string& commit, const std::string& path) const = 0;
  /// True when ancestor equals descendant or is reachable from it.
  virtual result<bool> is_ancestor(const std::string& ancestor, const std::string& descendant) const = 0;
  /// Takes in a pack: verifies, indexes, syncs to disk. Deltas against objects that are there already are allowed.
  virtual result<void> add_pack(const std::string& pack) = 0;
  /// The same for a pack that arrives in pieces.
  virtual result<std::unique_ptr<pack_writer>> begin_pack() = 0;
  /// Takes in a pack of our own making together with its index (version 2), which is trusted: three syncs, no re-reading.
  virtual result<void> add_indexed_pack(const std::string& pack, const std::string& index) = 0;
  /// An object's bytes. type is "commit", "tree" or "blob"; another type is data_loss.
  virtual result<std::string> read_object(const std::string& id, std::string_view type) const = 0;
  /// The commit that this store last saw a remote branch at, kept as a ref so that nothing prunes its objects; a hint only.
  virtual result<std::optional<std::string>> bookmark(const std::string& branch) const = 0;
  virtual result<void> set_bookmark(const std::string& branch, const std::string& commit) = 0;
  /// Merges small packs of our own making once there are more than max_packs of them; readers go on meanwhile. What has been
  /// merged is removed by a later call, once it has been out of use for `grace`, so that a slow reader keeps its packs.
  virtual result<void> compact(std::size_t max_packs = 64, duration grace = std::chrono::seconds(30)) = 0;
};

/// Opens, or makes, the bare repository in directory (HEAD points to refs/heads/main). Errors: unavailable, failed_precondition.
result<std::shared_ptr<object_store>> open_store(const std::string& directory);

}  // namespace kubeopera::inline v1::gitops
