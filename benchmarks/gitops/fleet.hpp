// The fleet that every contender commits to: apps of five files in the sharded layout, made by git fast-import.
#pragma once

#include <kubeopera/gitops/committer.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fleet_bench {

using kubeopera::gitops::change;

/// What is committed: app number `app` with the image of revision `revision`.
change app_change(int app, int revision, int apps_per_cluster);

/// A bare repository with that many apps at revision 0, made once and kept for the next run.
/// Environment: KUBEOPERA_BENCH_DIR says where (default: /var/tmp/kubeopera-bench-gitops).
std::string fleet_repository(int apps, int apps_per_cluster);
/// A copy of it that the caller may change (packs are hard links), fresh each time; `run` removes them at the end.
std::string fresh_copy(int apps, int apps_per_cluster, const std::string& name);

/// What step i of a run changes: a fixed pseudo-random walk, the same for every contender.
std::vector<change> changes_of_step(int step, int count, int apps, int apps_per_cluster);
/// The message and the time of that step's commit.
std::string message_of(const std::vector<change>& what);
long long time_of_step(int step);

/// Runs a command of the shell; ends the program when it fails.
std::string shell(const std::string& command);
/// The id of main's commit.
std::string tip_of(const std::string& repository);

constexpr int cluster_size = 5000;

/// One way to make commits: each on top of its own last one.
class contender {
 public:
  virtual ~contender() = default;
  /// Commits what; its own work is timed, not the making of its input. Returns seconds.
  virtual double commit(int step, const std::vector<change>& what) = 0;
  /// The root tree of the last commit; not timed.
  virtual std::string tree() = 0;
  /// Syncs to disk of the last commit, where they are counted.
  virtual int syncs() const { return 0; }
};

using contender_maker = std::unique_ptr<contender> (*)(const std::string& repository);

std::unique_ptr<contender> make_ours(const std::string& repository);
std::unique_ptr<contender> make_ours_synced(const std::string& repository);
std::unique_ptr<contender> make_libgit2(const std::string& repository);
std::unique_ptr<contender> make_libgit2_synced(const std::string& repository);
std::unique_ptr<contender> make_fast_import(const std::string& repository);
/// Null where the program is not built: KUBEOPERA_BENCH_GOGIT names it.
std::unique_ptr<contender> make_gogit(const std::string& repository);
/// Null where there is no Python with pygit2: KUBEOPERA_BENCH_PYGIT2 names the interpreter.
std::unique_ptr<contender> make_pygit2(const std::string& repository);

/// Times what it is given.
template <class Work>
double seconds_of(Work&& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The objects that such a commit consists of (type, content), for the floor: hash and deflate them and do nothing else.
std::vector<std::pair<int, std::string>> objects_of_commit(const std::string& repository, int apps, int per_cluster, int count);

}  // namespace fleet_bench
