// HS256 tokens. The header must be one of a few byte strings' meaning; claims are read by the closed-world JSON reader.
#include "src/crypto/base64.hpp"
#include "src/crypto/claims_reader.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/jwt.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <array>

namespace kubeopera::inline v1::crypto {

namespace {

using std::chrono::seconds;

constexpr std::size_t max_token = 8192;
error refused(const char* reason, const char* message) { return {errc::unauthenticated, reason, message}; }

json::limits token_limits() {
  json::limits lim;
  lim.max_bytes = max_token;
  lim.max_depth = 4;
  lim.max_nodes = 2000;
  return lim;
}

std::int64_t to_unix(system_time t) { return std::chrono::duration_cast<seconds>(t.time_since_epoch()).count(); }
system_time from_unix(std::int64_t t) { return system_time(seconds(t)); }

// The three segments of a compact token.
struct segments {
  std::string_view header, payload, signature, signed_part;
};

result<segments> split(std::string_view token) {
  if (token.size() > max_token) return refused("TokenTooLarge", "the token is larger than 8 KiB");
  auto first = token.find('.');
  auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) {
    return refused("TokenMalformed", "the token does not have three parts");
  }
  segments out{token.substr(0, first), token.substr(first + 1, second - first - 1), token.substr(second + 1),
               token.substr(0, second)};
  if (out.header.empty() || out.payload.empty() || out.signature.empty()) {
    return refused("TokenMalformed", "a part of the token is empty");
  }
  return out;
}

result<json::object> decode_object(std::string_view segment) {
  auto text = base64url_decode(segment);
  if (!text) return refused("TokenMalformed", "a part of the token is not canonical base64url");
  auto object = json::read_object(*text, token_limits());
  if (!object) return refused("TokenMalformed", "a part of the token is not a JSON object of one meaning");
  return std::move(*object);
}

// alg must be HS256; typ, where present, JWT; kid is tolerated and never used; every other parameter changes what the token
// means.
result<void> check_header(std::string_view segment) {
  // The header that every usual library writes, compared before anything is decoded.
  constexpr std::string_view usual = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
  if (segment == usual) return {};
  KUBEOPERA_TRY(auto header, decode_object(segment));
  const auto* alg = header.if_contains("alg");
  if (!alg || !alg->is_string() || json::as_view(*alg) != "HS256") {
    return refused("TokenAlgorithm", "the token is not signed with HS256");
  }
  for (const auto& [key, value] : header) {
    if (key == "alg") continue;
    if (key == "typ" && value.is_string() && (json::as_view(value) == "JWT" || json::as_view(value) == "at+jwt")) continue;
    if (key == "kid" && value.is_string() && json::as_view(value).size() <= 128) continue;
    return refused("TokenMalformed", "the token's header holds a parameter that is not supported");
  }
  return {};
}

result<std::int64_t> time_claim(const json::object& o, const char* name, bool required) {
  const auto* v = o.if_contains(name);
  if (!v && !required) return std::int64_t{0};
  if (!v || !v->is_int64() || v->get_int64() <= 0 || v->get_int64() > max_token_time) {
    return refused("TokenClaims", "a time of the token is missing or no positive integer");
  }
  return v->get_int64();
}

result<std::string> text_claim(const json::object& o, const char* name, bool required) {
  const auto* v = o.if_contains(name);
  if ((!v || v->is_null()) && !required) return std::string();
  if (!v || !v->is_string() || (required && v->get_string().empty())) {
    return refused("TokenClaims", "a text claim of the token is missing or no string");
  }
  return std::string(json::as_view(*v));
}

result<std::vector<std::string>> list_claim(const json::object& o, const char* name) {
  std::vector<std::string> out;
  const auto* v = o.if_contains(name);
  if (!v || v->is_null()) return out;
  if (!v->is_array()) return refused("TokenClaims", "roles and permissions must be arrays of strings");
  out.reserve(v->get_array().size());
  for (const auto& item : v->get_array()) {
    if (!item.is_string()) return refused("TokenClaims", "roles and permissions must be arrays of strings");
    out.emplace_back(json::as_view(item));
  }
  return out;
}

bool audience_matches(const json::object& o, std::string_view wanted) {
  const auto* v = o.if_contains("aud");
  if (!v) return false;
  if (v->is_string()) return json::as_view(*v) == wanted;
  if (!v->is_array()) return false;
  bool found = false;
  for (const auto& item : v->get_array()) {
    if (!item.is_string()) return false;
    found = found || json::as_view(item) == wanted;
  }
  return found;
}

result<void> check_names(const json::object& o, const jwt_options& options) {
  const auto* iss = o.if_contains("iss");
  if (!iss || !iss->is_string() || json::as_view(*iss) != options.issuer) {
    return refused("TokenIssuer", "the token was issued by somebody else");
  }
  if (!audience_matches(o, options.audience)) return refused("TokenAudience", "the token is meant for somebody else");
  const auto* use = o.if_contains("token_use");
  if (!use || !use->is_string() || json::as_view(*use) != options.token_use) {
    return refused("TokenUse", "the token is not of the kind asked for");
  }
  return {};
}

result<void> check_times(const json::object& o, std::int64_t now, std::int64_t leeway, claims& out) {
  KUBEOPERA_TRY(auto exp, time_claim(o, "exp", true));
  KUBEOPERA_TRY(auto iat, time_claim(o, "iat", false));
  KUBEOPERA_TRY(auto nbf, time_claim(o, "nbf", false));
  if (exp + leeway <= now) return refused("TokenExpired", "the token has expired");
  if (nbf - leeway > now || iat - leeway > now) return refused("TokenNotYetValid", "the token is not valid yet");
  out.exp = from_unix(exp);
  out.iat = from_unix(iat);
  return {};
}

result<void> read_identity(const json::object& o, claims& out) {
  KUBEOPERA_TRY(out.sub, text_claim(o, "sub", true));
  KUBEOPERA_TRY(out.tenant_id, text_claim(o, "tenant_id", false));
  KUBEOPERA_TRY(out.name, text_claim(o, "name", false));
  KUBEOPERA_TRY(out.email, text_claim(o, "email", false));
  KUBEOPERA_TRY(out.jti, text_claim(o, "jti", false));
  KUBEOPERA_TRY(out.roles, list_claim(o, "roles"));
  KUBEOPERA_TRY(out.permissions, list_claim(o, "permissions"));
  if (const auto* admin = o.if_contains("platform_admin")) {
    if (!admin->is_bool()) return refused("TokenClaims", "platform_admin must be true or false");
    out.platform_admin = admin->get_bool();
  }
  return {};
}

result<void> check_options(const secret& key, const jwt_options& options) {
  KUBEOPERA_CHECK(check_secret_strength(key, "the token secret"));
  if (options.leeway < seconds(0) || options.leeway > seconds(60)) {
    return error(errc::invalid_argument, "BadLeeway", "the leeway must be from 0 to 60 seconds");
  }
  if (options.issuer.empty() || options.audience.empty() || options.token_use.empty()) {
    return error(errc::invalid_argument, "BadOptions", "issuer, audience and token_use must not be empty");
  }
  return {};
}

}  // namespace

