// Access tokens: JWTs signed with HS256, in a closed world. Whatever is not exactly our shape is refused.
// Source: RFC 7515, 7519, 8725.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/result.hpp>
#include <kubeopera/core/secret.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::crypto {

/// Who a token speaks for.
struct claims {
  claims() = default;
  std::string sub;                       ///< user or service id; never empty in a verified token
  std::string tenant_id;                 ///< claim "tenant_id"; empty for customers without a tenant
  std::string name;                      ///< optional, for people
  std::string email;                     ///< optional
  std::vector<std::string> roles;        ///< claim "roles"
  std::vector<std::string> permissions;  ///< claim "permissions"
  bool platform_admin = false;           ///< claim "platform_admin"
  std::string jti;                       ///< optional token id
  system_time iat{};                     ///< signing: when zero, now
  system_time exp{};                     ///< signing: must be set
};

struct jwt_options {
  jwt_options() = default;
  std::string issuer = "kubeopera";    ///< "iss" that must match
  std::string audience = "kubeopera";  ///< "aud" that must match (a string, or an array that holds it)
  std::string token_use = "access";    ///< "token_use" that must match
  std::chrono::seconds leeway{60};     ///< clock difference allowed; more than 60 s is refused
};

/// Verifies tokens. Thread safety: verify() may be called from any thread. Lifetime: clk outlives it.
class jwt_verifier {
 public:
  /// Errors: failed_precondition (WeakSecret), invalid_argument (leeway over 60 s).
  static result<jwt_verifier> make(const secret& key, jwt_options options = jwt_options(), const clock& clk = clock::real());
  ~jwt_verifier();
  jwt_verifier(jwt_verifier&&) noexcept;
  jwt_verifier& operator=(jwt_verifier&&) noexcept;
  /// @param token the compact form, without "Bearer "
  /// Errors: unauthenticated with a reason: TokenTooLarge, TokenMalformed, TokenAlgorithm, TokenSignature, TokenExpired,
  /// TokenNotYetValid, TokenIssuer, TokenAudience, TokenUse, TokenClaims.
  result<claims> verify(std::string_view token) const;
  /// The same into an object that is used again: no allocation once its strings are large enough. After an error into's content
  /// is unspecified.
  result<void> verify(std::string_view token, claims& into) const;

 private:
  struct state;
  explicit jwt_verifier(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

/// Signs tokens. Thread safety: as jwt_verifier.
class jwt_signer {
 public:
  /// Errors: as jwt_verifier::make.
  static result<jwt_signer> make(const secret& key, jwt_options options = jwt_options(), const clock& clk = clock::real());
  ~jwt_signer();
  jwt_signer(jwt_signer&&) noexcept;
  jwt_signer& operator=(jwt_signer&&) noexcept;
  /// The compact form. Errors: invalid_argument (sub empty, exp not after iat).
  result<std::string> sign(const claims& who) const;

 private:
  struct state;
  explicit jwt_signer(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::crypto
