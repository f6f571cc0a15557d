// Refs on disk: gitrepository-layout(5), and the lock protocol that every git program follows.
#include "src/gitops/refs.hpp"

#include "src/gitops/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kubeopera::inline v1::gitops::detail {

namespace {

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The value of name in packed-refs: lines "<id> <name>", comments with '#', peeled tags with '^'.
std::optional<oid> find_packed(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.size() > 41 && line[40] == ' ' && line.substr(41) == name) return oid::parse(line.substr(0, 40));
  }
  return std::nullopt;
}

// A lock file that disappears unless it is renamed into place.
class ref_lock {
 public:
  ref_lock(std::string path, file_handle fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  ref_lock(ref_lock&& other) noexcept : path_(std::exchange(other.path_, {})), fd_(std::move(other.fd_)) {}
  ~ref_lock() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  static result<ref_lock> take(const std::string& target) {
    auto path = target + ".lock";
    for (int tries = 0;; ++tries) {
      int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd >= 0) return ref_lock(path, file_handle(fd));
      if (errno == EEXIST && tries < 3 && break_stale(path)) continue;
      if (errno == EEXIST)
        return error(errc::resource_exhausted, "RefLocked", "another process holds the lock of the branch").with_detail(path);
      if (errno != ENOENT || tries == 3) return disk_error("locking a branch", path);
      KUBEOPERA_CHECK(make_directories(parent_of(target)));
    }
  }
  // Nobody holds a ref's lock for seconds; git leaves such a one for a person to remove, which a server cannot wait for.
  static bool break_stale(const std::string& path) {
    struct stat seen{}, now{};
    if (::stat(path.c_str(), &seen) != 0) return errno == ENOENT;
    if (std::chrono::system_clock::from_time_t(seen.st_mtime) + stale_lock_age > std::chrono::system_clock::now()) {
      errno = EEXIST;
      return false;
    }
    if (::stat(path.c_str(), &now) != 0 || now.st_ino != seen.st_ino) return true;
    return ::unlink(path.c_str()) == 0 || errno == ENOENT;
  }
  result<void> write(const oid& id) { return write_all(fd_.get(), id.hex() + "\n", path_); }
  result<void> sync() { return sync_file(fd_.get(), path_); }
  result<void> into(const std::string& target) {
    KUBEOPERA_CHECK(rename_path(path_, target));
    path_.clear();
    return {};
  }

 private:
  std::string path_;
  file_handle fd_;
};

}  // namespace

result<std::optional<oid>> read_ref(const std::string& directory, const std::string& name) {
  KUBEOPERA_TRY(auto loose, read_whole(directory + "/" + name));
  if (loose) {
    std::string_view text = *loose;
    if (text.starts_with("ref:")) return error(errc::unsupported, "SymbolicBranch", "the branch is a symbolic ref");
    while (text.ends_with('\n')) text.remove_suffix(1);
    auto id = oid::parse(text);
    if (!id) return error(errc::data_loss, "DamagedRef", "the branch's file holds no object id").with_detail(name);
    return id;
  }
  KUBEOPERA_TRY(auto packed, read_whole(directory + "/packed-refs"));
  return packed ? find_packed(*packed, name) : std::nullopt;
}

result<void> swap_ref(const std::string& directory, const std::string& name, std::optional<oid> from, const oid& to) {
  auto target = directory + "/" + name;
  KUBEOPERA_TRY(auto lock, ref_lock::take(target));
  KUBEOPERA_TRY(auto now, read_ref(directory, name));
  if (now != from) return error(errc::conflict, "BranchMoved", "the branch has moved meanwhile");
  KUBEOPERA_CHECK(lock.write(to));
  KUBEOPERA_CHECK(lock.sync());
  return lock.into(target);
}

result<void> write_ref(const std::string& directory, const std::string& name, const oid& to) {
  auto target = directory + "/" + name;
  auto temporary = directory + "/tmp_ref_" + unique_suffix();
  file_handle fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return disk_error("making a file", temporary);
  KUBEOPERA_CHECK(write_all(fd.get(), to.hex() + "\n", temporary));
  KUBEOPERA_CHECK(make_directories(parent_of(target)));
  return rename_path(temporary, target);
}

}  // namespace kubeopera::inline v1::gitops::detail