struct jwt_verifier::state {
  state(const secret& key, jwt_options o, const clock& c) : mac(key), options(std::move(o)), clk(c) {}
  hmac_sha256 mac;
  jwt_options options;
  const clock& clk;
};

jwt_verifier::jwt_verifier(std::unique_ptr<state> s) : state_(std::move(s)) {}
jwt_verifier::~jwt_verifier() = default;
jwt_verifier::jwt_verifier(jwt_verifier&&) noexcept = default;
jwt_verifier& jwt_verifier::operator=(jwt_verifier&&) noexcept = default;

result<jwt_verifier> jwt_verifier::make(const secret& key, jwt_options options, const clock& clk) {
  KUBEOPERA_CHECK(check_options(key, options));
  return jwt_verifier(std::make_unique<state>(key, std::move(options), clk));
}

result<claims> jwt_verifier::verify(std::string_view token) const {
  claims out;
  KUBEOPERA_CHECK(verify(token, out));
  return out;
}

result<void> jwt_verifier::verify(std::string_view token, claims& into) const {
  KUBEOPERA_TRY(auto parts, split(token));
  KUBEOPERA_CHECK(check_header(parts.header));
  char buffer[max_token];
  constexpr std::size_t mac_text = 43;
  auto mac = parts.signature.size() == mac_text ? base64url_decode_into(parts.signature, buffer) : std::nullopt;
  if (!mac) return refused("TokenMalformed", "the signature is not 32 bytes of canonical base64url");
  if (!state_->mac.verify(parts.signed_part, {buffer, *mac})) return refused("TokenSignature", "the token's signature is wrong");
  auto now = to_unix(state_->clk.now());
  auto size = base64url_decode_into(parts.payload, buffer);
  if (size && read_plain_claims({buffer, *size}, state_->options, now, into)) return {};
  KUBEOPERA_TRY(auto payload, decode_object(parts.payload));
  claims out;
  KUBEOPERA_CHECK(check_times(payload, now, state_->options.leeway.count(), out));
  KUBEOPERA_CHECK(check_names(payload, state_->options));
  KUBEOPERA_CHECK(read_identity(payload, out));
  into = std::move(out);
  return {};
}

