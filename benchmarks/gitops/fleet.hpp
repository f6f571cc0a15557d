// The fleet that every contender commits to: apps of five files in the sharded layout, made by git fast-import.
#pragma once

#include <kubeopera/gitops/committer.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fleet_bench {

/// What is committed: app number `app` with the image of revision `revision`.
kubeopera::gitops::change app_change(int app, int revision, int apps_per_cluster);

/// A bare repository with that many apps at revision 0, made once and kept for the next run.
/// Environment: KUBEOPERA_BENCH_DIR says where (default: the system's folder for temporary files).
std::string fleet_repository(int apps, int apps_per_cluster);
/// A copy of it that the caller may change (packs are hard links), fresh each time.
std::string fresh_copy(int apps, int apps_per_cluster, const std::string& name);

/// The apps that step i of a run changes: a fixed pseudo-random walk, the same for every contender.
std::vector<int> apps_of_step(int step, int count, int apps);

/// Runs a command of the shell; ends the program when it fails.
std::string shell(const std::string& command);
/// The id of main's tree.
std::string tip_of(const std::string& repository);

constexpr int cluster_size = 5000;

/// Commits `count` changed apps of `step` on top of its own last commit.
class contender {
 public:
  virtual ~contender() = default;
  virtual void commit(int step, int count) = 0;
  /// The root tree of the last commit; not timed.
  virtual std::string tree() = 0;
};

std::unique_ptr<contender> make_ours(const std::string& repository, int apps, int per_cluster, bool synced);
std::unique_ptr<contender> make_libgit2(const std::string& repository, int apps, int per_cluster, bool synced);
std::unique_ptr<contender> make_fast_import(const std::string& repository, int apps, int per_cluster);

/// The objects that such a commit consists of (type, content), for the floor: hash and deflate them and do nothing else.
std::vector<std::pair<int, std::string>> objects_of_commit(const std::string& repository, int apps, int per_cluster, int count);

}  // namespace fleet_bench
