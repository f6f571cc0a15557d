// The authority's certificates hold what was asked for and are read back; broken input is refused.
#include <kubeopera/crypto/pki.hpp>

#include <gtest/gtest.h>

namespace {

using namespace kubeopera;
using namespace kubeopera::crypto;

TEST(pki, a_server_certificate_holds_its_names) {
  auto ca = make_ca().value();
  auto pair = issue_server(ca, {"api.example.org", "*.apps.example.org"}, {"127.0.0.1", "::1"}).value();
  auto facts = read_certificate_pem(pair.certificate).value();
  EXPECT_EQ(facts.common_name, "api.example.org");
  EXPECT_EQ(facts.issuer_common_name, "kubeopera CA");
  EXPECT_EQ(facts.dns_names, (std::vector<std::string>{"api.example.org", "*.apps.example.org"}));
  EXPECT_EQ(facts.ip_addresses, (std::vector<std::string>{"127.0.0.1", "0:0:0:0:0:0:0:1"}));
  EXPECT_FALSE(facts.is_ca);
  EXPECT_LT(facts.not_before, std::chrono::system_clock::now());
  EXPECT_GT(facts.not_after, std::chrono::system_clock::now() + std::chrono::hours(24 * 364));
  EXPECT_TRUE(check_key_pair(pair.certificate, pair.private_key));
  EXPECT_FALSE(check_key_pair(pair.certificate, ca.private_key));
}

TEST(pki, a_client_certificate_holds_user_and_groups) {
  auto ca = make_ca().value();
  auto pair = issue_client(ca, "kubernetes-admin", {"system:masters", "ops"}).value();
  auto der = pem_to_der(pair.certificate).value();
  auto facts = read_certificate_der(der).value();
  EXPECT_EQ(facts.common_name, "kubernetes-admin");
  EXPECT_EQ(facts.organizations, (std::vector<std::string>{"system:masters", "ops"}));
  EXPECT_EQ(facts.sha256_hex.size(), 64u);
  EXPECT_EQ(der_to_pem(der).value(), pair.certificate);
}

TEST(pki, validity_is_as_asked) {
  ca_options options;
  options.common_name = "old";
  options.not_before = system_time(std::chrono::seconds(1'600'000'000));
  options.valid_for = std::chrono::hours(1);
  auto facts = read_certificate_pem(make_ca(options).value().certificate).value();
  EXPECT_TRUE(facts.is_ca);
  EXPECT_EQ(facts.not_before, options.not_before);
  EXPECT_EQ(facts.not_after, options.not_before + std::chrono::hours(1));
}

TEST(pki, names_that_could_start_another_entry_are_refused) {
  auto ca = make_ca().value();
  for (const std::string& name :
       std::vector<std::string>{"a,DNS:b", "a b", "", "a;b", std::string("a\0b", 3), std::string(254, 'a')})
    EXPECT_FALSE(issue_server(ca, {name})) << name;
  for (std::string ip : {"1.2.3", "x", "127.0.0.1,DNS:a", ""}) EXPECT_FALSE(issue_server(ca, {"ok"}, {ip})) << ip;
  EXPECT_FALSE(issue(ca, leaf_options()));
  EXPECT_FALSE(issue_client(ca, std::string(65, 'x')));
}

TEST(pki, pem_is_counted_and_broken_blocks_are_refused) {
  auto a = make_ca().value().certificate, b = make_ca().value().certificate;
  EXPECT_EQ(count_certificates(a).value(), 1u);
  EXPECT_EQ(count_certificates("# roots\n" + a + "\nnext\n" + b).value(), 2u);
  EXPECT_FALSE(count_certificates(""));
  EXPECT_FALSE(count_certificates("hello"));
  auto broken = a;
  broken[80] = broken[80] == 'A' ? 'B' : 'A';
  broken.resize(broken.size() - 40);
  EXPECT_FALSE(count_certificates(broken));
  EXPECT_FALSE(count_certificates(b + broken));
  EXPECT_FALSE(read_certificate_pem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"));
  EXPECT_FALSE(read_certificate_der("\x30\x03"));
  EXPECT_FALSE(read_certificate_der(pem_to_der(a).value() + "x"));
  key_pair mixed;
  mixed.certificate = a;
  mixed.private_key = make_ca().value().private_key;
  EXPECT_FALSE(issue_server(mixed, {"x"}));
}

}  // namespace
