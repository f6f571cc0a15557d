// The command line's client of the REST API.
#pragma once

#include <kubeopera/http/client.hpp>
#include <kubeopera/json/value.hpp>

#include <functional>
#include <memory>
#include <string>

namespace kubeopera::inline v1::cli {

/// Thread safety: one call at a time.
class api_client {
 public:
  /// Errors: invalid_argument (URL).
  static result<std::shared_ptr<api_client>> make(asio::any_io_executor executor, const std::string& url, std::string token,
                                                  std::string ca_pem = {});
  /// One exchange; 204 gives null. Errors: a problem document read back into an error, those of the transport.
  task<json::value> call(std::string method, std::string path, const json::value* body = nullptr,
                         std::string idempotency_key = {});
  task<json::value> get(std::string path) { return call("GET", std::move(path)); }
  /// Reads deploy-status events until on_status returns false or the stream ends.
  task<void> watch_status(const std::string& app_id, std::function<bool(const json::object& status)> on_status);
  /// Writes a streamed reply to standard output.
  task<void> print_stream(std::string path);

 private:
  api_client(std::shared_ptr<http::transport> t, std::string token) : transport_(std::move(t)), token_(std::move(token)) {}
  http::request make_request(std::string method, std::string path) const;
  std::shared_ptr<http::transport> transport_;
  std::string token_;
};

}  // namespace kubeopera::inline v1::cli
