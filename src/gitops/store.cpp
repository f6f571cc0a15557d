// The object store: a bare repository in a directory.
#include "src/gitops/commit.hpp"
#include "src/gitops/compact.hpp"
#include "src/gitops/files.hpp"
#include "src/gitops/odb.hpp"
#include "src/gitops/refs.hpp"
#include "src/gitops/tree.hpp"
#include "src/gitops/validate.hpp"

#include <kubeopera/gitops/store.hpp>

#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>

namespace kubeopera::inline v1::gitops {

namespace {

using namespace detail;

// Parents by commit, remembered: questions about ancestry come often and mostly about the same stretch of history.
class ancestry {
 public:
  using parents_reader = std::function<result<std::vector<oid>>(const oid&)>;

  result<bool> reaches(const oid& from, const oid& wanted, const parents_reader& read) {
    if (from == wanted) return true;
    // What wanted was made from cannot lead to it: that is where the walk ends in a history that is mostly one line.
    auto before = parents_of(wanted, read);
    if (!before && before.error().code() == errc::not_found) return false;
    if (!before) return before.error();
    std::unordered_set<oid, oid_hash> seen(before->begin(), before->end());
    std::deque<oid> queue;
    if (seen.insert(from).second) queue.push_back(from);
    while (!queue.empty()) {
      oid at = queue.front();
      queue.pop_front();
      if (at == wanted) return true;
      KUBEOPERA_TRY(auto parents, parents_of(at, read));
      for (const auto& p : parents)
        if (seen.insert(p).second) queue.push_back(p);
    }
    return false;
  }

 private:
  result<std::vector<oid>> parents_of(const oid& id, const parents_reader& read) {
    {
      std::lock_guard lock(mutex_);
      if (auto it = known_.find(id); it != known_.end()) return it->second;
    }
    KUBEOPERA_TRY(auto parents, read(id));
    std::lock_guard lock(mutex_);
    if (known_.size() > 1'000'000) known_.clear();
    known_.emplace(id, parents);
    return parents;
  }

  std::mutex mutex_;
  std::unordered_map<oid, std::vector<oid>, oid_hash> known_;
};

error no_such_path(const std::string& path) {
  return error(errc::not_found, "PathNotFound", "the commit has nothing at that path").with_context("path", path);
}

error unfit_mode(const std::string& path) {
  return error(errc::failed_precondition, "UnfitFileMode",
               "fleet content may not hold symbolic links, submodules or executable files")
      .with_context("path", path);
}

class disk_store : public object_store {
 public:
  disk_store(std::string directory, std::unique_ptr<object_database> odb)
      : directory_(std::move(directory)), odb_(std::move(odb)) {}

  const std::string& directory() const override { return directory_; }

  bool contains(const std::string& id) const override {
    auto parsed = oid::parse(id);
    return parsed && odb_->contains(*parsed);
  }

  result<commit_info> read_commit(const std::string& id) const override {
    KUBEOPERA_TRY(auto parsed, commit_at(id));
    commit_info out;
    out.id = id;
    out.tree = parsed.tree.hex();
    for (const auto& p : parsed.parents) out.parents.push_back(p.hex());
    out.author_name = std::move(parsed.author_name);
    out.author_email = std::move(parsed.author_email);
    out.message = std::move(parsed.message);
    out.time = system_time(std::chrono::seconds(parsed.time));
    return out;
  }

  result<std::vector<tree_entry>> list_tree(const std::string& commit, const std::string& path) const override {
    KUBEOPERA_TRY(auto at, find(commit, path));
    if (at.mode != mode_directory)
      return error(errc::not_found, "NotADirectory", "the path is a file").with_context("path", path);
    KUBEOPERA_TRY(auto bytes, odb_->read(at.id, object_type::tree));
    KUBEOPERA_TRY(auto items, parse_tree(bytes));
    std::vector<tree_entry> out;
    for (const auto& item : items) out.push_back({std::string(item.name), item.id().hex(), item.mode});
    return out;
  }

  result<std::string> read_file(const std::string& commit, const std::string& path) const override {
    KUBEOPERA_TRY(auto at, find(commit, path));
    if (at.mode == mode_directory)
      return error(errc::not_found, "IsADirectory", "the path is a directory").with_context("path", path);
    if (at.mode != mode_file) return unfit_mode(path);
    return odb_->read(at.id, object_type::blob);
  }

