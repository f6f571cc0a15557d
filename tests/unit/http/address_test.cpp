// Addresses and the public-internet policy: one inside and one outside each refused network.
#include <kubeopera/http/address.hpp>

#include <gtest/gtest.h>

namespace {

using namespace kubeopera;
using namespace kubeopera::http;

TEST(address, text_is_strict) {
  for (const char* text : {"1.2.3.4", "0.0.0.0", "255.255.255.255", "::", "::1", "2001:db8::1", "::ffff:1.2.3.4"}) {
    auto ip = parse_ip(text);
    ASSERT_TRUE(ip) << text;
    EXPECT_EQ(to_string(*ip), text);
  }
  for (const char* text :
       {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.04", "0x1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1..3.4",
        "-1.2.3.4", ":::", "::1%lo", "[::1]", "1.2.3.4:80", "g::1", "1:2:3:4:5:6:7:8:9", "999999999999"}) {
    EXPECT_FALSE(parse_ip(text)) << text;
  }
  EXPECT_FALSE(parse_ip(std::string_view("::1\0", 4)));
}

TEST(network, is_strict_and_contains_by_prefix) {
  auto n = parse_network("172.16.0.0/12").value();
  EXPECT_TRUE(n.contains(parse_ip("172.31.255.255").value()));
  EXPECT_FALSE(n.contains(parse_ip("172.32.0.0").value()));
  EXPECT_FALSE(n.contains(parse_ip("::1").value()));
  EXPECT_TRUE(parse_network("0.0.0.0/0").value().contains(parse_ip("8.8.8.8").value()));
  EXPECT_TRUE(parse_network("2001:db8::/33").value().contains(parse_ip("2001:db8:7fff::").value()));
  EXPECT_FALSE(parse_network("2001:db8::/33").value().contains(parse_ip("2001:db8:8000::").value()));
  for (const char* text :
       {"", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0.1/8", "x/8", "::/129", "::1/64", "10.0.0.0/"}) {
    EXPECT_FALSE(parse_network(text)) << text;
  }
}

TEST(policy, only_the_public_internet_passes) {
  const char* refused[] = {
      "0.0.0.0",     "0.255.255.255",  "10.0.0.1",         "10.255.255.255", "100.64.0.0",      "100.127.255.255",
      "127.0.0.1",   "127.255.0.1",    "169.254.169.254",  "172.16.0.1",     "172.31.255.255",  "192.0.0.1",
      "192.0.2.1",   "192.88.99.1",    "192.168.1.1",      "198.18.0.1",     "198.19.255.255",  "198.51.100.1",
      "203.0.113.1", "224.0.0.1",      "239.255.255.255",  "240.0.0.1",      "255.255.255.255", "::",
      "::1",         "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::127.0.0.1",    "64:ff9b::7f00:1", "64:ff9b:1::1",
      "100::1",      "2001::1",        "2001:1ff::1",      "2001:db8::1",    "2002:7f00:1::1",  "3fff::1",
      "fc00::1",     "fd00:ec2::254",  "fe80::1",          "fec0::1",        "ff02::1",         "4000::1"};
  for (const char* text : refused) EXPECT_FALSE(is_public(parse_ip(text).value())) << text;
  const char* passed[] = {"1.0.0.1",         "9.255.255.255",  "11.0.0.0",        "100.63.255.255", "100.128.0.0",
                          "126.255.255.255", "128.0.0.1",      "169.253.255.255", "169.255.0.0",    "172.15.255.255",
                          "172.32.0.0",      "192.0.1.0",      "192.0.3.0",       "192.88.98.1",    "192.167.255.255",
                          "192.169.0.0",     "198.17.255.255", "198.20.0.0",      "198.51.99.1",    "203.0.112.1",
                          "223.255.255.255", "8.8.8.8",        "2606:4700::1111", "2001:200::1",    "2001:4860:4860::8888",
                          "2a00:1450::1",    "2003::1"};
  for (const char* text : passed) EXPECT_TRUE(is_public(parse_ip(text).value())) << text;
}

TEST(policy, more_networks_can_be_refused) {
  auto policy = public_internet_only({parse_network("8.8.0.0/16").value()});
  auto r = policy(parse_ip("8.8.4.4").value());
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::permission_denied);
  EXPECT_EQ(r.error().reason(), "AddressRefused");
  EXPECT_TRUE(policy(parse_ip("8.9.0.1").value()));
  EXPECT_FALSE(policy(parse_ip("127.0.0.1").value()));
}

}  // namespace
