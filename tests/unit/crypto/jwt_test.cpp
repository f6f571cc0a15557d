// Every way in which a token may be wrong has its refusal, and an accepted twin.
#include "src/crypto/claims_reader.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/jwt.hpp>

#include <gtest/gtest.h>

#include <functional>

namespace {

using namespace kubeopera;
using namespace kubeopera::crypto;
using std::chrono::seconds;

const secret key("Tq7wq0kqX2mJ3s9dL5vB8nC1zR4yH6uE");
constexpr std::int64_t now = 1'800'000'000;

class fixed_clock final : public kubeopera::clock {
 public:
  system_time now() const override { return system_time(seconds(at)); }
  steady_time steady() const override { return {}; }
  task<void> sleep(duration) override { return {}; }
  std::int64_t at = ::now;
};
fixed_clock clk;

jwt_verifier verifier() { return jwt_verifier::make(key, jwt_options(), clk).value(); }
jwt_signer signer() { return jwt_signer::make(key, jwt_options(), clk).value(); }

std::string sign_raw(std::string_view header, std::string_view payload, const secret& with = key) {
  auto text = base64url_encode(header) + "." + base64url_encode(payload);
  return text + "." + base64url_encode(bytes(hmac_sha256(with).sign(text)));
}

const std::string good_header = R"({"alg":"HS256","typ":"JWT"})";

std::string payload(std::string_view replaced = {}, std::string_view by = {}) {
  std::string out =
      R"({"iss":"kubeopera","aud":"kubeopera","token_use":"access","sub":"u1","tenant_id":"t1","exp":1800000600,"iat":1800000000})";
  if (!replaced.empty()) {
    auto at = out.find(replaced);
    EXPECT_NE(at, std::string::npos) << replaced;
    out.replace(at, replaced.size(), by);
  }
  return out;
}

std::string reason(const std::string& token) {
  auto r = verifier().verify(token);
  if (r) return "accepted";
  EXPECT_EQ(r.error().code(), errc::unauthenticated);
  return r.error().reason();
}

TEST(jwt, what_was_signed_is_read_back) {
  claims in;
  in.sub = "user-1";
  in.tenant_id = "acme";
  in.name = "Zo\xc3\xab";
  in.email = "zoe@example.org";
  in.roles = {"developer", "viewer"};
  in.permissions = {"apps:read", "apps:write"};
  in.platform_admin = true;
  in.jti = "j1";
  in.exp = system_time(seconds(now + 900));
  auto out = verifier().verify(signer().sign(in).value()).value();
  EXPECT_EQ(out.sub, in.sub);
  EXPECT_EQ(out.tenant_id, in.tenant_id);
  EXPECT_EQ(out.name, in.name);
  EXPECT_EQ(out.email, in.email);
  EXPECT_EQ(out.roles, in.roles);
  EXPECT_EQ(out.permissions, in.permissions);
  EXPECT_TRUE(out.platform_admin);
  EXPECT_EQ(out.jti, "j1");
  EXPECT_EQ(out.iat, system_time(seconds(now)));
  EXPECT_EQ(out.exp, in.exp);
}

TEST(jwt, the_hand_made_twin_is_accepted) {
  EXPECT_EQ(reason(sign_raw(good_header, payload())), "accepted");
  EXPECT_EQ(reason(sign_raw(R"({"typ":"JWT","alg":"HS256"})", payload())), "accepted");
  EXPECT_EQ(reason(sign_raw(R"({"alg":"HS256"})", payload())), "accepted");
  EXPECT_EQ(reason(sign_raw(R"({"alg":"HS256","kid":"2026-11"})", payload())), "accepted");
  EXPECT_FALSE(verifier().verify(sign_raw(good_header, payload())).value().platform_admin);
}

TEST(jwt, headers_of_other_worlds_are_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"alg":"none"})", "TokenAlgorithm"},
      {R"({"alg":"nOnE"})", "TokenAlgorithm"},
      {R"({"alg":"RS256","typ":"JWT"})", "TokenAlgorithm"},
      {R"({"alg":"ES256"})", "TokenAlgorithm"},
      {R"({"alg":"HS512"})", "TokenAlgorithm"},
      {R"({"alg":"hs256"})", "TokenAlgorithm"},
      {R"({"alg":["HS256"]})", "TokenAlgorithm"},
      {R"({"typ":"JWT"})", "TokenAlgorithm"},
      {R"({})", "TokenAlgorithm"},
      {R"({"alg":"none","alg":"HS256"})", "TokenMalformed"},
      {R"({"alg":"HS256","alg":"none"})", "TokenMalformed"},
      {R"({"alg":"HS256","crit":["exp"]})", "TokenMalformed"},
      {R"({"alg":"HS256","b64":false})", "TokenMalformed"},
      {R"({"alg":"HS256","jku":"https://evil.example/"})", "TokenMalformed"},
      {R"({"alg":"HS256","jwk":{}})", "TokenMalformed"},
      {R"({"alg":"HS256","x5u":"https://evil.example/"})", "TokenMalformed"},
      {R"({"alg":"HS256","typ":"JWE"})", "TokenMalformed"},
      {R"({"alg":"HS256"} )", "accepted"},
      {R"({"alg":"HS256"}x)", "TokenMalformed"},
      {R"("HS256")", "TokenMalformed"},
  };
  for (auto [header, expected] : cases) EXPECT_EQ(reason(sign_raw(header, payload())), expected) << header;
}

