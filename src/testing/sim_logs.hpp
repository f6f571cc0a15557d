// The logs of simulated containers: a bounded ring of lines each, with readers that follow. Thread-safe.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kubeopera::inline v1::testing::sim {

struct log_line {
  system_time at;
  std::string text;
};

/// The log of one run of one container.
struct container_log {
  std::mutex mutex;
  std::deque<log_line> lines;
  std::uint64_t dropped = 0;  ///< lines that fell off the front
  std::size_t bytes = 0;
  bool closed = false;
  notifier grew;
};

class log_store {
 public:
  log_store(clock& clk, std::size_t limit) : time_(clk), limit_(limit) {}
  /// Begins a new run of a container; the one before becomes the previous log.
  void begin(const std::string& ns, const std::string& pod, const std::string& container);
  /// container empty: the pod's first one.
  void print(const std::string& ns, const std::string& pod, const std::string& container, std::string text);
  /// No more lines will come; followers end.
  void end(const std::string& ns, const std::string& pod, const std::string& container);
  void forget(const std::string& ns, const std::string& pod);
  bool known(const std::string& ns, const std::string& pod) const;
  /// What a GET …/log gives.
  result<std::unique_ptr<http::body_source>> open(const std::string& ns, const std::string& pod,
                                                  const api_log_request& request) const;

 private:
  struct entry {
    std::shared_ptr<container_log> now, before;
  };
  using pod_logs = std::map<std::string, entry>;
  std::shared_ptr<container_log> find(const std::string& ns, const std::string& pod, const std::string& container,
                                      bool previous) const;
  clock& time_;
  std::size_t limit_;
  mutable std::mutex mutex_;
  std::map<std::string, pod_logs> pods_;
};

}  // namespace kubeopera::inline v1::testing::sim
