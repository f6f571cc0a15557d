// One thread a connection; everything ends when the stop pipe's writing end is closed.
#include "tests/integration/git_races/proxy.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace races {

namespace {

sockaddr_in loopback(int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  return out;
}

bool send_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    auto n = ::send(fd, data, size, MSG_NOSIGNAL);
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// One direction of a connection.
struct direction {
  int from, to;
  std::size_t left;  ///< bytes that still pass
  bool swallow;
  bool open = true;
  bool cut = false;

  void move() {
    char buffer[16384];
    auto n = ::recv(from, buffer, sizeof buffer, 0);
    if (n <= 0) {
      ::shutdown(to, SHUT_WR);
      open = false;
      return;
    }
    auto pass = std::min(left, static_cast<std::size_t>(n));
    left -= left == link_plan::never ? 0 : pass;
    cut = pass < static_cast<std::size_t>(n);
    if (!swallow && !send_all(to, buffer, pass)) open = false;
  }
};

}  // namespace

fault_proxy::fault_proxy(int server_port, std::function<link_plan(int)> plan)
    : server_port_(server_port), plan_(std::move(plan)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 || ::pipe(stop_) != 0)
    ADD_FAILURE() << "the proxy cannot listen";
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

fault_proxy::~fault_proxy() {
  ::close(stop_[1]);
  acceptor_.join();
  for (auto& t : carriers_) t.join();
  ::close(stop_[0]);
  ::close(listener_);
}

void fault_proxy::accept_loop() {
  while (true) {
    pollfd fds[2] = {{listener_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents) return;
    int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    auto plan = plan_(connections_++);
    carriers_.emplace_back([this, client, plan] { carry(client, plan); });
  }
}

void fault_proxy::carry(int client, link_plan plan) {
  int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = loopback(server_port_);
  bool connected = ::connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  direction up{client, server, plan.cut_request_after, plan.swallow_requests};
  direction down{server, client, plan.cut_answer_after, plan.swallow_answers};
  while (connected && (up.open || down.open) && !up.cut && !down.cut) {
    pollfd fds[3] = {{up.open ? client : -1, POLLIN, 0}, {down.open ? server : -1, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    if (::poll(fds, 3, -1) < 0 && errno != EINTR) break;
    if (fds[2].revents) break;
    if (fds[0].revents) up.move();
    if (fds[1].revents && !up.cut) down.move();
    // A client that gave up on an answer that is swallowed closes its end: there is nobody left to carry for.
    if (!up.open && plan.swallow_answers && plan.swallow_requests) break;
  }
  if (up.cut || down.cut) {
    ++cuts_;
    linger hard{1, 0};  // a reset, not a polite end
    ::setsockopt(client, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  }
  ::close(client);
  ::close(server);
}

}  // namespace races
