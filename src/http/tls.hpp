// TLS contexts of both ends. TLS 1.2 or later; nothing is trusted that was not given. Private to the module.
#pragma once

#include <kubeopera/http/client.hpp>
#include <kubeopera/http/server.hpp>

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace kubeopera::inline v1::http {

/// Thread safety: immutable after make().
class client_tls_context {
 public:
  /// @param host the URL's host, which is verified and sent as SNI unless options.server_name is set
  static result<std::shared_ptr<const client_tls_context>> make(const client_tls& options, const std::string& host);
  asio::ssl::context& native() const noexcept { return *context_; }
  const std::string& server_name() const noexcept { return name_; }
  bool name_is_address() const noexcept { return address_; }

 private:
  std::unique_ptr<asio::ssl::context> context_;
  std::string name_;
  bool address_ = false;
};

/// Picks a certificate by SNI. Thread safety: any thread.
class server_tls_context {
 public:
  static result<std::shared_ptr<server_tls_context>> make(std::shared_ptr<const server_tls> options);
  asio::ssl::context& native() noexcept { return *default_; }

 private:
  struct cached {
    std::weak_ptr<const tls_identity> identity;
    std::shared_ptr<asio::ssl::context> context;
  };
  result<std::shared_ptr<asio::ssl::context>> build(const tls_identity& identity);
  std::shared_ptr<asio::ssl::context> pick(std::string_view name);
  static int on_server_name(SSL* ssl, int* alert, void* self);

  std::shared_ptr<const server_tls> options_;
  std::shared_ptr<asio::ssl::context> default_;
  std::mutex mutex_;
  std::unordered_map<const tls_identity*, cached> contexts_;
};

}  // namespace kubeopera::inline v1::http
