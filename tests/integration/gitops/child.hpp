// One disabled test of this very program in a process of its own, to be killed.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace harness {

class child {
 public:
  /// test: "suite.DISABLED_name". log: where its output is appended. environment: besides PATH.
  child(const std::string& test, const std::string& log, const std::vector<std::pair<std::string, std::string>>& environment);
  /// Kills it where that has not been done.
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  /// SIGKILL. May be called from any thread.
  void strike() const;
  /// Waits for its end; the test fails when it was not struck down.
  void wait_killed();
  void kill_now() {
    strike();
    wait_killed();
  }

 private:
  int pid_ = -1;
  bool waited_ = false;
};

}  // namespace harness
