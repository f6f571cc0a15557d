// The API's handlers, one member a route. Routes are in routes.cpp, SQL in store.cpp, the look into clusters in live.cpp.
#pragma once

#include "server/services/api/live.hpp"
#include "server/services/api/store.hpp"
#include "server/web/route.hpp"

#include <kubeopera/kube/client.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kubeopera::inline v1::api {

struct api_options {
  api_options() = default;
  std::string apps_base_domain = "apps.kubeopera.io";
  int apps_https_port = 443;  ///< written in addresses where it is not 443 (embedded mode)
  int apps_http_port = 80;
  std::string system_namespace = "kubeopera-system";
  std::chrono::seconds reservation{60};  ///< after that long, what a create had reserved when it died is anybody's
};

/// Thread-safe.
class api_service {
 public:
  api_service(std::shared_ptr<store> rows, std::shared_ptr<live> cluster, std::shared_ptr<kube::client> host, api_options options,
              std::function<void()> wake_outbox, clock& clk = clock::real());

  // Apps.
  task<web::page<app_summary>> list_apps(web::call& c, web::query<app_query> q);
  task<web::created<app_view>> create_app(web::call& c, web::body<create_app_request> b);
  task<web::tagged<app_view>> get_app(web::call& c);
  task<web::tagged<app_view>> update_app(web::call& c, web::body<manifest::app_spec> b);
  task<web::tagged<app_view>> change_domain(web::call& c, web::body<domain_request> b);
  task<web::accepted<app_view>> delete_app(web::call& c);
  task<web::tagged<manifest::app_spec>> get_config(web::call& c);
  task<web::tagged<manifest::app_spec>> put_config(web::call& c, web::body<manifest::app_spec> b);
  task<web::tagged<env_vars>> get_env_vars(web::call& c);
  task<web::tagged<env_vars>> put_env_vars(web::call& c, web::body<env_vars> b);
  task<http::response> deploy_status(web::call& c, web::query<watch_query> q);
  task<web::page<pod_view>> list_pods(web::call& c);
  task<web::page<event_view>> list_events(web::call& c, web::query<page_query> q);
  task<http::response> read_logs(web::call& c, web::query<log_query> q);

  // CloudSpaces and vClusters.
  task<web::page<cloudspace_view>> list_cloudspaces(web::call& c, web::query<page_query> q);
  task<web::created<cloudspace_view>> create_cloudspace(web::call& c, web::body<create_cloudspace_request> b);
  task<web::tagged<cloudspace_view>> get_cloudspace(web::call& c);
  task<web::accepted<cloudspace_view>> delete_cloudspace(web::call& c);
  task<web::page<vcluster_view>> list_vclusters(web::call& c);
  task<web::created<vcluster_view>> create_vcluster(web::call& c, web::body<create_vcluster_request> b);
  task<vcluster_view> get_vcluster(web::call& c);
  task<web::accepted<vcluster_view>> delete_vcluster(web::call& c);

  /// The rows of this service.
  static std::vector<web::route> routes(std::shared_ptr<api_service> self);

 private:
  /// What an update changes about a row; returns an error for what is not allowed.
  using edit = std::function<result<void>(app_row&)>;
  task<app_row> row_of(web::call& c);
  task<app_row> change(web::call& c, edit e);
  task<void> store_secrets(const app_row& app, std::map<std::string, std::string> values);
  task<app_view> view(const app_row& a, bool live_data);
  result<void> check_spec(const manifest::app_spec& spec) const;
  std::string url_of(const app_row& a) const;
  std::vector<std::string> host_candidates(const app_row& a) const;
  task<vcluster_view> view_vcluster(const vcluster_row& v);
  task<cloudspace_view> view_cloudspace(const cloudspace_row& s);
  task<placement> place(const std::string& tenant, const create_app_request& wanted);

  std::shared_ptr<store> store_;
  std::shared_ptr<live> live_;
  std::shared_ptr<kube::client> host_;
  api_options options_;
  std::function<void()> wake_outbox_;
  clock& clock_;
};

/// The request as the origin of a row's state.
origin origin_of(const web::call& c);

/// remember_reply() of what a create is going to answer.
template <class T>
std::optional<postgres::statement> remember_created(const web::call& c, const web::created<T>& reply) {
  web::saved_reply saved{201, json::write(json::encode(reply.value)), reply.location, ""};
  if (!reply.etag.empty()) saved.etag = "\"" + reply.etag + "\"";
  return remember_reply(c, saved);
}

/// The name of a vCluster's KubeOperaTenant: "<cloudspace>" or "<cloudspace>-<label>" with a hash of the row where it must be
/// unique.
std::string tenant_resource_name(const std::string& cloudspace, const std::string& label, const std::string& salt);
/// The name of an app's KubeOperaApp: "<app>-<12 hex of its id>".
std::string app_resource_name(const std::string& app, const std::string& id);

}  // namespace kubeopera::inline v1::api
