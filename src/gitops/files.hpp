// Files that must be on the disk before anyone is told: write, sync, rename, and a count of the syncs.
#pragma once

#include <kubeopera/core/result.hpp>

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::gitops::detail {

/// Owns a file descriptor.
class file_handle {
 public:
  file_handle() = default;
  explicit file_handle(int fd) noexcept : fd_(fd) {}
  file_handle(file_handle&& other) noexcept : fd_(other.release()) {}
  file_handle& operator=(file_handle&& other) noexcept;
  ~file_handle();
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// How often this process has synced a file or directory for gitops; a test's and a benchmark's witness.
std::atomic<std::uint64_t>& sync_count() noexcept;

/// unavailable, with errno's words and the path as private detail.
error disk_error(std::string_view doing, const std::string& path);

/// The whole file; nullopt when there is none.
result<std::optional<std::string>> read_whole(const std::string& path);
result<void> write_all(int fd, std::string_view bytes, const std::string& path);
result<void> sync_file(int fd, const std::string& path);
result<void> sync_path(const std::string& path);
result<void> rename_path(const std::string& from, const std::string& to);
/// Makes path (which must not exist) with these bytes and syncs it.
result<void> create_synced(const std::string& path, std::string_view bytes, unsigned mode);
result<void> make_directories(const std::string& path);
/// A name that no other process or thread uses.
std::string unique_suffix();

}  // namespace kubeopera::inline v1::gitops::detail
