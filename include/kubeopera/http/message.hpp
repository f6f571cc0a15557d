// HTTP messages as the SDK sees them: wire details stay in this module.
#pragma once

#include <kubeopera/core/async.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::http {

/// Header fields in wire order; names compare without case.
class fields {
 public:
  using container = std::vector<std::pair<std::string, std::string>>;
  fields() = default;
  fields(std::initializer_list<std::pair<std::string, std::string>> all) : all_(all) {}
  /// First value of name.
  std::optional<std::string_view> get(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept;
  void add(std::string name, std::string value) { all_.emplace_back(std::move(name), std::move(value)); }
  /// Replaces every value of name by one.
  void set(std::string_view name, std::string value);
  void erase(std::string_view name);
  container::const_iterator begin() const noexcept { return all_.begin(); }
  container::const_iterator end() const noexcept { return all_.end(); }
  bool empty() const noexcept { return all_.empty(); }

 private:
  container all_;
};

/// A body that arrives in pieces. Destroying it abandons the exchange (a client closes its connection).
/// Thread safety: one next() at a time.
class body_source {
 public:
  virtual ~body_source() = default;
  /// The next non-empty piece, or an empty string at the end. Cancellable. Errors: unavailable, cancelled, too_large.
  virtual task<std::string> next() = 0;
};

/// Reads source to its end. Errors: those of next(), too_large past limit bytes.
task<std::string> read_all(body_source& source, std::size_t limit);
/// A source over ready bytes.
std::unique_ptr<body_source> make_body(std::string bytes);

/// A request. target is origin-form ("/path?query"), still encoded. For a client, body is sent as it is.
struct request {
  request() = default;
  request(std::string m, std::string t, std::string b = {}) : method(std::move(m)), target(std::move(t)), body(std::move(b)) {}
  std::string method = "GET";
  std::string target = "/";
  fields headers;
  std::string body;
  /// Set instead of body on a server's streaming routes and for uploads of a client.
  std::unique_ptr<body_source> stream;
  /// Server side: the peer's address ("127.0.0.1:4711"), empty for in-process calls.
  std::string peer;
  /// Server side: the SNI name or host, when TLS.
  std::string sni;
  bool tls = false;
  /// Server side: DER of the client's certificate when mutual TLS verified one.
  std::string client_certificate;
};

/// A response: body, or stream when it arrives in pieces.
struct response {
  response() = default;
  explicit response(int s) : status(s) {}
  response(int s, std::string type, std::string b) : status(s), body(std::move(b)) {
    headers.set("Content-Type", std::move(type));
  }
  int status = 200;
  fields headers;
  std::string body;
  std::unique_ptr<body_source> stream;
  bool endless = false;  ///< the stream has no end of its own: a server that stops cuts it at once
};

}  // namespace kubeopera::inline v1::http
