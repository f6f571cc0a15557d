#include "server/app/auth.hpp"

#include <algorithm>

namespace kubeopera::inline v1::app {

namespace {

// Both end up in rows, logs, commits and custom resources, whose limits they have.
result<void> check_ids(const crypto::claims& claims) {
  bool tenant = claims.tenant_id.empty() || web::is_tenant_id(claims.tenant_id);
  bool user = claims.sub.size() <= 253 && std::none_of(claims.sub.begin(), claims.sub.end(),
                                                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (tenant && user) return {};
  return error(errc::unauthenticated, "TokenClaims", "the token's subject or tenant is not an id");
}

}  // namespace

result<std::function<result<web::identity>(std::string_view)>> make_authenticator(const secret& key,
                                                                                  const crypto::jwt_options& options,
                                                                                  const clock& clk) {
  KUBEOPERA_TRY(auto made, crypto::jwt_verifier::make(key, options, clk));
  auto verifier = std::make_shared<crypto::jwt_verifier>(std::move(made));
  std::function<result<web::identity>(std::string_view)> f = [verifier](std::string_view token) -> result<web::identity> {
    KUBEOPERA_TRY(auto claims, verifier->verify(token));
    KUBEOPERA_CHECK(check_ids(claims));
    web::identity who;
    who.user = std::move(claims.sub);
    if (!claims.tenant_id.empty()) who.tenant = std::move(claims.tenant_id);
    who.permissions = std::move(claims.permissions);
    who.platform_admin = claims.platform_admin;
    return who;
  };
  return f;
}

std::vector<std::string> developer_permissions() { return {"apps:read", "apps:write", "cloudspaces:read", "cloudspaces:write"}; }

}  // namespace kubeopera::inline v1::app
