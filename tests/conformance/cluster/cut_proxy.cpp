// Blocking sockets, a thread a connection: there are few of them.
#include "cut_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace kubeopera::conformance {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

const sockaddr* plain(const sockaddr_in& a) { return reinterpret_cast<const sockaddr*>(&a); }

// Passes on what from has to say; false at its end.
bool pass(int from, int to) {
  char buffer[16 * 1024];
  ssize_t n = ::recv(from, buffer, sizeof buffer, 0);
  for (ssize_t sent = 0; n > 0 && sent < n;) {
    ssize_t m = ::send(to, buffer + sent, static_cast<std::size_t>(n - sent), MSG_NOSIGNAL);
    if (m <= 0) return false;
    sent += m;
  }
  return n > 0;
}

}  // namespace

cut_proxy::cut_proxy(std::uint16_t port) : target_(port), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto at = loopback(0);
  socklen_t size = sizeof at;
  if (listener_ < 0 || ::bind(listener_, plain(at), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    throw std::runtime_error("no listener on loopback");
  }
  port_ = ntohs(at.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

cut_proxy::~cut_proxy() {
  ending_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  cut();
  for (auto& p : pairs_) {
    p.worker.join();
    ::close(p.near);
    ::close(p.far);
  }
  ::close(listener_);
}

void cut_proxy::cut() {
  std::lock_guard lock(mutex_);
  for (auto& p : pairs_) {
    ::shutdown(p.near, SHUT_RDWR);
    ::shutdown(p.far, SHUT_RDWR);
  }
}

void cut_proxy::set_down(bool down) {
  down_ = down;
  if (down) cut();
}

void cut_proxy::accept_all() {
  while (!ending_) {
    int near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (near < 0) continue;
    auto at = loopback(target_);
    int far = down_ ? -1 : ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (far < 0 || ::connect(far, plain(at), sizeof at) != 0) {
      ::close(near);
      if (far >= 0) ::close(far);
      continue;
    }
    std::lock_guard lock(mutex_);
    auto& p = pairs_.emplace_back();
    p.near = near;
    p.far = far;
    p.worker = std::thread([&p] { relay(p); });
    if (down_) {
      ::shutdown(near, SHUT_RDWR);
      ::shutdown(far, SHUT_RDWR);
    }
  }
}

void cut_proxy::relay(pair& p) {
  for (bool open = true; open;) {
    pollfd both[] = {{p.near, POLLIN, 0}, {p.far, POLLIN, 0}};
    if (::poll(both, 2, -1) < 0) break;
    if (both[0].revents) open = pass(p.near, p.far);
    if (open && both[1].revents) open = pass(p.far, p.near);
  }
  ::shutdown(p.near, SHUT_RDWR);
  ::shutdown(p.far, SHUT_RDWR);
}

}  // namespace kubeopera::conformance
