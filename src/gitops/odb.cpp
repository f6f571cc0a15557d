// libgit2 behind object_database.
#include "src/gitops/odb.hpp"

#include "src/gitops/files.hpp"

#include <git2.h>

#include <filesystem>
#include <unistd.h>

namespace kubeopera::inline v1::gitops::detail {

namespace {

error git_error(int code, std::string_view doing) {
  const auto* last = git_error_last();
  std::string words = last && last->message ? last->message : "no reason given";
  auto kind = code == GIT_ENOTFOUND                   ? errc::not_found
              : last && (last->klass == GIT_ERROR_OS) ? errc::unavailable
                                                      : errc::data_loss;
  auto reason = kind == errc::not_found ? "ObjectNotFound" : kind == errc::unavailable ? "Disk" : "DamagedObject";
  return error(kind, reason, std::string(doing) + ": " + words);
}

// 1.5.1 is the first version with the fixes that we rely on (hostile packs and paths).
result<void> start_libgit2() {
  static const int ready = git_libgit2_init();
  int major = 0, minor = 0, revision = 0;
  git_libgit2_version(&major, &minor, &revision);
  if (ready < 0) return error(errc::unavailable, "Libgit2", "libgit2 cannot be started");
  if (major * 10000 + minor * 100 + revision < 10501)
    return error(errc::unsupported, "Libgit2TooOld", "libgit2 1.5.1 or later is needed");
  return {};
}

git_oid to_git(const oid& id) {
  git_oid out;
  git_oid_fromraw(&out, id.bytes.data());
  return out;
}

// Indexes into a folder of its own, so that a crash never leaves half a pack where readers look.
constexpr std::uint32_t max_pack_objects = 1u << 26;

class indexing_writer : public pack_writer {
 public:
  indexing_writer(std::string repository, std::string folder, std::shared_ptr<git_odb> odb, git_indexer* indexer)
      : repository_(std::move(repository)), folder_(std::move(folder)), odb_(std::move(odb)), indexer_(indexer) {}
  ~indexing_writer() override {
    git_indexer_free(indexer_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  result<void> append(std::string_view bytes) override {
    KUBEOPERA_CHECK(look_at_head(bytes));
    if (int rc = git_indexer_append(indexer_, bytes.data(), bytes.size(), &progress_); rc < 0)
      return git_error(rc, "reading a pack");
    return {};
  }

  result<void> commit() override {
    if (int rc = git_indexer_commit(indexer_, &progress_); rc < 0) return git_error(rc, "indexing a pack");
    std::string name = git_indexer_name(indexer_);
    auto path = folder_ + "/pack-" + name;
    if (progress_.total_objects == 0) return {};
    KUBEOPERA_CHECK(sync_path(path + ".pack"));
    KUBEOPERA_CHECK(sync_path(path + ".idx"));
    return install_pack(repository_, name, path + ".pack", path + ".idx");
  }

 private:
  // "PACK", version, number of objects: the indexer makes room for as many as it is told of, so that twelve bytes could ask for
  // all memory.
  result<void> look_at_head(std::string_view bytes) {
    constexpr std::size_t head_size = 12;
    if (head_.size() == head_size) return {};
    head_.append(bytes.substr(0, head_size - head_.size()));
    if (head_.size() < head_size) return {};
    std::uint32_t objects = 0;
    for (auto c : std::string_view(head_).substr(8)) objects = objects << 8 | static_cast<unsigned char>(c);
    if (objects <= max_pack_objects) return {};
    return error(errc::too_large, "PackTooLarge",
                 "the pack says that it holds " + std::to_string(objects) + " objects; at most " +
                     std::to_string(max_pack_objects) + " are taken");
  }

  std::string repository_, folder_, head_;
  std::shared_ptr<git_odb> odb_;
  git_indexer* indexer_;
  git_indexer_progress progress_{};
};

}  // namespace

result<void> install_pack(const std::string& repository, const std::string& name, const std::string& pack,
                          const std::string& index) {
  auto folder = repository + "/objects/pack";
  auto target = folder + "/pack-" + name;
  KUBEOPERA_CHECK(rename_path(pack, target + ".pack"));
  KUBEOPERA_CHECK(rename_path(index, target + ".idx"));
  return sync_path(folder);
}

// git reads whatever ends in ".idx" there, so half-written files have no such ending.
result<void> write_pack(const std::string& repository, const std::string& name, std::string_view pack, std::string_view index) {
  auto suffix = unique_suffix();
  auto pack_path = repository + "/objects/pack/tmp_pack_own_" + suffix,
       index_path = repository + "/objects/pack/tmp_idx_own_" + suffix;
  KUBEOPERA_CHECK(create_synced(pack_path, pack, 0444));
  KUBEOPERA_CHECK(create_synced(index_path, index, 0444));
  return install_pack(repository, name, pack_path, index_path);
}

result<std::unique_ptr<object_database>> object_database::open(const std::string& repository) {
  KUBEOPERA_CHECK(start_libgit2());
  std::unique_ptr<object_database> out(new object_database(repository));
  KUBEOPERA_CHECK(out->reopen());
  return out;
}

result<void> object_database::reopen() const {
  git_odb* raw = nullptr;
  if (int rc = git_odb_open(&raw, (repository_ + "/objects").c_str()); rc < 0)
    return git_error(rc, "opening the object database");
  std::shared_ptr<git_odb> fresh(raw, git_odb_free);
  std::lock_guard lock(mutex_);
  odb_ = std::move(fresh);
  return {};
}

std::shared_ptr<git_odb> object_database::view() const {
  std::lock_guard lock(mutex_);
  return odb_;
}

bool object_database::contains(const oid& id) const {
  auto key = to_git(id);
  return git_odb_exists(view().get(), &key) == 1;
}

result<std::string> object_database::read(const oid& id, object_type type) const {
  auto key = to_git(id);
  git_odb_object* object = nullptr;
  auto odb = view();
  int rc = git_odb_read(&object, odb.get(), &key);
  if (rc < 0 && rc != GIT_ENOTFOUND) {
    KUBEOPERA_CHECK(reopen());
    odb = view();
    rc = git_odb_read(&object, odb.get(), &key);
  }
  if (rc < 0) return git_error(rc, "reading an object").with_context("object", id.hex());
  std::unique_ptr<git_odb_object, decltype(&git_odb_object_free)> owner(object, git_odb_object_free);
  if (git_odb_object_type(object) != static_cast<git_object_t>(type))
    return error(errc::data_loss, "WrongObjectType", "an object is not a " + std::string(type_name(type)))
        .with_context("object", id.hex());
  return std::string(static_cast<const char*>(git_odb_object_data(object)), git_odb_object_size(object));
}

result<std::unique_ptr<pack_writer>> object_database::begin_pack() const {
  auto folder = repository_ + "/objects/pack/tmp_pack_" + unique_suffix();
  KUBEOPERA_CHECK(make_directories(folder));
  git_indexer_options options;
  git_indexer_options_init(&options, GIT_INDEXER_OPTIONS_VERSION);
  git_indexer* indexer = nullptr;
  auto odb = view();
  if (int rc = git_indexer_new(&indexer, folder.c_str(), 0444, odb.get(), &options); rc < 0) {
    ::rmdir(folder.c_str());
    return git_error(rc, "beginning a pack");
  }
  return std::unique_ptr<pack_writer>(new indexing_writer(repository_, folder, std::move(odb), indexer));
}

}  // namespace kubeopera::inline v1::gitops::detail