TEST(jwt, claims_that_do_not_fit_are_refused) {
  struct row {
    const char* replaced;
    const char* by;
    const char* expected;
  };
  const row rows[] = {
      {R"("exp":1800000600)", R"("exp":1799999941)", "accepted"},
      {R"("exp":1800000600)", R"("exp":1799999940)", "TokenExpired"},
      {R"("exp":1800000600,)", "", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":"1800000600")", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":1800000600.0)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":1e300)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":-1)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":0)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":9223372036854775807)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":9000000000)", "accepted"},
      {R"("exp":1800000600)", R"("exp":9000000001)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":253402300799)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":null)", "TokenClaims"},
      {R"("exp":1800000600)", R"("exp":1,"exp":1800000600)", "TokenMalformed"},
      {R"("iat":1800000000)", R"("iat":1800000060)", "accepted"},
      {R"("iat":1800000000)", R"("iat":1800000061)", "TokenNotYetValid"},
      {R"("iat":1800000000)", R"("iat":"x")", "TokenClaims"},
      {R"("iat":1800000000)", R"("iat":1800000000,"nbf":1800000060)", "accepted"},
      {R"("iat":1800000000)", R"("iat":1800000000,"nbf":1800000061)", "TokenNotYetValid"},
      {R"("iss":"kubeopera")", R"("iss":"Kubeopera")", "TokenIssuer"},
      {R"("iss":"kubeopera",)", "", "TokenIssuer"},
      {R"("iss":"kubeopera")", R"("iss":["kubeopera"])", "TokenIssuer"},
      {R"("aud":"kubeopera")", R"("aud":["x","kubeopera"])", "accepted"},
      {R"("aud":"kubeopera")", R"("aud":["x"])", "TokenAudience"},
      {R"("aud":"kubeopera")", R"("aud":["kubeopera",1])", "TokenAudience"},
      {R"("aud":"kubeopera")", R"("aud":"other")", "TokenAudience"},
      {R"("aud":"kubeopera",)", "", "TokenAudience"},
      {R"("token_use":"access")", R"("token_use":"refresh")", "TokenUse"},
      {R"("token_use":"access",)", "", "TokenUse"},
      {R"("sub":"u1")", R"("sub":"")", "TokenClaims"},
      {R"("sub":"u1")", R"("sub":7)", "TokenClaims"},
      {R"("sub":"u1",)", "", "TokenClaims"},
      {R"("tenant_id":"t1")", R"("tenant_id":["t1"])", "TokenClaims"},
      {R"("tenant_id":"t1")", R"("tenant_id":"t1","tenant_id":"t2")", "TokenMalformed"},
      {R"("tenant_id":"t1")", R"("tenant_id":"t1","platform_admin":1)", "TokenClaims"},
      {R"("tenant_id":"t1")", R"("tenant_id":"t1","platform_admin":"true")", "TokenClaims"},
      {R"("tenant_id":"t1")", R"("tenant_id":"t1","roles":"admin")", "TokenClaims"},
      {R"("tenant_id":"t1")", R"("tenant_id":"t1","permissions":[["x"]])", "TokenClaims"},
      {R"("tenant_id":"t1")", R"("tenant_id":"t1","x":[[[[[1]]]]])", "TokenMalformed"},
  };
  for (const auto& r : rows) EXPECT_EQ(reason(sign_raw(good_header, payload(r.replaced, r.by))), r.expected) << r.by;
}

TEST(jwt, the_form_must_be_exact) {
  auto token = sign_raw(good_header, payload());
  auto last_dot = token.rfind('.');
  EXPECT_EQ(reason(token), "accepted");
  EXPECT_EQ(reason(""), "TokenMalformed");
  EXPECT_EQ(reason(".."), "TokenMalformed");
  EXPECT_EQ(reason(token + ".x"), "TokenMalformed");
  EXPECT_EQ(reason(token.substr(0, last_dot)), "TokenMalformed");
  EXPECT_EQ(reason(token.substr(0, last_dot + 1)), "TokenMalformed");
  EXPECT_EQ(reason(token + "="), "TokenMalformed");
  EXPECT_EQ(reason(token.substr(0, last_dot + 1) + std::string(47, 'A')), "TokenMalformed");
  EXPECT_EQ(reason(" " + token), "TokenMalformed");
  EXPECT_EQ(reason(token + "\n"), "TokenMalformed");
  EXPECT_EQ(reason(std::string(9000, '.')), "TokenTooLarge");
  EXPECT_EQ(reason(sign_raw(good_header, payload(R"("u1")", '"' + std::string(8000, 'u') + '"'))), "TokenTooLarge");
  // 32 bytes end in 4 used bits of 6: the unused two must be zero.
  auto twin = token;
  twin.back() = twin.back() == 'B' ? 'C' : 'B';
  EXPECT_NE(reason(twin), "accepted");
}

