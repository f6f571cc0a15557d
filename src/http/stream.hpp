// The one type-erased byte stream of the module: TCP or TLS, either end. Only stream.cpp instantiates Asio's socket operations.
#pragma once

#include <kubeopera/http/address.hpp>
#include <kubeopera/http/server.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::http {

class client_tls_context;
class server_tls_context;

/// Everything about one connection is used from one strand at a time.
class byte_stream {
 public:
  virtual ~byte_stream() = default;
  /// Server side: the TLS handshake; nothing on TCP. Errors: unavailable (TlsFailed), cancelled.
  virtual task<void> handshake() = 0;
  /// Bytes read, 0 at an orderly end. Errors: unavailable (ConnectionReset), cancelled.
  virtual task<std::size_t> read_some(char* data, std::size_t size) = 0;
  /// Writes all of the three, in order. Errors: unavailable (ConnectionReset), cancelled.
  virtual task<void> write(std::string_view a, std::string_view b = {}, std::string_view c = {}) = 0;
  /// Starts one read whose end calls done (on the coroutine's executor); stop_watch() ends it early. No other read meanwhile.
  virtual void watch(asio::any_io_executor executor, char* data, std::size_t size,
                     std::function<void(result<std::size_t>)> done) = 0;
  virtual void stop_watch() noexcept = 0;
  /// Ends pending operations with the error cancelled; the stream stays usable.
  virtual void cancel() noexcept = 0;
  /// Says that nothing more will be written; reading goes on.
  virtual task<void> finish_writing() = 0;
  virtual void close() noexcept = 0;
  /// Closes so that the peer sees a reset, not an orderly end.
  virtual void abort() noexcept = 0;
  /// True where the peer closed, or sent what nobody asked for, while the connection lay idle.
  virtual bool stale() noexcept = 0;
  virtual std::uint64_t bytes_written() const noexcept = 0;
  virtual bool tls() const noexcept = 0;
  virtual std::string peer() const = 0;
  /// Server side: the SNI name, lower case.
  virtual std::string sni() const = 0;
  /// Server side: DER of the verified client certificate, or empty.
  virtual std::string client_certificate() const = 0;
};

/// Where and how a client connects.
struct dial {
  dial() = default;
  std::string host;
  std::uint16_t port = 0;
  address_policy policy;
  std::shared_ptr<const client_tls_context> tls;  ///< null: TCP
};

/// Resolves, connects, and makes the handshake.
/// Errors: unavailable (DnsFailed, ConnectFailed, TlsFailed), permission_denied (the policy), cancelled.
task<std::unique_ptr<byte_stream>> connect(asio::any_io_executor io, const dial& to);

/// A listening socket.
class listener {
 public:
  static result<std::unique_ptr<listener>> open(asio::any_io_executor io, const std::string& address, std::uint16_t port,
                                                std::shared_ptr<server_tls_context> tls);
  virtual ~listener() = default;
  virtual std::uint16_t port() const noexcept = 0;
  /// The next connection, before any handshake. Errors: cancelled, unavailable (out of descriptors and the like: try again
  /// later).
  virtual task<std::unique_ptr<byte_stream>> accept() = 0;
  virtual void close() noexcept = 0;
};

/// Closes a stream when its time is over. The time can be put off, cheaply. Used on the stream's strand.
class watchdog {
 public:
  /// time zero: never.
  watchdog(asio::any_io_executor executor, byte_stream& stream, duration time);
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  /// Starts the time anew.
  void extend();
  bool fired() const noexcept;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// Bytes received and not yet used.
class read_buffer {
 public:
  std::string_view view() const noexcept { return {data_.get() + begin_, end_ - begin_}; }
  std::size_t size() const noexcept { return end_ - begin_; }
  bool empty() const noexcept { return begin_ == end_; }
  void consume(std::size_t n) noexcept {
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  /// Room for at least n more bytes; returns where. See room().
  char* prepare(std::size_t n);
  std::size_t room() const noexcept { return capacity_ - end_; }
  void commit(std::size_t n) noexcept { end_ += n; }
  /// Gives large memory back when there is nothing in it.
  void shrink() noexcept;

 private:
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace kubeopera::inline v1::http
