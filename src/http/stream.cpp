// TCP and TLS streams, listening, and the watchdog: every socket operation of the module is instantiated here.
#include "src/http/stream.hpp"

#include "src/http/resolve.hpp"
#include "src/http/text.hpp"
#include "src/http/tls.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/socket.h>

namespace kubeopera::inline v1::http {

namespace {

using asio::ip::tcp;
using boost::system::error_code;

error cancelled_error() { return {errc::cancelled, "Cancelled", "the operation was cancelled"}; }

error io_error(const error_code& ec) {
  if (ec == asio::error::operation_aborted) return cancelled_error();
  return error(errc::unavailable, "ConnectionReset", "the connection was lost").with_detail(ec.message());
}

std::string text_of(const tcp::endpoint& endpoint) {
  auto host = endpoint.address().to_string();
  if (endpoint.address().is_v6()) host = "[" + host + "]";
  return host + ":" + std::to_string(endpoint.port());
}

// Waiting forms of the two raw operations, shared by both kinds of stream. An operation of Asio's that starts after its coroutine
// was cancelled does not notice: whatever waits looks first.
template <class Stream>
task<std::size_t> read_from(Stream& stream, char* data, std::size_t size) {
  if (co_await kubeopera::detail::cancelled()) co_return cancelled_error();
  error_code ec;
  auto n = co_await stream.async_read_some(asio::buffer(data, size), asio::redirect_error(asio::use_awaitable, ec));
  if (ec == asio::error::eof) co_return std::size_t{0};
  if (ec) co_return io_error(ec);
  co_return n;
}

class stream_base : public byte_stream {
 public:
  void stop_watch() noexcept override { watch_signal_.emit(asio::cancellation_type::terminal); }
  std::uint64_t bytes_written() const noexcept override { return written_; }

  void cancel() noexcept override {
    error_code ignored;
    socket().cancel(ignored);
  }
  void close() noexcept override {
    error_code ignored;
    socket().close(ignored);
  }
  void abort() noexcept override {
    error_code ignored;
    socket().set_option(asio::socket_base::linger(true, 0), ignored);
    close();
  }
  bool stale() noexcept override {
    char byte = 0;
    auto n = ::recv(socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }
  std::string peer() const override { return peer_; }

 protected:
  virtual tcp::socket& socket() noexcept = 0;
  void remember_peer() {
    error_code ec;
    auto endpoint = socket().remote_endpoint(ec);
    if (!ec) peer_ = text_of(endpoint);
  }
  template <class Stream>
  void watch_on(Stream& stream, asio::any_io_executor executor, char* data, std::size_t size,
                std::function<void(result<std::size_t>)> done) {
    stream.async_read_some(
        asio::buffer(data, size),
        asio::bind_cancellation_slot(watch_signal_.slot(),
                                     asio::bind_executor(executor, [done = std::move(done)](error_code ec, std::size_t n) {
                                       if (ec == asio::error::eof)
                                         done(std::size_t{0});
                                       else if (ec)
                                         done(io_error(ec));
                                       else
                                         done(n);
                                     })));
  }
  std::uint64_t written_ = 0;

 private:
  asio::cancellation_signal watch_signal_;
  std::string peer_;
};

class tcp_stream final : public stream_base {
 public:
  explicit tcp_stream(tcp::socket s) : socket_(std::move(s)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    remember_peer();
  }
  task<void> handshake() override { co_return result<void>(); }
  task<std::size_t> read_some(char* data, std::size_t size) override { return read_from(socket_, data, size); }

  // Tries the kernel first: most writes fit its buffer and need no turn of the event loop.
  task<void> write(std::string_view a, std::string_view b, std::string_view c) override {
    std::array<asio::const_buffer, 3> all = {asio::buffer(a), asio::buffer(b), asio::buffer(c)};
    error_code ec;
    auto n = socket_.write_some(all, ec);
    written_ += n;
    auto total = a.size() + b.size() + c.size();
    if (!ec && n == total) co_return result<void>();
    if (ec && ec != asio::error::would_block && ec != asio::error::try_again) co_return io_error(ec);
    for (auto& buffer : all) {
      auto skip = std::min(n, buffer.size());
      buffer += skip;
      n -= skip;
    }
    if (co_await kubeopera::detail::cancelled()) co_return cancelled_error();
    ec = {};
    written_ += co_await asio::async_write(socket_, all, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return io_error(ec);
    co_return result<void>();
  }
  void watch(asio::any_io_executor executor, char* data, std::size_t size,
             std::function<void(result<std::size_t>)> done) override {
    watch_on(socket_, std::move(executor), data, size, std::move(done));
  }
  task<void> finish_writing() override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return result<void>();
  }
  bool tls() const noexcept override { return false; }
  std::string sni() const override { return {}; }
  std::string client_certificate() const override { return {}; }

 protected:
  tcp::socket& socket() noexcept override { return socket_; }

 private:
  tcp::socket socket_;
};

class tls_stream final : public stream_base {
 public:
  tls_stream(tcp::socket s, asio::ssl::context& ctx, std::shared_ptr<const void> keep)
      : keep_(std::move(keep)), stream_(std::move(s), ctx) {
    remember_peer();
  }
  task<void> handshake() override { return shake(asio::ssl::stream_base::server); }

