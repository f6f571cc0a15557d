// A client's connection and the reading of responses from it. Private to the module.
#pragma once

#include "src/http/stream.hpp"
#include "src/http/wire.hpp"

#include <chrono>
#include <memory>

namespace kubeopera::inline v1::http {

struct client_connection {
  client_connection() = default;
  std::unique_ptr<byte_stream> stream;
  read_buffer in;
  std::chrono::steady_clock::time_point idle_since{};
  bool reused = false;
};

/// Where a connection goes that can be used again. Thread-safe.
class connection_home {
 public:
  virtual ~connection_home() = default;
  virtual void give_back(std::unique_ptr<client_connection> c) = 0;
};

/// The final response's head; interim ones (1xx) are skipped.
/// Errors: unavailable (ConnectionReset, MalformedResponse), cancelled.
task<wire::response_head> read_response_head(client_connection& c, bool to_head);

/// The body that follows a head. Gives the connection back once it has been read to its end.
std::unique_ptr<body_source> make_response_body(std::shared_ptr<connection_home> home, std::unique_ptr<client_connection> c,
                                                wire::body_kind kind, std::uint64_t length, bool keep_alive,
                                                duration idle_timeout);

}  // namespace kubeopera::inline v1::http
