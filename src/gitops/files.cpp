// Plain POSIX file work with every error kept.
#include "src/gitops/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace kubeopera::inline v1::gitops::detail {

file_handle& file_handle::operator=(file_handle&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

file_handle::~file_handle() {
  if (fd_ >= 0) ::close(fd_);
}

std::atomic<std::uint64_t>& sync_count() noexcept {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

error disk_error(std::string_view doing, const std::string& path) {
  auto why = std::error_code(errno, std::generic_category()).message();
  return error(errc::unavailable, "Disk", std::string(doing) + " failed: " + why).with_detail(path);
}

result<std::optional<std::string>> read_whole(const std::string& path) {
  file_handle fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<std::string>();
    return disk_error("opening a file", path);
  }
  std::string out;
  char buffer[16384];
  while (true) {
    auto n = ::read(fd.get(), buffer, sizeof buffer);
    if (n == 0) return std::optional<std::string>(std::move(out));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EISDIR) return std::optional<std::string>();
    if (n < 0) return disk_error("reading a file", path);
    out.append(buffer, static_cast<std::size_t>(n));
  }
}

result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return disk_error("writing a file", path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

result<void> sync_file(int fd, const std::string& path) {
  ++sync_count();
  if (::fsync(fd) != 0) return disk_error("syncing a file", path);
  return {};
}

result<void> sync_path(const std::string& path) {
  file_handle fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return disk_error("opening a file", path);
  return sync_file(fd.get(), path);
}

result<void> rename_path(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return disk_error("renaming a file", to);
  return {};
}

result<void> create_synced(const std::string& path, std::string_view bytes, unsigned mode) {
  file_handle fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return disk_error("making a file", path);
  KUBEOPERA_CHECK(write_all(fd.get(), bytes, path));
  return sync_file(fd.get(), path);
}

result<void> make_directories(const std::string& path) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (ec) {
    errno = ec.value();
    return disk_error("making a directory", path);
  }
  return {};
}

std::string unique_suffix() {
  static std::atomic<std::uint64_t> next{0};
  return std::to_string(::getpid()) + "_" + std::to_string(next++);
}

}  // namespace kubeopera::inline v1::gitops::detail
