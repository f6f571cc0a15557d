// From an access token to an identity.
#pragma once

#include "server/web/identity.hpp"

#include <kubeopera/crypto/jwt.hpp>

#include <functional>
#include <memory>
#include <string_view>

namespace kubeopera::inline v1::app {

/// A function that verifies tokens under key. Errors: those of jwt_verifier::make.
result<std::function<result<web::identity>(std::string_view)>> make_authenticator(const secret& key,
                                                                                  const crypto::jwt_options& options,
                                                                                  const clock& clk = clock::real());
/// Permissions that a tenant's developer has; tokens of tours, tests and `kubeopera token` carry them.
std::vector<std::string> developer_permissions();

}  // namespace kubeopera::inline v1::app
