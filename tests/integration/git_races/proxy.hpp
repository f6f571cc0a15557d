// A TCP proxy that fails as networks do: it cuts connections after so many bytes, swallows requests or answers.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

namespace races {

/// What becomes of one connection. Bytes are counted over its whole life.
struct link_plan {
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  std::size_t cut_request_after = never;  ///< bytes that still go to the server
  std::size_t cut_answer_after = never;   ///< bytes that still come back
  bool swallow_requests = false;          ///< accepted and never heard of again
  bool swallow_answers = false;           ///< the server does its work, and nobody is told
};

/// Serves until dropped. Thread safety: counters from any thread.
class fault_proxy {
 public:
  /// plan is asked once a connection, with its number from 0, on the proxy's thread.
  fault_proxy(int server_port, std::function<link_plan(int)> plan);
  ~fault_proxy();
  int port() const { return port_; }
  int connections() const { return connections_; }
  int cuts() const { return cuts_; }

 private:
  void accept_loop();
  void carry(int client, link_plan plan);
  int server_port_, port_ = 0, listener_ = -1, stop_[2] = {-1, -1};
  std::function<link_plan(int)> plan_;
  std::atomic<int> connections_{0}, cuts_{0};
  std::vector<std::thread> carriers_;
  std::thread acceptor_;
};

}  // namespace races
