// The three readers.
#include "tests/integration/git_races/readers.hpp"

#include "tests/support/figures.hpp"
#include "tests/unit/gitops/git_tool.hpp"

#include <git2.h>

#include <set>

namespace races {

using namespace git_tool;

namespace {

struct counts {
  std::size_t commits = 0, trees = 0, blobs = 0;
  std::string text() const {
    return std::to_string(commits) + " commits, " + std::to_string(trees) + " trees, " + std::to_string(blobs) + " blobs";
  }
};

std::string by_git(const std::string& repository) {
  auto kinds = git(repository, "rev-list --objects main | cut -d' ' -f1 | git -C '" + repository +
                                   "' cat-file --batch-check='%(objecttype)' | sort | uniq -c");
  counts out;
  std::istringstream words(kinds);
  std::size_t n;
  std::string kind;
  while (words >> n >> kind) (kind == "commit" ? out.commits : kind == "tree" ? out.trees : out.blobs) = n;
  return out.text();
}

std::string key(const git_oid* id) { return {reinterpret_cast<const char*>(id->id), GIT_OID_RAWSZ}; }

class libgit2_walk {
 public:
  explicit libgit2_walk(const std::string& path) {
    git_libgit2_init();
    check(git_repository_open_bare(&repository_, path.c_str()), "opening");
  }
  ~libgit2_walk() {
    git_repository_free(repository_);
    git_libgit2_shutdown();
  }
  std::string run() {
    git_revwalk* walk = nullptr;
    check(git_revwalk_new(&walk, repository_), "walking");
    check(git_revwalk_push_ref(walk, "refs/heads/main"), "walking");
    git_oid id;
    while (git_revwalk_next(&id, walk) == 0) {
      ++seen_.commits;
      git_commit* commit = nullptr;
      check(git_commit_lookup(&commit, repository_, &id), "a commit");
      tree(git_commit_tree_id(commit));
      git_commit_free(commit);
    }
    git_revwalk_free(walk);
    return seen_.text();
  }

 private:
  static void check(int rc, const char* doing) {
    if (rc < 0) ADD_FAILURE() << "libgit2, " << doing << ": " << (git_error_last() ? git_error_last()->message : "failed");
  }
  void tree(const git_oid* id) {
    if (!known_.insert(key(id)).second) return;
    ++seen_.trees;
    git_tree* t = nullptr;
    check(git_tree_lookup(&t, repository_, id), "a tree");
    for (std::size_t i = 0; i < git_tree_entrycount(t); ++i) {
      const auto* entry = git_tree_entry_byindex(t, i);
      if (git_tree_entry_type(entry) == GIT_OBJECT_TREE) {
        tree(git_tree_entry_id(entry));
      } else if (known_.insert(key(git_tree_entry_id(entry))).second) {
        ++seen_.blobs;
        git_blob* b = nullptr;
        check(git_blob_lookup(&b, repository_, git_tree_entry_id(entry)), "a blob");
        git_blob_free(b);
      }
    }
    git_tree_free(t);
  }

  git_repository* repository_ = nullptr;
  std::set<std::string> known_;
  counts seen_;
};

// The go tool with the caller's own caches; the repository's tests run git without them.
std::string go_environment() {
  std::string out = "unset GOFLAGS; ";
  if (const char* home = std::getenv("HOME")) out += "export HOME='" + std::string(home) + "'; ";
  return out;
}

struct gogit_program {
  std::string path, missing;
};

const gogit_program& gogit() {
  static const gogit_program built = [] {
    gogit_program out;
    static temp_folder folder;
    auto source = std::string(KUBEOPERA_TESTS_DIR) + "/integration/git_races/gogit";
    auto run = [&](const std::string& what) { return shell(go_environment() + "cd '" + source + "' && " + what); };
    if (run("go version").code != 0) {
      out.missing = "go is not installed";
    } else if (auto got = run("go mod download"); got.code != 0) {
      out.missing = "the Go module proxy does not answer: " + got.text;
    } else {
      out.path = folder / "gogit";
      auto made = run("CGO_ENABLED=0 go build -mod=readonly -trimpath -o '" + out.path + "' .");
      EXPECT_EQ(made.code, 0) << made.text;
    }
    return out;
  }();
  return built;
}

}  // namespace

const std::string& why_no_gogit() { return gogit().missing; }

void check_readers(const std::string& repository) {
  EXPECT_EQ(fsck(repository), "");
  auto expected = by_git(repository);
  EXPECT_EQ(libgit2_walk(repository).run(), expected);
  const auto& go = gogit();
  if (go.path.empty()) {
    std::cout << "go-git is not asked: " << go.missing << std::endl;
    return;
  }
  auto told = shell("'" + go.path + "' '" + repository + "'");
  EXPECT_EQ(told.code, 0) << told.text;
  EXPECT_EQ(told.text, expected + "\n");
}

}  // namespace races
