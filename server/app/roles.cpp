#include "server/app/roles.hpp"

#include "server/services/api/service.hpp"
#include "server/services/app/service.hpp"
#include "server/web/router.hpp"

namespace kubeopera::inline v1::app {

const std::vector<role>& roles() {
  static const std::vector<role> table = {
      {"api", "kubeopera-api", "kubeopera API", "kubeopera", 8090, [] { return api::api_service::routes(nullptr); }},
      {"app", "app-service", "kubeopera app service", "", 8100, [] { return app_service::service::routes(nullptr); }},
      {"app-controller", "app-controller", "kubeopera app-controller", "", 8101, [] { return std::vector<web::route>(); }},
  };
  return table;
}

const role* find_role(std::string_view name) {
  for (const auto& r : roles())
    if (r.name == name || r.service == name) return &r;
  return nullptr;
}

json::object openapi_of(const role& r) {
  web::router_options o;
  o.service = r.service;
  o.title = r.title;
  return web::openapi_document(o, r.routes());
}

}  // namespace kubeopera::inline v1::app