struct jwt_signer::state {
  state(const secret& key, jwt_options o, const clock& c) : mac(key), options(std::move(o)), clk(c) {}
  hmac_sha256 mac;
  jwt_options options;
  const clock& clk;
};

jwt_signer::jwt_signer(std::unique_ptr<state> s) : state_(std::move(s)) {}
jwt_signer::~jwt_signer() = default;
jwt_signer::jwt_signer(jwt_signer&&) noexcept = default;
jwt_signer& jwt_signer::operator=(jwt_signer&&) noexcept = default;

result<jwt_signer> jwt_signer::make(const secret& key, jwt_options options, const clock& clk) {
  KUBEOPERA_CHECK(check_options(key, options));
  return jwt_signer(std::make_unique<state>(key, std::move(options), clk));
}

result<std::string> jwt_signer::sign(const claims& who) const {
  auto iat = who.iat == system_time{} ? to_unix(state_->clk.now()) : to_unix(who.iat);
  auto exp = to_unix(who.exp);
  if (who.sub.empty()) return error(errc::invalid_argument, "BadClaims", "a token needs a subject");
  if (exp <= iat || exp > max_token_time)
    return error(errc::invalid_argument, "BadClaims", "a token must expire after it was issued");
  json::object payload;
  payload["iss"] = state_->options.issuer;
  payload["aud"] = state_->options.audience;
  payload["token_use"] = state_->options.token_use;
  payload["sub"] = who.sub;
  payload["iat"] = iat;
  payload["exp"] = exp;
  for (auto [key, text] :
       {std::pair{"tenant_id", &who.tenant_id}, {"name", &who.name}, {"email", &who.email}, {"jti", &who.jti}}) {
    if (!text->empty()) payload[key] = *text;
  }
  for (auto [key, list] : {std::pair{"roles", &who.roles}, {"permissions", &who.permissions}}) {
    if (!list->empty()) payload[key] = json::array(list->begin(), list->end());
  }
  if (who.platform_admin) payload["platform_admin"] = true;
  std::string token = base64url_encode(R"({"alg":"HS256","typ":"JWT"})") + "." + base64url_encode(json::write(payload));
  if (token.size() + 44 > max_token) return error(errc::invalid_argument, "BadClaims", "the claims are too large for a token");
  auto mac = state_->mac.sign(token);
  token += '.';
  token += base64url_encode(bytes(mac));
  return token;
}

}  // namespace kubeopera::inline v1::crypto
