// What the racing writers did, and the reading of the final history by git itself: nothing lost, nothing twice, nothing forced.
#pragma once

#include "tests/integration/gitops/harness.hpp"

#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace races {

using namespace harness;

/// A change that was answered. Every change of a race has a revision of its own.
struct answered {
  std::string app, revision;
  receipt got;
};

/// Thread-safe.
class ledger {
 public:
  void add(answered a) {
    std::lock_guard lock(mutex_);
    all_.push_back(std::move(a));
  }
  std::vector<answered> all() const {
    std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<answered> all_;
};

/// Every tip that branch main of a repository is at while this lives, by the kernel's word on its file.
class tip_watch {
 public:
  explicit tip_watch(const std::string& repository);
  ~tip_watch();
  /// Ends the watch.
  std::set<std::string> seen();

 private:
  void watch();
  void look();
  std::string file_;
  int inotify_ = -1, stop_[2] = {-1, -1};
  std::set<std::string> seen_;
  std::thread thread_;
};

/// What a commit's trailers tell: (app, revision) in order.
struct told_commit {
  std::string id;
  std::vector<std::pair<std::string, std::string>> changes;
};

/// The history of main, oldest first, as `git log` reads it.
std::vector<told_commit> read_history(const std::string& repository);

struct expectations {
  /// Receipts say `changed`: false where answers were lost on the way and asked for again.
  bool receipts_are_exact = true;
  std::string vcluster = "team";
};

/// Fails the test unless: each answered change is in the history once, in the commit that its receipt names; each app's file is
/// that of the last revision told of it; each receipt's commit and each tip is an ancestor of the final one; the history is one
/// line. Returns the commits that carry changes.
int check_history(const std::string& repository, const ledger& done, const std::set<std::string>& tips,
                  expectations what = expectations());

/// `git log --grep` finds exactly one commit for each of some answered changes.
void check_grep(const std::string& repository, const ledger& done, std::size_t at_most = 20);

/// A counter of a registry's text.
long long counter(metrics& m, const std::string& name);

}  // namespace races
