// The HTTPS front door: Ingress host and path to a Service, to a ready pod, to a simulated app's answer.
#pragma once

#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/http/server.hpp>
#include <kubeopera/testing/simulator.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kubeopera::inline v1::testing {

/// Where an Ingress sends a request.
struct ingress_route {
  std::string ns, service;
  bool found_host = false;  ///< some Ingress has the host
  bool found = false;       ///< and a rule for the path
};

/// The rule of the Ingresses that fits best: exact paths first, then the longest prefix. Pure.
ingress_route find_route(const std::vector<std::shared_ptr<const json::object>>& ingresses, std::string_view host,
                         std::string_view path);
/// True when an Ingress terminates TLS for the host. Pure.
bool terminates_tls(const std::vector<std::shared_ptr<const json::object>>& ingresses, std::string_view host);

/// Thread-safe.
class front_door : public std::enable_shared_from_this<front_door> {
 public:
  using clusters = std::function<std::vector<std::shared_ptr<simulator>>()>;
  front_door(crypto::key_pair ca, std::string base_domain, clusters all);
  /// The default identity: the wildcard of the base domain. Errors: internal.
  result<http::tls_identity> wildcard();
  /// The identity of a host name; null for one that is not served.
  std::shared_ptr<const http::tls_identity> identity(std::string_view sni);
  asio::awaitable<http::response> answer(http::request request);

 private:
  bool served(std::string_view host) const;
  crypto::key_pair ca_;
  std::string base_domain_;
  clusters all_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const http::tls_identity>> identities_;
  std::shared_ptr<const http::tls_identity> wildcard_;
  std::atomic<std::uint64_t> turn_{0};
};

}  // namespace kubeopera::inline v1::testing