  task<void> handshake_as_client(const client_tls_context& ctx) {
    if (!ctx.name_is_address()) SSL_set_tlsext_host_name(stream_.native_handle(), ctx.server_name().c_str());
    return shake(asio::ssl::stream_base::client);
  }

  task<std::size_t> read_some(char* data, std::size_t size) override { return read_from(stream_, data, size); }

  // One record where the pieces are small; OpenSSL writes one buffer at a time.
  task<void> write(std::string_view a, std::string_view b, std::string_view c) override {
    if (a.size() + b.size() + c.size() > gather_limit) {
      for (auto part : {a, b, c}) {
        if (part.empty()) continue;
        auto r = co_await write_one(part);
        if (!r) co_return r.error();
      }
      co_return result<void>();
    }
    if (b.empty() && c.empty()) co_return co_await write_one(a);
    gathered_.assign(a);
    gathered_ += b;
    gathered_ += c;
    co_return co_await write_one(gathered_);
  }
  void watch(asio::any_io_executor executor, char* data, std::size_t size,
             std::function<void(result<std::size_t>)> done) override {
    watch_on(stream_, std::move(executor), data, size, std::move(done));
  }
  // Sends close_notify but does not wait for the peer's.
  task<void> finish_writing() override {
    if (SSL_is_init_finished(stream_.native_handle())) {
      error_code ec;
      asio::steady_timer soon(co_await asio::this_coro::executor, std::chrono::milliseconds(500));
      soon.async_wait([this, alive = std::weak_ptr<int>(alive_)](error_code stopped) {
        if (!stopped && !alive.expired()) cancel();
      });
      co_await stream_.async_shutdown(asio::redirect_error(asio::use_awaitable, ec));
    }
    error_code ignored;
    stream_.next_layer().shutdown(tcp::socket::shutdown_send, ignored);
    co_return result<void>();
  }
  bool tls() const noexcept override { return true; }
  std::string sni() const override {
    const char* name = SSL_get_servername(ssl(), TLSEXT_NAMETYPE_host_name);
    return name ? to_lower(name) : std::string();
  }
  std::string client_certificate() const override {
    X509* certificate = SSL_get1_peer_certificate(ssl());
    if (!certificate) return {};
    unsigned char* der = nullptr;
    int size = SSL_get_verify_result(ssl()) == X509_V_OK ? i2d_X509(certificate, &der) : 0;
    X509_free(certificate);
    std::string out(reinterpret_cast<char*>(der), size > 0 ? static_cast<std::size_t>(size) : 0);
    OPENSSL_free(der);
    return out;
  }

 protected:
  tcp::socket& socket() noexcept override { return stream_.next_layer(); }

 private:
  static constexpr std::size_t gather_limit = 16'000;

  SSL* ssl() const noexcept { return const_cast<asio::ssl::stream<tcp::socket>&>(stream_).native_handle(); }

  task<void> shake(asio::ssl::stream_base::handshake_type side) {
    if (co_await kubeopera::detail::cancelled()) co_return cancelled_error();
    error_code ec;
    co_await stream_.async_handshake(side, asio::redirect_error(asio::use_awaitable, ec));
    if (!ec) co_return result<void>();
    if (ec == asio::error::operation_aborted) co_return cancelled_error();
    auto verified = SSL_get_verify_result(ssl());
    std::string why = verified != X509_V_OK ? X509_verify_cert_error_string(verified) : ec.message();
    ERR_clear_error();
    co_return error(errc::unavailable, "TlsFailed", "the TLS handshake failed: " + why).with_detail(ec.message());
  }
  task<void> write_one(std::string_view part) {
    if (co_await kubeopera::detail::cancelled()) co_return cancelled_error();
    error_code ec;
    written_ += co_await asio::async_write(stream_, asio::buffer(part), asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return io_error(ec);
    co_return result<void>();
  }

  std::shared_ptr<const void> keep_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  asio::ssl::stream<tcp::socket> stream_;
  std::string gathered_;
};

class tcp_listener final : public listener {
 public:
  tcp_listener(tcp::acceptor acceptor, std::shared_ptr<server_tls_context> tls)
      : acceptor_(std::move(acceptor)), tls_(std::move(tls)), port_(acceptor_.local_endpoint().port()) {}
  std::uint16_t port() const noexcept override { return port_; }
  void close() noexcept override {
    error_code ignored;
    acceptor_.close(ignored);
  }
  task<std::unique_ptr<byte_stream>> accept() override {
    if (co_await kubeopera::detail::cancelled()) co_return cancelled_error();
    error_code ec;
    auto socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, ec));
    if (ec == asio::error::operation_aborted) co_return cancelled_error();
    if (ec) co_return error(errc::unavailable, "AcceptFailed", "no connection could be accepted").with_detail(ec.message());
    socket.set_option(tcp::no_delay(true), ec);
    std::unique_ptr<byte_stream> out;
    if (tls_)
      out = std::make_unique<tls_stream>(std::move(socket), tls_->native(), tls_);
    else
      out = std::make_unique<tcp_stream>(std::move(socket));
    co_return out;
  }

