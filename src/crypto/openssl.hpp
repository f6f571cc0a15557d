// Owning pointers over OpenSSL's types and its error queue. Private to the module.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace kubeopera::inline v1::crypto {

template <auto Free>
struct openssl_free {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};
using md_ctx = std::unique_ptr<EVP_MD_CTX, openssl_free<EVP_MD_CTX_free>>;
using mac_ctx = std::unique_ptr<EVP_MAC_CTX, openssl_free<EVP_MAC_CTX_free>>;
using pkey = std::unique_ptr<EVP_PKEY, openssl_free<EVP_PKEY_free>>;
using x509 = std::unique_ptr<X509, openssl_free<X509_free>>;
using bio = std::unique_ptr<BIO, openssl_free<BIO_free_all>>;

/// The newest words of OpenSSL's error queue, which is emptied.
inline std::string openssl_words() {
  char text[256] = "no detail";
  if (auto code = ERR_peek_last_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

/// For calls that fail only when memory or the library is broken.
inline void must(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + openssl_words());
}

}  // namespace kubeopera::inline v1::crypto
