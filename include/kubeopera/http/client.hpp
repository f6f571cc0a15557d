// A pooled HTTP/1.1 client of one origin, over TCP or TLS. Never follows redirects, never reads the environment.
#pragma once

#include <kubeopera/http/address.hpp>
#include <kubeopera/http/transport.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace kubeopera::inline v1::http {

struct client_tls {
  client_tls() = default;
  std::string ca_pem;           ///< the only trust roots; empty: the system's
  std::string certificate_pem;  ///< client certificate (chain); empty: none
  std::string private_key_pem;
  std::string server_name;  ///< name to send as SNI and to verify instead of the URL's host
};

struct client_options {
  client_options() = default;
  explicit client_options(std::string url) : base_url(std::move(url)) {}
  /// "https://host:port", optionally with a path that is put before every target.
  std::string base_url;
  client_tls tls;
  /// "host:port" to connect to instead of the URL's host; Host header, SNI and verification stay those of the URL.
  std::string connect_to;
  address_policy policy;                                 ///< empty: every address
  duration connect_timeout = std::chrono::seconds(5);    ///< resolving, connecting and the TLS handshake together
  duration response_timeout = std::chrono::seconds(30);  ///< from the first byte sent until the response's head, and, where the
                                                         ///< body is not streamed, until its end; pieces of an upload extend it
  duration stream_idle_timeout = duration::zero();       ///< longest wait for a piece of a streamed body; zero: for ever
  std::size_t max_response_bytes = 32u << 20;            ///< of a body that is not streamed
  std::size_t max_idle_connections = 32;
  duration idle_lifetime = std::chrono::seconds(50);  ///< an idle connection older than this is not used again
  fields default_headers;                             ///< added where the request does not have them
};

/// Makes a client.
/// send() adds Host, Content-Length or Transfer-Encoding; a request's own values of these and of Connection are ignored. A
/// request is repeated once, on a new connection, where a pooled one turned out to be closed before any byte of the answer came
/// and the method is idempotent or nothing had been sent; never where the body is a stream that was begun. Errors of send():
/// unavailable (reason DnsFailed, ConnectFailed, TlsFailed with the verification's words, ConnectionReset, MalformedResponse),
/// deadline_exceeded (ConnectTimeout, ResponseTimeout), too_large (ResponseTooLarge), permission_denied (AddressRefused),
/// invalid_argument (BadRequest: a header or target that could be read as something else), cancelled. Errors: invalid_argument
/// (base_url, connect_to, a PEM that cannot be read). Thread safety: send() may be called concurrently from any strand. Lifetime:
/// streams keep what they need alive.
result<std::shared_ptr<transport>> make_client(asio::any_io_executor executor, client_options options);

}  // namespace kubeopera::inline v1::http