  result<std::vector<std::pair<std::string, std::string>>> read_files(const std::string& commit,
                                                                      const std::string& directory) const override {
    KUBEOPERA_TRY(auto at, find(commit, directory));
    if (at.mode != mode_directory)
      return error(errc::not_found, "NotADirectory", "the path is a file").with_context("path", directory);
    std::vector<std::pair<std::string, std::string>> out;
    KUBEOPERA_CHECK(collect(at.id, "", 0, out));
    std::sort(out.begin(), out.end());
    return out;
  }

  result<std::string> id_at(const std::string& commit, const std::string& path) const override {
    KUBEOPERA_TRY(auto at, find(commit, path));
    return at.id.hex();
  }

  result<bool> is_ancestor(const std::string& ancestor, const std::string& descendant) const override {
    KUBEOPERA_TRY(auto wanted, parse_oid(ancestor));
    KUBEOPERA_TRY(auto from, parse_oid(descendant));
    return ancestry_.reaches(from, wanted, [this](const oid& id) -> result<std::vector<oid>> {
      KUBEOPERA_TRY(auto parsed, commit_at(id.hex()));
      return std::move(parsed.parents);
    });
  }

  result<void> add_pack(const std::string& pack) override {
    KUBEOPERA_TRY(auto writer, begin_pack());
    KUBEOPERA_CHECK(writer->append(pack));
    return writer->commit();
  }

  result<std::unique_ptr<pack_writer>> begin_pack() override { return odb_->begin_pack(); }

  result<void> add_indexed_pack(const std::string& pack, const std::string& index) override {
    if (pack.size() < 32 || index.size() < 1072 ||
        std::string_view(index).substr(index.size() - 40, 20) != std::string_view(pack).substr(pack.size() - 20))
      return error(errc::data_loss, "WrongIndex", "the index does not belong to the pack");
    auto name = oid::from_raw(pack.data() + pack.size() - 20).hex();
    return write_pack(directory_, name, pack, index);
  }

  result<std::string> read_object(const std::string& id, std::string_view type) const override {
    KUBEOPERA_TRY(auto parsed, parse_oid(id));
    for (auto t : {object_type::commit, object_type::tree, object_type::blob})
      if (type_name(t) == type) return odb_->read(parsed, t);
    return error(errc::invalid_argument, "BadObjectType", "an object's type is commit, tree or blob");
  }

  result<std::optional<std::string>> bookmark(const std::string& branch) const override {
    KUBEOPERA_CHECK(validate_branch(branch));
    auto id = read_ref(directory_, bookmark_name(branch));
    if (!id && id.error().code() != errc::data_loss) return id.error();
    if (!id || !*id || !odb_->contains(**id)) return std::optional<std::string>();
    return std::optional<std::string>((*id)->hex());
  }

  result<void> set_bookmark(const std::string& branch, const std::string& commit) override {
    KUBEOPERA_CHECK(validate_branch(branch));
    KUBEOPERA_TRY(auto id, parse_oid(commit));
    return write_ref(directory_, bookmark_name(branch), id);
  }

  result<void> compact(std::size_t max_packs, duration grace) override {
    std::lock_guard lock(compacting_);
    KUBEOPERA_TRY(auto done, merge_packs(directory_, max_packs, out_of_use_));
    auto now = std::chrono::steady_clock::now();
    if (!done.replaced.empty()) {
      out_of_use_.insert(done.replaced.begin(), done.replaced.end());
      retired_.emplace_back(now, std::move(done.replaced));
    }
    if (retired_.empty() || retired_.front().first + grace > now) return {};
    for (; !retired_.empty() && retired_.front().first + grace <= now; retired_.pop_front()) {
      for (const auto& path : retired_.front().second) {
        ::unlink((path + ".idx").c_str());
        ::unlink((path + ".pack").c_str());
        out_of_use_.erase(path);
      }
    }
    // Until now the view had the old packs, or found them; a read that meets their end in between takes a fresh view itself.
    return odb_->reopen();
  }

 private:
  struct located {
    oid id;
    std::uint32_t mode = mode_directory;
  };

  static std::string bookmark_name(const std::string& branch) { return "refs/kubeopera/seen/" + branch; }

  result<parsed_commit> commit_at(const std::string& id) const {
    KUBEOPERA_TRY(auto parsed, parse_oid(id));
    KUBEOPERA_TRY(auto bytes, odb_->read(parsed, object_type::commit));
    return parse_commit(bytes);
  }

