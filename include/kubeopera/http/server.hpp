// An HTTP/1.1 server over TCP or TLS: strict framing, limits, streaming both ways, mutual TLS, SNI. No routing here.
#pragma once

#include <kubeopera/core/log.hpp>
#include <kubeopera/http/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::http {

/// A certificate (chain) and its key, PEM.
struct tls_identity {
  tls_identity() = default;
  tls_identity(std::string cert, std::string key) : certificate_pem(std::move(cert)), private_key_pem(std::move(key)) {}
  std::string certificate_pem;
  std::string private_key_pem;
};

struct server_tls {
  server_tls() = default;
  tls_identity identity;  ///< the one served where by_name has none
  /// Picks the identity for an SNI name (lower case); null: the default one. Called in the handshake: quick, thread-safe, must
  /// not throw. Contexts are cached by the identity's address, so hand out the same pointer while nothing changed.
  std::function<std::shared_ptr<const tls_identity>(std::string_view sni)> by_name;
  /// Set: clients are asked for a certificate; one that these roots do not verify fails the handshake, none is allowed.
  std::string client_ca_pem;
};

/// What a request may send.
struct body_rule {
  body_rule() = default;
  explicit body_rule(std::size_t limit, bool as_stream = false) : max_bytes(limit), stream(as_stream) {}
  std::size_t max_bytes = 1u << 20;
  bool stream = false;  ///< hand the body over as request.stream while it arrives
};

struct server_options {
  server_options() = default;
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;                 ///< 0: any free one, see server::port()
  std::shared_ptr<const server_tls> tls;  ///< null: plain TCP
  /// Asked when a request's head has arrived; empty: body_rule() for all. Thread-safe.
  std::function<body_rule(std::string_view method, std::string_view target)> body_rule_for;
  std::size_t max_head_bytes = 32u << 10;
  std::size_t max_connections = 10'000;  ///< more are closed at once
  duration head_timeout =
      std::chrono::seconds(10);  ///< from a request's first byte to the end of its head; also the TLS handshake
  duration idle_timeout = std::chrono::seconds(75);   ///< between requests
  duration write_timeout = std::chrono::seconds(30);  ///< for a peer to take what was written
  std::size_t min_body_rate = 1024;                   ///< bytes a second, after a grace of head_timeout
  duration drain_timeout = std::chrono::seconds(5);   ///< at the end, for requests in progress
};

/// Thread safety: port() and connections() from any thread; run() once.
/// The handler is called on the connection's strand; it is cancelled, within a second, when the client has gone, and so is next()
/// of a response's stream. A HEAD request is answered with the handler's headers and no body. What cannot be read as one request
/// is answered 400 (or 405, 408, 413, 417, 431, 501, 505) as application/problem+json, and the connection closed.
class server {
 public:
  /// Binds and listens. Errors: unavailable (AddressInUse ...), invalid_argument (address, PEM).
  static result<std::unique_ptr<server>> listen(asio::any_io_executor executor, server_options options, handler h,
                                                logger& log = logger::none());
  ~server();
  std::uint16_t port() const noexcept;
  /// Connections open now.
  std::size_t connections() const noexcept;
  /// Accepts and serves until cancelled; then stops accepting, lets requests in progress end for drain_timeout and cancels the
  /// rest. Ends with the error cancelled. Lifetime: the server must outlive run().
  task<void> run();

 private:
  struct state;
  explicit server(std::shared_ptr<state> s);
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::http
