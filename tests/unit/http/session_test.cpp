// A session that others know of before it has started: the sweep over deadlines and a stop may come at any time.
#include "src/http/session.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace kubeopera::inline v1::http {
namespace {

// A peer that is gone: the handshake fails, everything else does nothing.
class lost_stream final : public byte_stream {
 public:
  explicit lost_stream(int& handshakes) : handshakes_(handshakes) {}
  task<void> handshake() override {
    ++handshakes_;
    co_return gone();
  }
  task<std::size_t> read_some(char*, std::size_t) override { co_return gone(); }
  task<void> write(std::string_view, std::string_view, std::string_view) override { co_return gone(); }
  void watch(asio::any_io_executor, char*, std::size_t, std::function<void(result<std::size_t>)>) override {}
  void stop_watch() noexcept override {}
  void cancel() noexcept override {}
  task<void> finish_writing() override { co_return gone(); }
  void close() noexcept override {}
  void abort() noexcept override {}
  bool stale() noexcept override { return true; }
  std::uint64_t bytes_written() const noexcept override { return 0; }
  bool tls() const noexcept override { return false; }
  std::string peer() const override { return "192.0.2.1:1"; }
  std::string sni() const override { return {}; }
  std::string client_certificate() const override { return {}; }

 private:
  static error gone() { return {errc::unavailable, "ConnectionReset", "the peer is gone"}; }
  int& handshakes_;
};

struct SessionBeforeStart : testing::Test {
  SessionBeforeStart() { context->log = &logger::none(); }
  void start() {
    session::start(one, [this] { ++ended; });
    io.restart();
    io.run();
  }
  asio::io_context io;
  std::shared_ptr<server_context> context = std::make_shared<server_context>();
  int handshakes = 0, ended = 0;
  std::shared_ptr<session> one = std::make_shared<session>(context, std::make_unique<lost_stream>(handshakes), io.get_executor());
};

TEST_F(SessionBeforeStart, IsSweptWithoutHarm) {
  one->tick(std::chrono::steady_clock::now().time_since_epoch().count());
  io.run();
  start();
  EXPECT_EQ(handshakes, 1);
  EXPECT_EQ(ended, 1);
}

TEST_F(SessionBeforeStart, IsStoppedForGood) {
  one->stop(false);
  io.run();
  start();
  EXPECT_EQ(handshakes, 0);
  EXPECT_EQ(ended, 1);
}

TEST_F(SessionBeforeStart, IsStoppedWhileIdle) {
  one->stop(true);
  start();
  EXPECT_EQ(handshakes, 0);
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace kubeopera::inline v1::http
