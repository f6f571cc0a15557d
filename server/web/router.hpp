// The router: from a request to a handler and back. Knows no service.
#pragma once

#include "server/web/readiness.hpp"
#include "server/web/route.hpp"
#include "server/web/telemetry.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>
#include <kubeopera/http/transport.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::web {

/// Replies that are remembered for an Idempotency-Key.
struct saved_reply {
  int status = 200;
  std::string body, location, etag;
};

/// Where remembered replies live. Thread-safe.
class idempotency {
 public:
  virtual ~idempotency() = default;
  /// The remembered reply, or nullopt: the key is now reserved for this request.
  /// Errors: conflict (the first request with this key is still running), invalid_argument (key used for another request).
  virtual task<std::optional<saved_reply>> begin(const call& c, const std::string& key, const std::string& fingerprint) = 0;
  /// Remembers a final reply.
  virtual task<void> finish(const call& c, const std::string& key, const saved_reply& reply) = 0;
  /// Forgets the reservation: the request had no effect.
  virtual task<void> abandon(const call& c, const std::string& key) = 0;
};

struct router_options {
  router_options() = default;
  std::string service;  ///< "kubeopera-api"
  std::string title;    ///< for the OpenAPI document
  std::string version = "0.1.0";
  /// From a bearer token to who it is. Errors: unauthenticated.
  std::function<result<identity>(std::string_view token)> authenticate;
  std::shared_ptr<web::idempotency> idempotency;
  std::vector<readiness_check> ready;
  clock* clk = &clock::real();
  logger* log = &logger::none();
  metrics* stats = nullptr;
};

/// Thread safety: immutable once served; handle() may be called concurrently.
class router {
 public:
  explicit router(router_options options);
  ~router();
  /// Adds rows; the OpenAPI document keeps their order. Throws std::logic_error for two rows with one method and path.
  void add(std::vector<route> rows);
  const std::vector<route>& routes() const noexcept { return rows_; }
  asio::awaitable<http::response> handle(http::request req);
  /// handle() as a function; the router must outlive it.
  http::handler handler();
  json::object openapi() const;

 private:
  struct node;
  struct match;
  match find(const std::vector<std::string>& segments, std::string_view method, call& c) const;
  task<http::response> dispatch(call& c);
  task<http::response> run_route(const route& r, call& c);
  task<http::response> run_idempotent(const route& r, call& c, const std::string& key);
  result<void> admit(const route& r, call& c) const;
  std::optional<http::response> builtin(const call& c, const std::string& path);

  router_options options_;
  std::vector<route> rows_;
  std::unique_ptr<node> root_;
  readiness ready_;
  telemetry telemetry_;
};

/// The OpenAPI 3.1 document of a table.
json::object openapi_document(const router_options& options, const std::vector<route>& rows);
/// The documentation page: self-contained, works offline, reads ./openapi.json.
std::string docs_page(const std::string& title);

}  // namespace kubeopera::inline v1::web
