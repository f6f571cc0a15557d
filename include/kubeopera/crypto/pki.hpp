// A small certificate authority and the reading of certificates. P-256 keys, SHA-256 signatures, PEM throughout.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/result.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::crypto {

/// A certificate and its key, both PEM (the key as PKCS#8).
struct key_pair {
  key_pair() = default;
  std::string certificate;
  std::string private_key;
};

struct ca_options {
  ca_options() = default;
  std::string common_name = "kubeopera CA";
  system_time not_before{};  ///< zero: five minutes ago
  std::chrono::hours valid_for{24 * 3650};
};

struct leaf_options {
  leaf_options() = default;
  std::string common_name;
  std::vector<std::string> organizations;  ///< O: the groups of a Kubernetes client certificate
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  bool server = true;        ///< extended key usage serverAuth
  bool client = false;       ///< extended key usage clientAuth
  system_time not_before{};  ///< zero: five minutes ago
  std::chrono::hours valid_for{24 * 365};
};

/// A self-signed CA. Errors: internal (the library failed).
result<key_pair> make_ca(const ca_options& options = ca_options());
/// A certificate signed by ca. Errors: invalid_argument (ca unreadable, an IP address that is none, nothing to name).
result<key_pair> issue(const key_pair& ca, const leaf_options& options);
/// Shorthands for the two usual kinds.
result<key_pair> issue_server(const key_pair& ca, std::vector<std::string> dns_names, std::vector<std::string> ip_addresses = {});
result<key_pair> issue_client(const key_pair& ca, std::string common_name, std::vector<std::string> organizations = {});

struct certificate_facts {
  certificate_facts() = default;
  std::string common_name;
  std::vector<std::string> organizations;
  std::string issuer_common_name;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  system_time not_before{}, not_after{};
  bool is_ca = false;
  std::string sha256_hex;  ///< fingerprint of the DER
};

/// Facts of the first certificate. Verifies nothing. Errors: invalid_argument (reason BadCertificate).
result<certificate_facts> read_certificate_pem(std::string_view pem);
result<certificate_facts> read_certificate_der(std::string_view der);
/// The first certificate of pem as DER. Errors: invalid_argument.
result<std::string> pem_to_der(std::string_view pem);
/// Errors: invalid_argument where der is not a certificate.
result<std::string> der_to_pem(std::string_view der);
/// How many certificates pem holds; text between them is allowed, a broken block is not. Errors: invalid_argument where there is
/// none or one is broken.
result<std::size_t> count_certificates(std::string_view pem);
/// Checks that key_pem is a private key that belongs to the first certificate of certificate_pem. Errors: invalid_argument.
result<void> check_key_pair(std::string_view certificate_pem, std::string_view key_pem);

}  // namespace kubeopera::inline v1::crypto
