// A TCP relay to the API server whose connections a test can kill.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace kubeopera::conformance {

class cut_proxy {
 public:
  /// Listens on loopback and relays to 127.0.0.1:port.
  explicit cut_proxy(std::uint16_t port);
  ~cut_proxy();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// Kills every connection that is open.
  void cut();
  /// While down, every connection is killed and new ones are closed at once.
  void set_down(bool down);

 private:
  struct pair {
    int near = -1, far = -1;
    std::thread worker;
  };
  void accept_all();
  static void relay(pair& p);

  std::uint16_t target_, port_ = 0;
  int listener_ = -1;
  std::atomic<bool> down_{false}, ending_{false};
  std::mutex mutex_;
  std::list<pair> pairs_;
  std::thread acceptor_;
};

}  // namespace kubeopera::conformance
