// From a token to a caller, from the environment to settings, and which addresses may be probed.
#include "server/app/auth.hpp"

#include "server/app/config.hpp"

#include <kubeopera/crypto/jwt.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

using namespace kubeopera;

namespace {

const secret key("Tq7wq0kqX2mJ3s9dL5vB8nC1zR4yH6uE");

std::string reason(const std::string& user, const std::string& tenant) {
  auto authenticate = app::make_authenticator(key, crypto::jwt_options()).value();
  crypto::claims c;
  c.sub = user;
  c.tenant_id = tenant;
  c.exp = std::chrono::system_clock::now() + std::chrono::minutes(5);
  auto token = crypto::jwt_signer::make(key).value().sign(c).value();
  auto who = authenticate(token);
  if (!who) return who.error().reason();
  EXPECT_EQ(who->user, user);
  EXPECT_EQ(who->tenant.value_or(""), tenant);
  return "accepted";
}

bool may_probe(const http::address_policy& policy, const char* address) {
  return policy(http::parse_ip(address).value()).has_value();
}

}  // namespace

TEST(authenticator, takes_ids_that_rows_and_logs_can_hold) {
  EXPECT_EQ(reason("u", "t"), "accepted");
  EXPECT_EQ(reason("J\u00e4ger, A.", ""), "accepted");
  EXPECT_EQ(reason(std::string(253, 'u'), std::string(63, 't')), "accepted");
  EXPECT_EQ(reason(std::string(254, 'u'), "t"), "TokenClaims");
  EXPECT_EQ(reason(std::string("u\0v", 3), "t"), "TokenClaims");
  EXPECT_EQ(reason("u\nv", "t"), "TokenClaims");
  EXPECT_EQ(reason("u\x7f", "t"), "TokenClaims");
  EXPECT_EQ(reason("u", std::string(64, 't')), "TokenClaims");
  for (const std::string tenant : {std::string("a b"), std::string("a\0b", 3), std::string("a\n"), std::string("\u00e4")})
    EXPECT_EQ(reason("u", tenant), "TokenClaims");
}

TEST(settings, networks_of_probes_are_read_strictly) {
  ::setenv("DATABASE_URL", "host=/nowhere", 1);
  ::setenv("AUTH_JWT_ACCESS_SECRET", "x", 1);
  ::setenv("APPS_PROBE_NETWORKS", "10.1.0.0/16,fd00:1::/64", 1);
  auto good = app::read_settings();
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->probe_networks.size(), 2u);
  for (const char* bad : {"10.1.0.0", "10.1.0.1/16", "10.1.0.0/33", "10.1.0.0/16;10.2.0.0/16", "any"}) {
    ::setenv("APPS_PROBE_NETWORKS", bad, 1);
    auto refused = app::read_settings();
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_EQ(refused.error().violations().at(0).pointer, "APPS_PROBE_NETWORKS");
  }
  ::unsetenv("APPS_PROBE_NETWORKS");
}

TEST(probes, lead_to_the_internet_and_to_networks_that_were_named) {
  auto strict = app::probe_policy({});
  auto wider = app::probe_policy({http::parse_network("10.1.0.0/16").value()});
  EXPECT_TRUE(may_probe(strict, "8.8.8.8"));
  EXPECT_FALSE(may_probe(strict, "10.1.2.3"));
  EXPECT_TRUE(may_probe(wider, "10.1.2.3"));
  EXPECT_TRUE(may_probe(wider, "8.8.8.8"));
  for (const char* inside : {"10.2.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254"}) {
    EXPECT_FALSE(may_probe(strict, inside)) << inside;
    EXPECT_FALSE(may_probe(wider, inside)) << inside;
  }
}