TEST(jwt, every_change_of_a_byte_is_noticed) {
  auto token = sign_raw(good_header, payload());
  for (std::size_t i = 0; i < token.size(); ++i) {
    auto changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_NE(reason(changed), "accepted") << i;
  }
  EXPECT_EQ(reason(sign_raw(good_header, payload(), secret("another key of thirty-two bytes!!"))), "TokenSignature");
}

TEST(jwt, weak_keys_and_wide_leeways_make_no_verifier) {
  EXPECT_EQ(jwt_verifier::make(secret("secret")).error().reason(), "WeakSecret");
  EXPECT_EQ(jwt_signer::make(secret(std::string(40, 'x'))).error().reason(), "WeakSecret");
  jwt_options wide;
  wide.leeway = seconds(61);
  EXPECT_EQ(jwt_verifier::make(key, wide).error().reason(), "BadLeeway");
  jwt_options nobody;
  nobody.audience.clear();
  EXPECT_FALSE(jwt_verifier::make(key, nobody));
}

TEST(jwt, claims_that_cannot_be_verified_are_not_signed) {
  claims c;
  c.exp = system_time(seconds(now + 10));
  EXPECT_FALSE(signer().sign(c));
  c.sub = "u";
  EXPECT_TRUE(signer().sign(c));
  c.exp = system_time(seconds(now));
  EXPECT_FALSE(signer().sign(c));
  c.exp = system_time(seconds(now + 10));
  c.permissions.assign(2000, "apps:read");
  EXPECT_FALSE(signer().sign(c));
}

bool equal(const claims& a, const claims& b) {
  return a.sub == b.sub && a.tenant_id == b.tenant_id && a.name == b.name && a.email == b.email && a.roles == b.roles &&
         a.permissions == b.permissions && a.platform_admin == b.platform_admin && a.jti == b.jti && a.iat == b.iat &&
         a.exp == b.exp;
}

TEST(jwt, claims_of_the_last_token_do_not_stay) {
  claims who;
  claims rich;
  rich.sub = "u";
  rich.tenant_id = "t";
  rich.name = rich.email = rich.jti = "x";
  rich.roles = {"a", "b"};
  rich.permissions = {"p"};
  rich.platform_admin = true;
  rich.exp = system_time(seconds(now + 10));
  ASSERT_TRUE(verifier().verify(signer().sign(rich).value(), who));
  EXPECT_TRUE(who.platform_admin);
  claims poor;
  poor.sub = "v";
  poor.iat = system_time(seconds(now));
  poor.exp = rich.exp;
  ASSERT_TRUE(verifier().verify(signer().sign(poor).value(), who));
  EXPECT_TRUE(equal(who, poor));
}

// Whatever the quick reader accepts, the closed-world reader accepts with the same meaning: a space behind the brace sends the
// same document the slow way.
TEST(jwt, the_quick_and_the_thorough_reader_agree_on_mutated_payloads) {
  const std::string base =
      R"({"iss":"kubeopera","aud":"kubeopera","token_use":"access","sub":"u1","tenant_id":"t1","roles":["a","bb"],"permissions":[],)"
      R"("platform_admin":false,"iat":1800000000,"nbf":1800000000,"exp":1800000600,"name":"n","email":"e","jti":"j"})";
  const std::string pieces[] = {"\"",
                                "\\",
                                "{",
                                "}",
                                "[",
                                "]",
                                ",",
                                ":",
                                "0",
                                "9",
                                "-",
                                ".",
                                "e",
                                "true",
                                "null",
                                " ",
                                "\n",
                                "\x01",
                                "\x7f",
                                "\xc3\xa9",
                                "\xff",
                                "\\u0041",
                                "\"sub\":\"x\",",
                                "\"exp\":1,",
                                std::string("\0", 1),
                                "\"x\":1,"};
  auto v = verifier();
  jwt_options options;
  std::uint64_t random = 88172645463325252;
  auto next = [&random] {
    random ^= random << 13;
    random ^= random >> 7;
    return random ^= random << 17;
  };
  int quick = 0, slow = 0;
  for (int i = 0; i < 40'000; ++i) {
    auto text = base;
    for (auto n = next() % 3; n > 0; --n) {
      auto at = next() % text.size();
      switch (next() % 3) {
        case 0:
          text.erase(at, 1 + next() % 4);
          break;
        case 1:
          text.insert(at, pieces[next() % std::size(pieces)]);
          break;
        default:
          text[at] = static_cast<char>(next());
          break;
      }
    }
    std::string padded = text + std::string(claims_padding, '"');
    claims a;
    bool accepted = read_plain_claims(std::string_view(padded).substr(0, text.size()), options, now, a);
    auto b = v.verify(sign_raw(good_header, " " + text));
    quick += accepted;
    slow += static_cast<bool>(b);
    if (!accepted) continue;
    ASSERT_TRUE(b) << text;
    ASSERT_TRUE(equal(a, *b)) << text;
  }
  EXPECT_GT(quick, 10'000);
  EXPECT_GT(slow, quick);
}

}  // namespace