  result<located> find(const std::string& commit, std::string_view path) const {
    KUBEOPERA_TRY(auto parsed, commit_at(commit));
    located at;
    at.id = parsed.tree;
    for (auto rest = path; !rest.empty();) {
      auto step = rest.substr(0, rest.find('/'));
      rest.remove_prefix(std::min(rest.size(), step.size() + 1));
      if (at.mode != mode_directory) return no_such_path(std::string(path));
      KUBEOPERA_TRY(auto bytes, odb_->read(at.id, object_type::tree));
      KUBEOPERA_TRY(auto items, parse_tree(bytes));
      auto found = std::find_if(items.begin(), items.end(), [&](const tree_item& i) { return i.name == step; });
      if (found == items.end()) return no_such_path(std::string(path));
      at.id = found->id();
      at.mode = found->mode;
    }
    return at;
  }

  result<void> collect(const oid& tree, const std::string& prefix, int depth,
                       std::vector<std::pair<std::string, std::string>>& out) const {
    if (depth > 64) return error(errc::data_loss, "TreeTooDeep", "a tree nests more than 64 levels");
    KUBEOPERA_TRY(auto bytes, odb_->read(tree, object_type::tree));
    KUBEOPERA_TRY(auto items, parse_tree(bytes));
    for (const auto& item : items) {
      auto path = prefix + std::string(item.name);
      if (item.directory()) {
        KUBEOPERA_CHECK(collect(item.id(), path + "/", depth + 1, out));
        continue;
      }
      if (item.mode != mode_file) return unfit_mode(path);
      KUBEOPERA_TRY(auto content, odb_->read(item.id(), object_type::blob));
      out.emplace_back(std::move(path), std::move(content));
    }
    return {};
  }

  std::string directory_;
  std::unique_ptr<object_database> odb_;
  mutable ancestry ancestry_;
  std::mutex compacting_;  // guards what follows
  std::deque<std::pair<steady_time, std::vector<std::string>>> retired_;
  std::set<std::string> out_of_use_;
};

// Removes what a crash left half written an hour ago or earlier.
void sweep(const std::string& directory) {
  auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& folder : {directory, directory + "/objects/pack"}) {
    std::error_code ec;
    for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
      std::error_code ignored;
      if (it->path().filename().string().rfind("tmp_", 0) == 0 && it->last_write_time(ignored) < old)
        std::filesystem::remove_all(it->path(), ignored);
    }
  }
}

// A bare repository as git itself makes one.
result<void> make_repository(const std::string& directory) {
  for (auto part : {"/objects/pack", "/objects/info", "/refs/heads", "/refs/tags"})
    KUBEOPERA_CHECK(make_directories(directory + part));
  KUBEOPERA_TRY(auto config, read_whole(directory + "/config"));
  if (!config) {
    KUBEOPERA_CHECK(
        create_synced(directory + "/config", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n", 0644));
  }
  // HEAD last: with it the directory is a repository.
  auto temporary = directory + "/tmp_head_" + unique_suffix();
  KUBEOPERA_CHECK(create_synced(temporary, "ref: refs/heads/main\n", 0644));
  KUBEOPERA_CHECK(rename_path(temporary, directory + "/HEAD"));
  return sync_path(directory);
}

}  // namespace

result<std::shared_ptr<object_store>> open_store(const std::string& directory) {
  KUBEOPERA_CHECK(make_directories(directory));
  KUBEOPERA_TRY(auto head, read_whole(directory + "/HEAD"));
  if (!head) {
    std::error_code ec;
    for (std::filesystem::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec)) {
      auto name = it->path().filename().string();
      if (name != "objects" && name != "refs" && name != "config" && name.rfind("tmp_", 0) != 0)
        return error(errc::failed_precondition, "NotARepository", "the directory holds something else than a bare repository")
            .with_detail(directory);
    }
    KUBEOPERA_CHECK(make_repository(directory));
  }
  sweep(directory);
  KUBEOPERA_TRY(auto config, read_whole(directory + "/config"));
  if (config && config->find("objectformat") != std::string::npos && config->find("sha256") != std::string::npos)
    return error(errc::unsupported, "ObjectFormat", "repositories with SHA-256 object ids are not supported");
  KUBEOPERA_TRY(auto odb, object_database::open(directory));
  return std::shared_ptr<object_store>(std::make_shared<disk_store>(directory, std::move(odb)));
}

}  // namespace kubeopera::inline v1::gitops
