// One process of an election, and the reading of what it says. The same program with `--candidate` is such a process.
#pragma once

#include <chrono>
#include <string>
#include <sys/types.h>

namespace kubeopera::conformance {

inline constexpr auto lease_time = std::chrono::seconds(3);

/// Takes part in the election for the Lease `leader` of ns until it is killed. While it leads it writes its fence into the
/// ConfigMap `ledger`, which takes no fence that is smaller than the one it holds. It says on standard output, a line each:
/// "leads N", "wrote N", "refused N", "lost N".
int run_candidate(const std::string& kubeconfig_file, const std::string& ns, const std::string& identity);

/// A process of its own that runs a candidate.
class candidate {
 public:
  candidate(const std::string& kubeconfig_file, const std::string& ns, const std::string& identity);
  ~candidate();
  candidate(const candidate&) = delete;
  candidate& operator=(const candidate&) = delete;
  void freeze() const;
  void thaw() const;
  void kill();
  /// The rest of the next line that begins with this word; empty where none comes in time. Lines before it are passed over.
  std::string next(const std::string& word, std::chrono::seconds limit = std::chrono::seconds(30));
  /// Everything that was said so far.
  const std::string& said() const { return said_; }

 private:
  bool read_more(std::chrono::milliseconds limit);
  pid_t pid_ = -1;
  int out_ = -1;
  std::string said_;
  std::size_t from_ = 0;
};

}  // namespace kubeopera::conformance
