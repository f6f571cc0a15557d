// Building TLS contexts with OpenSSL.
#include "src/http/tls.hpp"

#include "src/http/text.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace kubeopera::inline v1::http {

namespace {

using boost::system::error_code;

error bad_pem(const char* what) {
  char words[256] = "";
  if (auto code = ERR_peek_last_error()) ERR_error_string_n(code, words, sizeof words);
  ERR_clear_error();
  return error(errc::invalid_argument, "BadPem", what).with_detail(words);
}

result<void> use_identity(asio::ssl::context& ctx, const std::string& certificate, const std::string& key) {
  error_code ec;
  ctx.use_certificate_chain(asio::buffer(certificate), ec);
  if (ec) return bad_pem("the certificate cannot be read");
  ctx.use_private_key(asio::buffer(key), asio::ssl::context::pem, ec);
  if (ec || SSL_CTX_check_private_key(ctx.native_handle()) != 1)
    return bad_pem("the private key cannot be read or belongs to another certificate");
  return {};
}

// Adds every certificate of pem to the context's trust store, and, for a server, to the list it sends to clients.
result<void> trust(SSL_CTX* ctx, const std::string& pem, bool announce) {
  std::unique_ptr<BIO, decltype(&BIO_free_all)> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all);
  auto* store = SSL_CTX_get_cert_store(ctx);
  int count = 0;
  while (X509* certificate = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) {
    bool ok = X509_STORE_add_cert(store, certificate) == 1 && (!announce || SSL_CTX_add_client_CA(ctx, certificate) == 1);
    X509_free(certificate);
    if (!ok) return bad_pem("a CA certificate cannot be used");
    ++count;
  }
  auto why = ERR_peek_last_error();
  bool at_end = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
  if (!at_end || count == 0) return bad_pem("the CA text holds no certificate, or a broken one");
  ERR_clear_error();
  // A given certificate is an anchor even if another one signed it.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

void common_settings(SSL_CTX* ctx) {
  SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
}

constexpr unsigned char http_1_1[] = "\x08http/1.1";

int pick_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size, void*) {
  unsigned char* chosen = nullptr;
  int rc = SSL_select_next_proto(&chosen, out_size, http_1_1, sizeof http_1_1 - 1, in, in_size);
  if (rc != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

result<std::shared_ptr<const client_tls_context>> client_tls_context::make(const client_tls& options, const std::string& host) {
  auto out = std::make_shared<client_tls_context>();
  out->name_ = options.server_name.empty() ? host : to_lower(options.server_name);
  out->address_ = static_cast<bool>(parse_ip(out->name_));
  out->context_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  auto* ctx = out->context_->native_handle();
  common_settings(ctx);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
  if (options.ca_pem.empty()) {
    if (SSL_CTX_set_default_verify_paths(ctx) != 1) return bad_pem("the system's certificates cannot be read");
  } else {
    KUBEOPERA_CHECK(trust(ctx, options.ca_pem, false));
  }
  if (options.certificate_pem.empty() != options.private_key_pem.empty()) {
    return error(errc::invalid_argument, "BadPem", "a client certificate needs its key, and a key its certificate");
  }
  if (!options.certificate_pem.empty())
    KUBEOPERA_CHECK(use_identity(*out->context_, options.certificate_pem, options.private_key_pem));
  auto* verify = SSL_CTX_get0_param(ctx);
  X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  bool named = out->address_ ? X509_VERIFY_PARAM_set1_ip_asc(verify, out->name_.c_str()) == 1
                             : X509_VERIFY_PARAM_set1_host(verify, out->name_.data(), out->name_.size()) == 1;
  if (!named) return bad_pem("the server name cannot be verified");
  return std::shared_ptr<const client_tls_context>(std::move(out));
}

result<std::shared_ptr<server_tls_context>> server_tls_context::make(std::shared_ptr<const server_tls> options) {
  auto out = std::make_shared<server_tls_context>();
  out->options_ = std::move(options);
  KUBEOPERA_TRY(out->default_, out->build(out->options_->identity));
  auto* ctx = out->default_->native_handle();
  SSL_CTX_set_tlsext_servername_callback(ctx, &server_tls_context::on_server_name);
  SSL_CTX_set_tlsext_servername_arg(ctx, out.get());
  return out;
}

result<std::shared_ptr<asio::ssl::context>> server_tls_context::build(const tls_identity& identity) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  auto* ctx = context->native_handle();
  common_settings(ctx);
  // Every handshake is a full one: resumed sessions would skip the client certificate.
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(ctx, 0);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(ctx, pick_protocol, nullptr);
  KUBEOPERA_CHECK(use_identity(*context, identity.certificate_pem, identity.private_key_pem));
  if (!options_->client_ca_pem.empty()) {
    KUBEOPERA_CHECK(trust(ctx, options_->client_ca_pem, true));
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

std::shared_ptr<asio::ssl::context> server_tls_context::pick(std::string_view name) {
  if (!options_->by_name) return nullptr;
  auto identity = options_->by_name(name);
  if (!identity) return nullptr;
  std::lock_guard lock(mutex_);
  auto found = contexts_.find(identity.get());
  if (found != contexts_.end() && found->second.identity.lock() == identity) return found->second.context;
  std::erase_if(contexts_, [](const auto& entry) { return entry.second.identity.expired(); });
  auto built = build(*identity);
  if (!built) return nullptr;
  contexts_[identity.get()] = {identity, *built};
  return *built;
}

int server_tls_context::on_server_name(SSL* ssl, int*, void* self) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (!name) return SSL_TLSEXT_ERR_NOACK;
  try {
    auto context = static_cast<server_tls_context*>(self)->pick(to_lower(name));
    if (!context) return SSL_TLSEXT_ERR_NOACK;
    return SSL_set_SSL_CTX(ssl, context->native_handle()) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
  } catch (const std::exception&) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
}

}  // namespace kubeopera::inline v1::http
