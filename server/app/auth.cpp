#include "server/app/auth.hpp"

namespace kubeopera::inline v1::app {

result<std::function<result<web::identity>(std::string_view)>> make_authenticator(const secret& key,
                                                                                  const crypto::jwt_options& options,
                                                                                  const clock& clk) {
  KUBEOPERA_TRY(auto made, crypto::jwt_verifier::make(key, options, clk));
  auto verifier = std::make_shared<crypto::jwt_verifier>(std::move(made));
  std::function<result<web::identity>(std::string_view)> f = [verifier](std::string_view token) -> result<web::identity> {
    KUBEOPERA_TRY(auto claims, verifier->verify(token));
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
