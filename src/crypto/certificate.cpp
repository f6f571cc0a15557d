// Reading certificates: facts, PEM and DER. Nothing is verified here; TLS does that.
#include "src/crypto/openssl.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>

#include <openssl/pem.h>

#include <ctime>

namespace kubeopera::inline v1::crypto {

namespace {

error bad(std::string message) { return {errc::invalid_argument, "BadCertificate", std::move(message)}; }

bio memory(std::string_view text) { return bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

result<x509> first_of(std::string_view pem) {
  auto in = memory(pem);
  x509 certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!certificate) return bad("no readable PEM certificate");
  return certificate;
}

result<x509> of_der(std::string_view der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  x509 certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (!certificate || at != reinterpret_cast<const unsigned char*>(der.data()) + der.size()) return bad("not a DER certificate");
  return certificate;
}

std::string der_of(X509* certificate) {
  unsigned char* data = nullptr;
  int size = i2d_X509(certificate, &data);
  must(size > 0, "cannot encode a certificate");
  std::string out(reinterpret_cast<char*>(data), static_cast<std::size_t>(size));
  OPENSSL_free(data);
  return out;
}

std::string utf8_of(const ASN1_STRING* text) {
  unsigned char* data = nullptr;
  int size = ASN1_STRING_to_UTF8(&data, text);
  if (size < 0) return {};
  std::string out(reinterpret_cast<char*>(data), static_cast<std::size_t>(size));
  OPENSSL_free(data);
  return out;
}

std::vector<std::string> entries(const X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, nid, at)) >= 0;) {
    out.push_back(utf8_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at))));
  }
  return out;
}

std::string last_or_empty(std::vector<std::string> all) { return all.empty() ? std::string() : std::move(all.back()); }

system_time time_of(const ASN1_TIME* t) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(t, &parts) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

std::string ip_text(const ASN1_OCTET_STRING* ip) {
  const auto* b = ASN1_STRING_get0_data(ip);
  int size = ASN1_STRING_length(ip);
  char buffer[64] = {};
  if (size == 4) {
    std::snprintf(buffer, sizeof buffer, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
    return buffer;
  }
  std::string out;
  for (int i = 0; size == 16 && i < 16; i += 2) {
    std::snprintf(buffer, sizeof buffer, "%s%x", i ? ":" : "", b[i] << 8 | b[i + 1]);
    out += buffer;
  }
  return out;
}

void read_alt_names(X509* certificate, certificate_facts& out) {
  std::unique_ptr<GENERAL_NAMES, openssl_free<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int kind = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind);
    if (kind == GEN_DNS) out.dns_names.push_back(utf8_of(static_cast<const ASN1_STRING*>(value)));
    if (kind == GEN_IPADD) out.ip_addresses.push_back(ip_text(static_cast<const ASN1_OCTET_STRING*>(value)));
  }
}

certificate_facts facts_of(X509* certificate) {
  certificate_facts out;
  const auto* subject = X509_get_subject_name(certificate);
  out.common_name = last_or_empty(entries(subject, NID_commonName));
  out.organizations = entries(subject, NID_organizationName);
  out.issuer_common_name = last_or_empty(entries(X509_get_issuer_name(certificate), NID_commonName));
  read_alt_names(certificate, out);
  out.not_before = time_of(X509_get0_notBefore(certificate));
  out.not_after = time_of(X509_get0_notAfter(certificate));
  out.is_ca = X509_check_ca(certificate) == 1;
  out.sha256_hex = sha256_hex(der_of(certificate));
  return out;
}

}  // namespace

result<certificate_facts> read_certificate_pem(std::string_view pem) {
  KUBEOPERA_TRY(auto certificate, first_of(pem));
  return facts_of(certificate.get());
}

result<certificate_facts> read_certificate_der(std::string_view der) {
  KUBEOPERA_TRY(auto certificate, of_der(der));
  return facts_of(certificate.get());
}

result<std::string> pem_to_der(std::string_view pem) {
  KUBEOPERA_TRY(auto certificate, first_of(pem));
  return der_of(certificate.get());
}

result<std::string> der_to_pem(std::string_view der) {
  KUBEOPERA_TRY(auto certificate, of_der(der));
  bio out(BIO_new(BIO_s_mem()));
  must(out && PEM_write_bio_X509(out.get(), certificate.get()) == 1, "cannot write a certificate");
  char* data = nullptr;
  auto size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

result<std::size_t> count_certificates(std::string_view pem) {
  auto in = memory(pem);
  std::size_t count = 0;
  while (x509 certificate{PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)}) ++count;
  auto why = ERR_peek_last_error();
  bool at_end = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) return bad("a certificate of the PEM text is broken");
  if (count == 0) return bad("the PEM text holds no certificate");
  return count;
}

}  // namespace kubeopera::inline v1::crypto
