// libgit2's object database, the only part of libgit2 that is used: reading objects and indexing packs of others.
#pragma once

#include "src/gitops/oid.hpp"

#include <kubeopera/gitops/store.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

struct git_odb;

namespace kubeopera::inline v1::gitops::detail {

/// Thread-safe. Survives packs that other processes replace: a failed read is tried once more on a fresh view.
class object_database {
 public:
  /// repository is a bare repository's directory. Errors: unavailable, unsupported (a libgit2 with known holes).
  static result<std::unique_ptr<object_database>> open(const std::string& repository);
  bool contains(const oid& id) const;
  /// Errors: not_found, data_loss (damaged, or of another type), unavailable.
  result<std::string> read(const oid& id, object_type type) const;
  result<std::unique_ptr<pack_writer>> begin_pack() const;
  /// Takes a fresh view of the packs on disk.
  result<void> reopen() const;

 private:
  explicit object_database(std::string repository) : repository_(std::move(repository)) {}
  std::shared_ptr<git_odb> view() const;
  std::string repository_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<git_odb> odb_;
};

/// Writes, syncs and installs a pack of our own with its index: three syncs.
result<void> write_pack(const std::string& repository, const std::string& name, std::string_view pack, std::string_view index);

/// Moves a synced pack and index into objects/pack under their name and syncs the directory.
result<void> install_pack(const std::string& repository, const std::string& name, const std::string& pack,
                          const std::string& index);

}  // namespace kubeopera::inline v1::gitops::detail
