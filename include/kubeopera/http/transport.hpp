// Something that answers requests: a pooled client, or a router called directly in the same process.
#pragma once

#include <kubeopera/http/message.hpp>

#include <functional>

namespace kubeopera::inline v1::http {

/// Thread safety: send() may be called concurrently.
class transport {
 public:
  virtual ~transport() = default;
  /// One exchange. A 404 is a success of the exchange. Where want_stream is set the response's body
  /// comes as response.stream, otherwise complete in response.body.
  /// Errors: unavailable (connect, reset), deadline_exceeded, cancelled, too_large, invalid_argument.
  virtual task<response> send(request req, bool want_stream = false) = 0;
};

/// What a server calls for each request. Exceptions become 500; errors have been mapped by then.
using handler = std::function<asio::awaitable<response>(request)>;

/// A transport that calls a handler in this process.
std::shared_ptr<transport> make_local_transport(handler h);

}  // namespace kubeopera::inline v1::http
