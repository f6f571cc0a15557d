// What the HTTP tests share: an event loop on two threads, a server that runs until its scope ends, and a raw socket.
#pragma once

#include <kubeopera/http/client.hpp>
#include <kubeopera/http/server.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <functional>
#include <future>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace http_test {

using namespace kubeopera;
using namespace std::chrono_literals;

class loop {
 public:
  explicit loop(int threads = 2) : guard_(io_.get_executor()) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  ~loop() {
    guard_.reset();
    io_.stop();
    for (auto& t : threads_) t.join();
  }
  asio::any_io_executor executor() { return io_.get_executor(); }
  /// Runs op to its end and returns its result.
  template <class T>
  result<T> run(task<T> op) {
    std::promise<result<T>> promise;
    auto future = promise.get_future();
    spawn(executor(), fulfil<T>(std::move(op), promise));
    if (future.wait_for(20s) != std::future_status::ready) {
      ADD_FAILURE() << "a task did not end in 20 s";
      std::abort();
    }
    return future.get();
  }

 private:
  template <class T>
  static asio::awaitable<void> fulfil(task<T> op, std::promise<result<T>>& promise) {
    promise.set_value(co_await std::move(op));
  }
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::vector<std::thread> threads_;
};

/// Waits until condition holds; false after ten seconds.
inline bool eventually(const std::function<bool()>& condition) {
  auto end = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return condition();
}

inline asio::awaitable<void> run_server(http::server& s) {
  auto r = co_await s.run();
  EXPECT_EQ(r.error().code(), errc::cancelled);
}

/// A server that runs from here to the end of the scope.
class running_server {
 public:
  running_server(loop& l, http::handler h, http::server_options options = http::server_options(), logger& log = logger::none())
      : loop_(l),
        server_(http::server::listen(l.executor(), std::move(options), std::move(h), log).value()),
        task_(background::start(l.executor(), run_server(*server_))) {}
  ~running_server() { stop(); }
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    task_.stop();
    EXPECT_TRUE(loop_.run(task_.join()));
  }
  std::uint16_t port() const { return server_->port(); }
  std::string url(const std::string& scheme = "http") const { return scheme + "://127.0.0.1:" + std::to_string(port()); }
  http::server& get() { return *server_; }

 private:
  loop& loop_;
  std::unique_ptr<http::server> server_;
  background task_;
  bool stopped_ = false;
};

inline std::shared_ptr<http::transport> client_of(loop& l, http::client_options options) {
  return http::make_client(l.executor(), std::move(options)).value();
}

/// A blocking TCP socket that says exactly what it is told to.
class raw_socket {
 public:
  explicit raw_socket(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  explicit raw_socket(int fd, bool) : fd_(fd) {}
  ~raw_socket() { close(); }
  raw_socket(const raw_socket&) = delete;
  raw_socket& operator=(const raw_socket&) = delete;
  void send(std::string_view text) {
    while (!text.empty()) {
      auto n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// One read; empty at the end or after ten seconds.
  std::string receive() {
    char buffer[8192];
    auto n = ::recv(fd_, buffer, sizeof buffer, 0);
    ended_ = n == 0;
    reset_ = n < 0 && errno == ECONNRESET;
    return {buffer, n > 0 ? static_cast<std::size_t>(n) : 0};
  }
  std::string receive_until(std::string_view end) {
    std::string all;
    while (all.find(end) == std::string::npos) {
      auto piece = receive();
      if (piece.empty()) break;
      all += piece;
    }
    return all;
  }
  std::string receive_all() { return receive_until(std::string_view("\0never\0", 7)); }
  bool ended() const { return ended_; }
  bool was_reset() const { return reset_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  bool ended_ = false, reset_ = false;
};

/// A peer that does what a script says with each connection, on a thread of its own.
class scripted_peer {
 public:
  using script = std::function<void(raw_socket&, int connection)>;
  explicit scripted_peer(script s) : fd_(::socket(AF_INET, SOCK_STREAM, 0)), script_(std::move(s)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd_, 16), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] {
      for (int n = 0;; ++n) {
        int fd = ::accept(fd_, nullptr, nullptr);
        if (fd < 0) return;
        raw_socket s2(fd, true);
        script_(s2, n);
      }
    });
  }
  ~scripted_peer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::uint16_t port() const { return port_; }

 private:
  int fd_;
  script script_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace http_test