 private:
  tcp::acceptor acceptor_;
  std::shared_ptr<server_tls_context> tls_;
  std::uint16_t port_;
};

asio::ip::address to_asio(const ip_address& ip) {
  if (!ip.v6) return asio::ip::address_v4({ip.bytes[0], ip.bytes[1], ip.bytes[2], ip.bytes[3]});
  return asio::ip::address_v6(ip.bytes);
}

task<tcp::socket> connect_any(asio::any_io_executor io, const std::vector<ip_address>& addresses, std::uint16_t port) {
  std::string why = "no address";
  for (const auto& ip : addresses) {
    if (co_await kubeopera::detail::cancelled()) co_return cancelled_error();
    tcp::socket socket(io);
    error_code ec;
    co_await socket.async_connect(tcp::endpoint(to_asio(ip), port), asio::redirect_error(asio::use_awaitable, ec));
    if (ec == asio::error::operation_aborted) co_return cancelled_error();
    if (!ec) {
      socket.set_option(tcp::no_delay(true), ec);
      socket.set_option(asio::socket_base::keep_alive(true), ec);
      co_return socket;
    }
    why = to_string(ip) + ": " + ec.message();
  }
  co_return error(errc::unavailable, "ConnectFailed", "no connection to port " + std::to_string(port)).with_detail(why);
}

}  // namespace

task<std::unique_ptr<byte_stream>> connect(asio::any_io_executor io, const dial& to) {
  KUBEOPERA_CO_TRY(auto addresses, co_await resolve(to.host));
  for (const auto& ip : addresses) {
    if (to.policy) KUBEOPERA_CO_CHECK(to.policy(ip));
  }
  KUBEOPERA_CO_TRY(auto socket, co_await connect_any(io, addresses, to.port));
  if (!to.tls) co_return std::unique_ptr<byte_stream>(std::make_unique<tcp_stream>(std::move(socket)));
  auto stream = std::make_unique<tls_stream>(std::move(socket), to.tls->native(), to.tls);
  KUBEOPERA_CO_CHECK(co_await stream->handshake_as_client(*to.tls));
  co_return std::unique_ptr<byte_stream>(std::move(stream));
}

result<std::unique_ptr<listener>> listener::open(asio::any_io_executor io, const std::string& address, std::uint16_t port,
                                                 std::shared_ptr<server_tls_context> tls) {
  KUBEOPERA_TRY(auto ip, parse_ip(address));
  tcp::endpoint endpoint(to_asio(ip), port);
  tcp::acceptor acceptor(io);
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(1024, ec);
  if (ec) {
    const char* reason = ec == asio::error::address_in_use ? "AddressInUse" : "ListenFailed";
    return error(errc::unavailable, reason, "cannot listen on " + text_of(endpoint) + ": " + ec.message());
  }
  return std::unique_ptr<listener>(std::make_unique<tcp_listener>(std::move(acceptor), std::move(tls)));
}

struct watchdog::state {
  state(asio::any_io_executor executor, byte_stream& s, duration t) : timer(executor), stream(&s), time(t) {}
  asio::steady_timer timer;
  byte_stream* stream;  // null once the watchdog is gone
  duration time;
  std::chrono::steady_clock::time_point end;
  bool fired = false;

  static void arm(const std::shared_ptr<state>& s) {
    s->timer.expires_at(s->end);
    s->timer.async_wait([s](error_code ec) {
      if (ec || !s->stream) return;
      if (std::chrono::steady_clock::now() < s->end) return arm(s);
      s->fired = true;
      s->stream->close();
    });
  }
};

watchdog::watchdog(asio::any_io_executor executor, byte_stream& stream, duration time) {
  if (time == duration::zero()) return;
  state_ = std::make_shared<state>(std::move(executor), stream, time);
  extend();
  state::arm(state_);
}

watchdog::~watchdog() {
  if (!state_) return;
  state_->stream = nullptr;
  state_->timer.cancel();
}

void watchdog::extend() {
  if (state_) state_->end = std::chrono::steady_clock::now() + state_->time;
}

bool watchdog::fired() const noexcept { return state_ && state_->fired; }

char* read_buffer::prepare(std::size_t n) {
  if (room() >= n) return data_.get() + end_;
  auto used = size();
  if (capacity_ - used >= n && begin_ > 0) {
    std::memmove(data_.get(), data_.get() + begin_, used);
  } else {
    auto bigger = std::max(used + n, std::min<std::size_t>(capacity_ * 2, 64u << 10));
    std::unique_ptr<char[]> fresh(new char[bigger]);
    if (used > 0) std::memcpy(fresh.get(), data_.get() + begin_, used);
    data_ = std::move(fresh);
    capacity_ = bigger;
  }
  begin_ = 0;
  end_ = used;
  return data_.get() + end_;
}

void read_buffer::shrink() noexcept {
  if (!empty() || capacity_ <= 16u << 10) return;
  data_.reset();
  capacity_ = begin_ = end_ = 0;
}

}  // namespace kubeopera::inline v1::http
