// Targets and URLs: each refusal with its reason, beside what is accepted.
#include <kubeopera/http/url.hpp>

#include <gtest/gtest.h>

namespace {

using namespace kubeopera;
using namespace kubeopera::http;
using strings = std::vector<std::string>;
using pairs = std::vector<std::pair<std::string, std::string>>;

std::string reason(std::string_view text) {
  auto r = parse_target(text);
  return r ? "accepted" : r.error().reason();
}

TEST(target, is_taken_apart_and_decoded) {
  auto t = parse_target("/api/v1/apps/caf%C3%A9%20x/?a=1&b=x+y%2Fz&a=2&c&=d&&e=%25").value();
  EXPECT_EQ(t.segments, (strings{"api", "v1", "apps", "caf\xc3\xa9 x", ""}));
  EXPECT_EQ(t.query, (pairs{{"a", "1"}, {"b", "x y/z"}, {"a", "2"}, {"c", ""}, {"", "d"}, {"e", "%"}}));
  EXPECT_EQ(t.raw_path, "/api/v1/apps/caf%C3%A9%20x/");
  EXPECT_EQ(t.get("a"), "1");
  EXPECT_EQ(t.count("a"), 2u);
  EXPECT_FALSE(t.get("z"));
  EXPECT_TRUE(parse_target("/").value().segments.empty());
  EXPECT_EQ(parse_target("/a/").value().segments, (strings{"a", ""}));
  EXPECT_EQ(parse_target("/a?").value().raw_query, "");
}

TEST(target, what_two_readers_could_read_differently_is_refused) {
  const std::pair<std::string_view, const char*> cases[] = {
      {"", "NotOriginForm"},
      {"a", "NotOriginForm"},
      {"*", "NotOriginForm"},
      {"http://x/", "NotOriginForm"},
      {"?a", "NotOriginForm"},
      {"//x", "EmptySegment"},
      {"/a//b", "EmptySegment"},
      {"//", "EmptySegment"},
      {"/a//", "EmptySegment"},
      {"/./a", "DotSegment"},
      {"/a/..", "DotSegment"},
      {"/../a", "DotSegment"},
      {"/.", "DotSegment"},
      {"/...", "accepted"},
      {"/.well-known/a..b", "accepted"},
      {"/%2e%2e/a", "EncodedDot"},
      {"/a/%2E", "EncodedDot"},
      {"/a%2eb", "EncodedDot"},
      {"/..%2f..%2finternal", "EncodedSlash"},
      {"/a%2Fb", "EncodedSlash"},
      {"/a%5cb", "EncodedBackslash"},
      {"/a\\b", "Backslash"},
      {"/a;b=c", "Semicolon"},
      {"/a%3bb", "Semicolon"},
      {"/a?b;c", "accepted"},
      {"/a%00b", "EncodedNul"},
      {"/a%252fb", "DoubleEncoding"},
      {"/a%25", "DoubleEncoding"},
      {"/a%0ab", "ControlCharacter"},
      {"/a%7f", "ControlCharacter"},
      {"/a b", "ControlCharacter"},
      {"/a\tb", "ControlCharacter"},
      {"/a\nb", "ControlCharacter"},
      {std::string_view("/a\0b", 4), "ControlCharacter"},
      {"/a?b=%00", "ControlCharacter"},
      {"/a?b=%0d%0aX", "ControlCharacter"},
      {"/a#b", "Fragment"},
      {"/a?b#c", "Fragment"},
      {"/a%", "BadEncoding"},
      {"/a%2", "BadEncoding"},
      {"/a%zz", "BadEncoding"},
      {"/a%u0041", "BadEncoding"},
      {"/a?b=%", "BadEncoding"},
      {"/caf\xc3\xa9", "BadEncoding"},
      {"/%ff", "NotUtf8"},
      {"/%c0%af", "NotUtf8"},
      {"/%e0%80%80", "NotUtf8"},
      {"/%f0%80%80%80", "NotUtf8"},
      {"/%ed%a0%80", "NotUtf8"},
      {"/%f4%90%80%80", "NotUtf8"},
      {"/%e2%82", "NotUtf8"},
      {"/a?b=%fe", "NotUtf8"},
      {"/%f0%9f%98%80", "accepted"},
      {"/a%20b%21", "accepted"},
  };
  for (auto [text, expected] : cases) EXPECT_EQ(reason(text), expected) << text;
  EXPECT_EQ(reason("/" + std::string(8191, 'a')), "accepted");
  EXPECT_EQ(reason("/" + std::string(8192, 'a')), "TargetTooLong");
}

TEST(encoding, round_trips_every_byte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(percent_decode(percent_encode(all)).value(), all);
  EXPECT_EQ(percent_encode("a-b_c.d~e/f g\xc3\xa9"), "a-b_c.d~e%2Ff%20g%C3%A9");
  EXPECT_EQ(percent_decode("a+b", true).value(), "a b");
  EXPECT_EQ(percent_decode("a+b").value(), "a+b");
  EXPECT_EQ(encode_query({{"a b", "c&d=e"}, {"f", ""}}), "a%20b=c%26d%3De&f=");
  pairs in = {{"label", "app=x,tier in (a,b)"}, {"n\xc3\xa9", "100%"}};
  EXPECT_EQ(parse_target("/?" + encode_query(in)).value().query, in);
}

TEST(url, is_taken_apart) {
  auto u = parse_url("HTTPS://API.Example.org:8443/a?b=c").value();
  EXPECT_TRUE(u.tls());
  EXPECT_EQ(u.host, "api.example.org");
  EXPECT_EQ(u.port, 8443);
  EXPECT_EQ(u.target, "/a?b=c");
  EXPECT_EQ(u.authority(), "api.example.org:8443");
  EXPECT_EQ(u.origin(), "https://api.example.org:8443");
  EXPECT_FALSE(u.host_is_address);
  auto six = parse_url("http://[2001:DB8::1]").value();
  EXPECT_EQ(six.host, "2001:db8::1");
  EXPECT_EQ(six.authority(), "[2001:db8::1]");
  EXPECT_EQ(six.target, "/");
  EXPECT_EQ(six.port, 80);
  EXPECT_TRUE(six.host_is_address);
  EXPECT_TRUE(parse_url("http://10.0.0.1:80/").value().host_is_address);
  EXPECT_EQ(parse_url("https://x:443/").value().authority(), "x");
  EXPECT_EQ(parse_url("https://x?y=z").value().target, "/?y=z");
  EXPECT_TRUE(parse_url("https://xn--bcher-kva.example/"));
  EXPECT_TRUE(parse_url("https://my_host.a-b.c1/"));
}

TEST(url, what_could_lead_elsewhere_is_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "BadScheme"},
      {"example.org", "BadScheme"},
      {"ftp://x/", "BadScheme"},
      {"file:///etc/passwd", "BadScheme"},
      {"javascript://x", "BadScheme"},
      {"http:/x", "BadScheme"},
      {"http://u@x/", "UserInfo"},
      {"http://u:p@x/", "UserInfo"},
      {"http://good.example@evil.example/", "UserInfo"},
      {"http:///", "BadHost"},
      {"http://-a/", "BadHost"},
      {"http://a-/", "BadHost"},
      {"http://a-.b/", "BadHost"},
      {"http://a..b/", "BadHost"},
      {"http://a./", "BadHost"},
      {"http://.a/", "BadHost"},
      {"http://a b/", "BadHost"},
      {"http://a%2eb/", "BadHost"},
      {"http://\xe2\x91\xa0.example/", "BadHost"},
      {"http://127.1/", "BadHost"},
      {"http://2130706433/", "BadHost"},
      {"http://0x7f000001/", "BadHost"},
      {"http://0x7f.1/", "BadHost"},
      {"http://0177.0.0.1/", "BadHost"},
      {"http://017700000001/", "BadHost"},
      {"http://0/", "BadHost"},
      {"http://00000127.0.0.1/", "BadHost"},
      {"http://256.0.0.1/", "BadHost"},
      {"http://1.2.3.4.5/", "BadHost"},
      {"http://example.0x7f/", "BadHost"},
      {"http://[::1/", "BadHost"},
      {"http://[127.0.0.1]/", "BadHost"},
      {"http://[fe80::1%25eth0]/", "BadHost"},
      {"http://[::1]x/", "BadHost"},
      {"http://::1/", "BadHost"},
      {"http://x:/", "BadPort"},
      {"http://x:0/", "BadPort"},
      {"http://x:080/", "BadPort"},
      {"http://x:65536/", "BadPort"},
      {"http://x:99999/", "BadPort"},
      {"http://x:+80/", "BadPort"},
      {"http://x:80a/", "BadPort"},
      {"http://x:8 0/", "BadPort"},
      {"http://x/#f", "Fragment"},
      {"http://x#f", "NotOriginForm"},
      {"http://x/a/../b", "DotSegment"},
      {"http://x\\y/", "NotOriginForm"},
      {"http://x/a b", "ControlCharacter"},
  };
  for (auto [text, expected] : cases) {
    auto r = parse_url(text);
    ASSERT_FALSE(r) << text;
    EXPECT_EQ(r.error().reason(), expected) << text;
    EXPECT_EQ(r.error().code(), errc::invalid_argument);
  }
}

}  // namespace
