// libgit2 on its best path: git_tree_create_updated from the last commit's tree, loose objects, no worktree and no index.
#include "benchmarks/gitops/fleet.hpp"

#include <git2.h>

#include <cstdlib>

namespace fleet_bench {

namespace {

void must(int rc) {
  if (rc >= 0) return;
  std::fprintf(stderr, "libgit2: %s\n", git_error_last() ? git_error_last()->message : "failed");
  std::exit(1);
}

class with_libgit2 : public contender {
 public:
  with_libgit2(const std::string& repository, bool synced) {
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, synced ? 1 : 0);
    must(git_repository_open_bare(&repository_, repository.c_str()));
    git_oid id;
    must(git_oid_fromstr(&id, tip_of(repository).c_str()));
    must(git_commit_lookup(&tip_, repository_, &id));
  }
  ~with_libgit2() override {
    git_commit_free(tip_);
    git_repository_free(repository_);
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 0);
  }

  double commit(int step, const std::vector<change>& what) override {
    return seconds_of([&] {
      std::vector<std::string> paths;
      std::vector<git_tree_update> updates;
      for (const auto& c : what) {
        for (const auto& [name, content] : c.files) {
          git_tree_update update{};
          update.action = GIT_TREE_UPDATE_UPSERT;
          update.filemode = GIT_FILEMODE_BLOB;
          must(git_blob_create_from_buffer(&update.id, repository_, content.data(), content.size()));
          paths.push_back(c.directory + "/" + name);
          updates.push_back(update);
        }
      }
      for (std::size_t i = 0; i < updates.size(); ++i) updates[i].path = paths[i].c_str();
      write_commit(step, updates, message_of(what));
    });
  }
  std::string tree() override {
    char hex[41] = {};
    git_oid_fmt(hex, git_commit_tree_id(tip_));
    return hex;
  }

 private:
  void write_commit(int step, const std::vector<git_tree_update>& updates, const std::string& message) {
    git_tree *base = nullptr, *tree = nullptr;
    git_oid tree_id, commit_id;
    must(git_commit_tree(&base, tip_));
    must(git_tree_create_updated(&tree_id, repository_, base, updates.size(), updates.data()));
    must(git_tree_lookup(&tree, repository_, &tree_id));
    git_signature* who = nullptr;
    must(git_signature_new(&who, "bench", "bench@localhost", time_of_step(step), 0));
    const git_commit* parents[] = {tip_};
    must(git_commit_create(&commit_id, repository_, nullptr, who, who, nullptr, message.c_str(), tree, 1, parents));
    git_signature_free(who);
    git_tree_free(tree);
    git_tree_free(base);
    git_commit_free(tip_);
    must(git_commit_lookup(&tip_, repository_, &commit_id));
  }

  git_repository* repository_ = nullptr;
  git_commit* tip_ = nullptr;
};

}  // namespace

std::unique_ptr<contender> make_libgit2(const std::string& repository) {
  return std::make_unique<with_libgit2>(repository, false);
}

std::unique_ptr<contender> make_libgit2_synced(const std::string& repository) {
  return std::make_unique<with_libgit2>(repository, true);
}

}  // namespace fleet_bench
