// A bare repository of this machine as a remote: objects by hard link or copy, the ref by lock file and compare-and-swap.
#include "src/gitops/commit.hpp"
#include "src/gitops/files.hpp"
#include "src/gitops/odb.hpp"
#include "src/gitops/refs.hpp"
#include "src/gitops/tree.hpp"
#include "src/gitops/validate.hpp"
#include "src/gitops/work.hpp"

#include <kubeopera/gitops/committer.hpp>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <unistd.h>
#include <unordered_set>

namespace kubeopera::inline v1::gitops {

namespace {

using namespace detail;

constexpr std::size_t max_copied_pack = std::size_t(64) << 20;

// Copies what a commit needs from one store to another, stopping wherever the other has it already.
class object_copier {
 public:
  object_copier(const object_store& from, object_store& to) : from_(from), to_(to) {}

  result<void> run(const std::string& commit) {
    std::deque<oid> commits;
    KUBEOPERA_TRY(auto first, parse_oid(commit));
    commits.push_back(first);
    // Commits last and the oldest first, for the same reason.
    std::vector<std::pair<oid, std::string>> pending;
    while (!commits.empty()) {
      oid id = commits.front();
      commits.pop_front();
      if (!seen_.insert(id).second || to_.contains(id.hex())) continue;
      KUBEOPERA_TRY(auto bytes, from_.read_object(id.hex(), "commit"));
      KUBEOPERA_TRY(auto parsed, parse_commit(bytes));
      KUBEOPERA_CHECK(copy_tree(parsed.tree));
      for (const auto& p : parsed.parents) commits.push_back(p);
      pending.emplace_back(id, std::move(bytes));
    }
    for (auto it = pending.rbegin(); it != pending.rend(); ++it) pack_.add(object_type::commit, it->first, it->second);
    return flush();
  }

 private:
  // Blobs first, then trees from the leaves up: a tree that is there means that all below it is there, even after a crash.
  result<void> copy_tree(const oid& root) {
    std::vector<oid> trees{root};
    std::vector<std::pair<oid, std::string>> copied;
    while (!trees.empty()) {
      oid id = trees.back();
      trees.pop_back();
      if (!seen_.insert(id).second || to_.contains(id.hex())) continue;
      KUBEOPERA_TRY(auto bytes, from_.read_object(id.hex(), "tree"));
      KUBEOPERA_TRY(auto items, parse_tree(bytes));
      for (const auto& item : items) {
        if (item.directory())
          trees.push_back(item.id());
        else if (item.mode != 0160000)
          KUBEOPERA_CHECK(copy_blob(item.id()));
      }
      copied.emplace_back(id, std::move(bytes));
    }
    for (auto it = copied.rbegin(); it != copied.rend(); ++it) pack_.add(object_type::tree, it->first, it->second);
    return {};
  }

  result<void> copy_blob(const oid& id) {
    if (!seen_.insert(id).second || to_.contains(id.hex())) return {};
    KUBEOPERA_TRY(auto bytes, from_.read_object(id.hex(), "blob"));
    pack_.add(object_type::blob, id, bytes);
    return pack_.size() > max_copied_pack ? flush() : result<void>();
  }

  result<void> flush() {
    if (pack_.count() == 0) return {};
    auto done = pack_.finish();
    pack_ = pack_builder();
    return to_.add_indexed_pack(done.pack, done.index);
  }

  const object_store& from_;
  object_store& to_;
  pack_builder pack_;
  std::unordered_set<oid, oid_hash> seen_;
};

class file_remote : public remote {
 public:
  file_remote(std::string directory, std::shared_ptr<object_store> store)
      : directory_(std::move(directory)), store_(std::move(store)) {
    std::error_code ec;
    shared_ = store_ && std::filesystem::equivalent(directory_, store_->directory(), ec) && !ec;
  }

  bool shares_store() const override { return shared_; }

  task<std::optional<std::string>> tip(const std::string& branch) override {
    KUBEOPERA_CO_CHECK(validate_branch(branch));
    std::error_code ec;
    if (!std::filesystem::exists(directory_ + "/HEAD", ec))
      co_return error(errc::not_found, "GitRepositoryNotFound", "there is no bare repository in that directory")
          .with_detail(directory_);
    KUBEOPERA_CO_TRY(auto id, read_ref(directory_, "refs/heads/" + branch));
    co_return id ? std::optional<std::string>(id->hex()) : std::optional<std::string>();
  }

  task<void> may_push() override {
    for (const char* part : {"/objects/pack", "/refs/heads"})
      if (::access((directory_ + part).c_str(), W_OK | X_OK) != 0)
        co_return error(errc::permission_denied, "GitForbidden", "the repository cannot be written to")
            .with_detail(directory_ + part);
    co_return result<void>();
  }

  task<void> fetch(const std::string& want, const std::vector<std::string>&) override {
    if (shared_) co_return result<void>();
    KUBEOPERA_CO_TRY(auto source, other_side());
    std::function<result<void>()> copy = [&] { return object_copier(*source, *store_).run(want); };
    co_return co_await disk_work().run<void>(std::move(copy));
  }

  task<void> push(const std::string& branch, const std::string& from, const std::string& to, const std::string& pack) override {
    KUBEOPERA_CO_CHECK(validate_branch(branch));
    std::function<result<void>()> work = [&] { return push_now("refs/heads/" + branch, from, to, pack); };
    co_return co_await disk_work().run<void>(std::move(work));
  }

 private:
  result<std::shared_ptr<object_store>> other_side() {
    if (!other_) {
      KUBEOPERA_TRY(other_, open_store(directory_));
    }
    return other_;
  }

  result<void> push_now(const std::string& ref, const std::string& from, const std::string& to, const std::string& pack) {
    std::optional<oid> before;
    if (!from.empty()) {
      KUBEOPERA_TRY(before, parse_oid(from));
    }
    KUBEOPERA_TRY(auto after, parse_oid(to));
    KUBEOPERA_TRY(auto now, read_ref(directory_, ref));
    if (now != before) return error(errc::conflict, "BranchMoved", "the branch has moved meanwhile");
    if (!shared_) KUBEOPERA_CHECK(place_pack(pack));
    return swap_ref(directory_, ref, before, after);
  }

  // Hard links where the store has the pack on the same file system: its bytes are on the disk already.
  result<void> place_pack(const std::string& pack) {
    if (pack.size() < 32) return error(errc::data_loss, "NotAPack", "a pack is too short");
    auto name = "/objects/pack/pack-" + oid::from_raw(pack.data() + pack.size() - 20).hex();
    auto ours = store_->directory() + name, theirs = directory_ + name;
    if (link(ours + ".pack", theirs + ".pack") && link(ours + ".idx", theirs + ".idx"))
      return sync_path(directory_ + "/objects/pack");
    KUBEOPERA_TRY(auto other, other_side());
    KUBEOPERA_TRY(auto index, read_whole(ours + ".idx"));
    return index ? other->add_indexed_pack(pack, *index) : other->add_pack(pack);
  }

  static bool link(const std::string& from, const std::string& to) {
    return ::link(from.c_str(), to.c_str()) == 0 || errno == EEXIST;
  }

  std::string directory_;
  std::shared_ptr<object_store> store_, other_;
  bool shared_ = false;
};

}  // namespace

std::unique_ptr<remote> make_file_remote(std::string directory, std::shared_ptr<object_store> store) {
  return std::make_unique<file_remote>(std::move(directory), std::move(store));
}

}  // namespace kubeopera::inline v1::gitops
