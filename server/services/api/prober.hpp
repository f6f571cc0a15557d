// Asks an app's address for a sign of life, as a user's browser would: DNS, TCP, TLS, HTTP.
#pragma once

#include "server/services/api/deploy_status.hpp"

#include <kubeopera/http/client.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace kubeopera::inline v1::api {

struct prober_options {
  prober_options() = default;
  std::string ca_pem;      ///< roots for app addresses; empty: the system's
  std::string connect_to;  ///< "host:port" that stands for every app address (embedded mode); empty: DNS
  http::address_policy policy;
  duration timeout = std::chrono::seconds(5);
};

/// Thread-safe.
class prober {
 public:
  prober(asio::any_io_executor executor, prober_options options) : executor_(std::move(executor)), options_(std::move(options)) {}
  /// One GET / of host. Never fails: what went wrong is in the result. Redirects to another host are no success.
  asio::awaitable<probe_result> probe(std::string host, bool tls);

 private:
  result<std::shared_ptr<http::transport>> client_for(const std::string& origin);
  asio::any_io_executor executor_;
  prober_options options_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<http::transport>> clients_;
};

}  // namespace kubeopera::inline v1::api
