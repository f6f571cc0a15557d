// Keeps a cluster's objects on disk: a log of changes as JSON lines, rewritten from time to time. Survives the death of the
// process.
#pragma once

#include <kubeopera/core/log.hpp>
#include <kubeopera/core/result.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kubeopera::inline v1::testing {

/// Thread safety: append() from any thread.
class journal {
 public:
  /// Opens or makes file, reads it, and cuts off a half-written last line. Errors: unavailable, data_loss (a broken line before
  /// the end).
  static result<std::unique_ptr<journal>> open(std::string file, logger& log);
  ~journal();
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;
  /// What the file held when it was opened: the last state of each object, by resourceVersion.
  std::vector<api_commit> take_loaded();
  /// Writes one change. A failed write is logged; the next start sees the state before it.
  void append(const api_commit& c);

 private:
  explicit journal(std::string file, logger& log) : file_(std::move(file)), log_(log) {}
  result<void> load();
  result<void> rewrite();
  std::string line_of(const api_commit& c) const;
  std::string file_;
  logger& log_;
  std::mutex mutex_;
  int fd_ = -1;
  std::map<std::string, api_commit> live_;  // by resource, namespace and name
  std::size_t lines_ = 0;
  std::uint64_t newest_ = 0;
  bool loaded_ = false;
};

}  // namespace kubeopera::inline v1::testing
