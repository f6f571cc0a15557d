// The routes of kubeopera-api, in the order of its documentation.
#include "server/services/api/service.hpp"

namespace kubeopera::inline v1::api {

using web::access;
using self = api_service;

std::vector<web::route> api_service::routes(std::shared_ptr<api_service> service) {
  web::table<api_service> t(std::move(service));
  t.get<&self::list_apps>("/api/v1/apps", access::needs("apps:read"), "List apps.");
  t.post<&self::create_app>("/api/v1/apps", access::needs("apps:write"), "Create and deploy an app.");
  t.get<&self::get_app>("/api/v1/apps/{appId}", access::needs("apps:read"), "App detail and live status.");
  t.put<&self::update_app>("/api/v1/apps/{appId}", access::needs("apps:write"), "Update an app.");
  t.patch<&self::change_domain>("/api/v1/apps/{appId}/domain", access::needs("apps:write"), "Change the app's domain.");
  t.del<&self::delete_app>("/api/v1/apps/{appId}", access::needs("apps:write"), "Delete an app and everything it created.");
  t.get<&self::deploy_status>("/api/v1/apps/{appId}/deploy-status", access::needs("apps:read"),
                              "GitOps, readiness and reachability status.");
  t.get<&self::list_pods>("/api/v1/apps/{appId}/pods", access::needs("apps:read"), "The app's pods, from the tenant's vCluster.");
  t.get<&self::list_events>("/api/v1/apps/{appId}/events", access::needs("apps:read"),
                            "Kubernetes events of the app, newest first.");
  t.get<&self::read_logs>("/api/v1/apps/{appId}/logs", access::needs("apps:read"),
                          "Logs of the app's pods; follow=true streams them.");
  t.get<&self::get_config>("/api/v1/apps/{appId}/config", access::needs("apps:read"), "Full app configuration.");
  t.put<&self::put_config>("/api/v1/apps/{appId}/config", access::needs("apps:write"), "Replace the app's configuration.");
  t.get<&self::get_env_vars>("/api/v1/apps/{appId}/config/env-vars", access::needs("apps:read"), "Environment variables.");
  t.put<&self::put_env_vars>("/api/v1/apps/{appId}/config/env-vars", access::needs("apps:write"),
                             "Replace the environment variables.");
  t.get<&self::list_cloudspaces>("/api/v1/cloudspaces", access::needs("cloudspaces:read"), "List CloudSpaces.");
  t.post<&self::create_cloudspace>("/api/v1/cloudspaces", access::needs("cloudspaces:write"),
                                   "Create a CloudSpace with its first vCluster.");
  t.get<&self::get_cloudspace>("/api/v1/cloudspaces/{cloudSpaceId}", access::needs("cloudspaces:read"), "CloudSpace detail.");
  t.del<&self::delete_cloudspace>("/api/v1/cloudspaces/{cloudSpaceId}", access::needs("cloudspaces:write"),
                                  "Delete an empty CloudSpace.");
  t.get<&self::list_vclusters>("/api/v1/cloudspaces/{cloudSpaceId}/vclusters", access::needs("cloudspaces:read"),
                               "List vClusters.");
  t.post<&self::create_vcluster>("/api/v1/cloudspaces/{cloudSpaceId}/vclusters", access::needs("cloudspaces:write"),
                                 "Add a vCluster.");
  t.get<&self::get_vcluster>("/api/v1/cloudspaces/{cloudSpaceId}/vclusters/{name}", access::needs("cloudspaces:read"),
                             "vCluster detail.");
  t.del<&self::delete_vcluster>("/api/v1/cloudspaces/{cloudSpaceId}/vclusters/{name}", access::needs("cloudspaces:write"),
                                "Delete an empty vCluster.");
  return t.take();
}

}  // namespace kubeopera::inline v1::api
