// Issuing certificates: P-256, SHA-256, PEM.
#include "src/crypto/openssl.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>

#include <openssl/ec.h>
#include <openssl/pem.h>

#include <initializer_list>

namespace kubeopera::inline v1::crypto {

namespace {

error bad(std::string message) { return {errc::invalid_argument, "BadCertificate", std::move(message)}; }
error failed(const char* what) { return error(errc::internal, "CryptoFailed", what).with_detail(openssl_words()); }

std::string text_of(BIO* memory) {
  char* data = nullptr;
  auto size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

result<key_pair> to_pem(X509* certificate, EVP_PKEY* key) {
  bio cert_out(BIO_new(BIO_s_mem())), key_out(BIO_new(BIO_s_mem()));
  if (!cert_out || !key_out || PEM_write_bio_X509(cert_out.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed("cannot write the certificate");
  }
  key_pair out;
  out.certificate = text_of(cert_out.get());
  out.private_key = text_of(key_out.get());
  return out;
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  return value.empty() ||
         X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX ctx;
  X509V3_set_ctx(&ctx, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, openssl_free<X509_EXTENSION_free>> ext(X509V3_EXT_conf_nid(nullptr, &ctx, nid, value.c_str()));
  return ext && X509_add_ext(certificate, ext.get(), -1) == 1;
}

// 64 random bits with the top one clear: positive and never zero in practice.
bool set_serial(X509* certificate) {
  std::uint64_t serial = (random_u64() >> 1) | 1;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1;
}

bool set_validity(X509* certificate, system_time from, std::chrono::hours valid_for) {
  if (from == system_time{}) from = std::chrono::system_clock::now() - std::chrono::minutes(5);
  auto start = std::chrono::system_clock::to_time_t(from);
  auto end = std::chrono::system_clock::to_time_t(from + valid_for);
  return ASN1_TIME_set(X509_getm_notBefore(certificate), start) && ASN1_TIME_set(X509_getm_notAfter(certificate), end);
}

// "DNS:a,IP:b". Names are checked first, so nothing in them can start another entry.
result<std::string> alt_names(const leaf_options& options) {
  std::string out;
  for (const auto& name : options.dns_names) {
    for (char c : name) {
      bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '*' ||
                c == '_';
      if (!ok) return bad("not a DNS name: " + name);
    }
    if (name.empty() || name.size() > 253) return bad("not a DNS name: " + name.substr(0, 64));
    out += (out.empty() ? "DNS:" : ",DNS:") + name;
  }
  for (const auto& ip : options.ip_addresses) {
    std::unique_ptr<ASN1_OCTET_STRING, openssl_free<ASN1_OCTET_STRING_free>> parsed(a2i_IPADDRESS(ip.c_str()));
    if (!parsed || ip.find_first_not_of("0123456789abcdefABCDEF.:") != std::string::npos) {
      ERR_clear_error();
      return bad("not an IP address: " + ip.substr(0, 64));
    }
    out += (out.empty() ? "IP:" : ",IP:") + ip;
  }
  return out;
}

struct loaded_ca {
  x509 certificate;
  pkey key;
};

result<loaded_ca> load(const key_pair& pair) {
  bio cert_in(BIO_new_mem_buf(pair.certificate.data(), static_cast<int>(pair.certificate.size())));
  bio key_in(BIO_new_mem_buf(pair.private_key.data(), static_cast<int>(pair.private_key.size())));
  loaded_ca out;
  out.certificate.reset(PEM_read_bio_X509(cert_in.get(), nullptr, nullptr, nullptr));
  char no_password[] = "";
  out.key.reset(PEM_read_bio_PrivateKey(key_in.get(), nullptr, nullptr, no_password));
  if (!out.certificate || !out.key || X509_check_private_key(out.certificate.get(), out.key.get()) != 1) {
    ERR_clear_error();
    return bad("certificate and key cannot be read or do not belong together");
  }
  return out;
}

bool set_subject(X509* certificate, const std::string& common_name, const std::vector<std::string>& organizations) {
  auto* name = X509_get_subject_name(certificate);
  for (const auto& o : organizations) {
    if (!add_name(name, "O", o)) return false;
  }
  return add_name(name, "CN", common_name);
}

bool add_leaf_extensions(X509* certificate, X509* issuer, const leaf_options& options, const std::string& names) {
  std::string usage = options.server ? "serverAuth" : "";
  if (options.client) usage += usage.empty() ? "clientAuth" : ",clientAuth";
  return add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
         add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
         (usage.empty() || add_extension(certificate, issuer, NID_ext_key_usage, usage)) &&
         add_extension(certificate, issuer, NID_subject_key_identifier, "hash") &&
         add_extension(certificate, issuer, NID_authority_key_identifier, "keyid") &&
         (names.empty() || add_extension(certificate, issuer, NID_subject_alt_name, names));
}

}  // namespace

result<key_pair> make_ca(const ca_options& options) {
  pkey key(EVP_EC_gen("P-256"));
  x509 certificate(X509_new());
  if (!key || !certificate) return failed("cannot make a key");
  auto* c = certificate.get();
  bool ok = X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) && set_validity(c, options.not_before, options.valid_for) &&
            X509_set_pubkey(c, key.get()) == 1 && set_subject(c, options.common_name, {}) &&
            X509_set_issuer_name(c, X509_get_subject_name(c)) == 1 &&
            add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE") &&
            add_extension(c, c, NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign") &&
            add_extension(c, c, NID_subject_key_identifier, "hash") && X509_sign(c, key.get(), EVP_sha256()) > 0;
  if (!ok) return failed("cannot make a CA certificate");
  return to_pem(c, key.get());
}

result<key_pair> issue(const key_pair& ca, const leaf_options& options) {
  KUBEOPERA_TRY(auto authority, load(ca));
  KUBEOPERA_TRY(auto names, alt_names(options));
  if (names.empty() && options.common_name.empty()) return bad("a certificate needs a name");
  if (options.common_name.size() > 64) return bad("the common name is longer than 64 characters");
  pkey key(EVP_EC_gen("P-256"));
  x509 certificate(X509_new());
  if (!key || !certificate) return failed("cannot make a key");
  auto* c = certificate.get();
  auto* issuer = authority.certificate.get();
  bool ok = X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) && set_validity(c, options.not_before, options.valid_for) &&
            X509_set_pubkey(c, key.get()) == 1 && set_subject(c, options.common_name, options.organizations) &&
            X509_set_issuer_name(c, X509_get_subject_name(issuer)) == 1 && add_leaf_extensions(c, issuer, options, names) &&
            X509_sign(c, authority.key.get(), EVP_sha256()) > 0;
  if (!ok) return failed("cannot make a certificate");
  return to_pem(c, key.get());
}

result<key_pair> issue_server(const key_pair& ca, std::vector<std::string> dns_names, std::vector<std::string> ip_addresses) {
  leaf_options options;
  if (!dns_names.empty() && dns_names.front().size() <= 64) options.common_name = dns_names.front();
  options.dns_names = std::move(dns_names);
  options.ip_addresses = std::move(ip_addresses);
  return issue(ca, options);
}

result<key_pair> issue_client(const key_pair& ca, std::string common_name, std::vector<std::string> organizations) {
  leaf_options options;
  options.common_name = std::move(common_name);
  options.organizations = std::move(organizations);
  options.server = false;
  options.client = true;
  return issue(ca, options);
}

result<void> check_key_pair(std::string_view certificate_pem, std::string_view key_pem) {
  key_pair pair;
  pair.certificate = certificate_pem;
  pair.private_key = key_pem;
  KUBEOPERA_TRY([[maybe_unused]] auto loaded, load(pair));
  return {};
}

}  // namespace kubeopera::inline v1::crypto
