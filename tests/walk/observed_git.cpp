// Git: a pack on disk is an effect, a moved branch is another.
#include "tests/walk/observed.hpp"

namespace kubeopera::walk {

namespace {

error disk_full() { return {errc::unavailable, "Disk", "writing a file failed: No space left on device"}; }

class observed_store final : public gitops::object_store {
 public:
  observed_store(std::shared_ptr<gitops::object_store> inner, effects& seen) : inner_(std::move(inner)), seen_(seen) {}
  const std::string& directory() const override { return inner_->directory(); }
  bool contains(const std::string& id) const override { return inner_->contains(id); }
  result<gitops::commit_info> read_commit(const std::string& id) const override { return inner_->read_commit(id); }
  result<std::vector<gitops::tree_entry>> list_tree(const std::string& c, const std::string& path) const override {
    return inner_->list_tree(c, path);
  }
  result<std::string> read_file(const std::string& c, const std::string& path) const override {
    return inner_->read_file(c, path);
  }
  result<std::vector<std::pair<std::string, std::string>>> read_files(const std::string& c, const std::string& d) const override {
    return inner_->read_files(c, d);
  }
  result<std::string> id_at(const std::string& c, const std::string& path) const override { return inner_->id_at(c, path); }
  result<bool> is_ancestor(const std::string& a, const std::string& d) const override { return inner_->is_ancestor(a, d); }
  result<void> add_pack(const std::string& pack) override {
    return written("pack", [&] { return inner_->add_pack(pack); });
  }
  result<std::unique_ptr<gitops::pack_writer>> begin_pack() override { return inner_->begin_pack(); }
  result<void> add_indexed_pack(const std::string& pack, const std::string& index) override {
    return written("indexed pack", [&] { return inner_->add_indexed_pack(pack, index); });
  }
  result<std::string> read_object(const std::string& id, std::string_view type) const override {
    return inner_->read_object(id, type);
  }
  result<std::optional<std::string>> bookmark(const std::string& branch) const override { return inner_->bookmark(branch); }
  result<void> set_bookmark(const std::string& branch, const std::string& commit) override {
    return written("bookmark", [&] { return inner_->set_bookmark(branch, commit); });
  }
  result<void> compact(std::size_t max_packs, duration grace) override { return inner_->compact(max_packs, grace); }

 private:
  template <class Work>
  result<void> written(const std::string& what, const Work& work) {
    if (seen_.before(kind::pack, what)) return disk_full();
    KUBEOPERA_CHECK(work());
    if (seen_.after(kind::pack, what)) return disk_full();  // written, but its sync failed
    return {};
  }
  std::shared_ptr<gitops::object_store> inner_;
  effects& seen_;
};

class observed_remote final : public gitops::remote {
 public:
  observed_remote(std::unique_ptr<gitops::remote> inner, effects& seen) : inner_(std::move(inner)), seen_(seen) {}
  task<std::optional<std::string>> tip(const std::string& branch) override { co_return co_await inner_->tip(branch); }
  task<void> fetch(const std::string& want, const std::vector<std::string>& have) override {
    co_return co_await inner_->fetch(want, have);
  }
  task<void> push(const std::string& branch, const std::string& from, const std::string& to, const std::string& pack) override {
    auto what = from.substr(0, 8) + ".." + to.substr(0, 8);
    if (seen_.before(kind::push, what)) co_return failure();
    KUBEOPERA_CO_CHECK(co_await inner_->push(branch, from, to, pack));
    if (seen_.after(kind::push, what)) co_return failure();
    co_return result<void>();
  }
  bool shares_store() const override { return inner_->shares_store(); }

 private:
  error failure() const {
    switch (seen_.what()) {
      case fault::conflict:
        return {errc::conflict, "BranchMoved", "the branch has moved meanwhile"};
      case fault::refuse:
        return {errc::permission_denied, "PushRefused", "the Git server refused the push: injected"};
      case fault::timeout_before:
      case fault::timeout_after:
        return {errc::deadline_exceeded, "DeadlineExceeded", "no answer in time"};
      default:
        return {errc::unavailable, "ConnectionLost", "the connection to the Git server was cut"};
    }
  }
  std::unique_ptr<gitops::remote> inner_;
  effects& seen_;
};

}  // namespace

std::shared_ptr<gitops::object_store> observe(std::shared_ptr<gitops::object_store> inner, effects& seen) {
  return std::make_shared<observed_store>(std::move(inner), seen);
}

std::unique_ptr<gitops::remote> observe(std::unique_ptr<gitops::remote> inner, effects& seen) {
  return std::make_unique<observed_remote>(std::move(inner), seen);
}

}  // namespace kubeopera::walk
