// The table of roles: which services this binary can be, their ports and their routes.
#pragma once

#include "server/web/route.hpp"

#include <kubeopera/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::app {

struct role {
  std::string name;     ///< as in --roles
  std::string service;  ///< the service's name in the documentation
  std::string title;
  std::string schema;  ///< database schema; "" = none
  int port = 0;        ///< default port
  /// The route table without a service behind it: for documents and tests.
  std::vector<web::route> (*routes)() = nullptr;
};

const std::vector<role>& roles();
const role* find_role(std::string_view name);
/// The OpenAPI document of a role.
json::object openapi_of(const role& r);

}  // namespace kubeopera::inline v1::app
