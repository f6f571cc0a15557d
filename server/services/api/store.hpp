// The API's tables. SQL lives here and nowhere else; a tenant is a parameter of every statement that a caller can reach.
#pragma once

#include "server/services/api/model.hpp"
#include "server/web/router.hpp"

#include <kubeopera/events/outbox.hpp>
#include <kubeopera/postgres/pool.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::api {

/// The request that a row's present state comes from.
struct origin {
  std::string actor, request_id;
  std::string traceparent;  ///< of the request's span
};

struct cloudspace_row {
  std::string id, tenant_id, name, display_name, default_vcluster;
  std::int64_t version = 1;
  int vclusters = 0, apps = 0;
  bool deleting = false;
  system_time created_at, updated_at;
};

struct vcluster_row {
  std::string name, cloudspace_id, cloudspace_name, tenant_id, label;
  bool is_default = false, deleting = false;
  quota_model quota;
  origin from;
  system_time created_at;
};

/// What a new app needs to know about the place that it goes to.
struct placement {
  std::string cloudspace_id, cloudspace_name, tenant_id, vcluster;
  bool deleting = false;  // the vCluster
};

struct app_row {
  std::string id, tenant_id, cloudspace_id, cloudspace_name, vcluster, name, resource, host;
  origin from;
  manifest::app_spec spec;
  std::int64_t revision = 1, version = 1;
  bool deleting = false;
  bool removal_started = false;  ///< the deletion of its resource was asked for
  system_time created_at, updated_at;
};

/// A name whose Secret values are being written, or were when a create died.
struct secret_intent {
  std::string vcluster, app, holder;
};

/// The rows as the controllers see them: what a resource on the host cluster is made from, and what is dropped when it is gone.
class row_source {
 public:
  virtual ~row_source() = default;
  virtual task<std::optional<app_row>> app_by_resource(std::string resource) = 0;
  virtual task<std::optional<vcluster_row>> vcluster_by_name(std::string name) = 0;
  /// Writes another outbox row for a live app or vCluster: its resource is to be made again.
  virtual task<void> sync_again(std::string topic, std::string name) = 0;
  /// Remembers that the deletion of an app's resource is asked for from now on.
  virtual task<void> start_removal(std::string id) = 0;
  /// Which of these apps there were and are no more. Ids that were never given out are not among them.
  virtual task<std::vector<std::string>> deleted_apps(std::vector<std::string> ids) = 0;
  /// Drops an app's row if it is marked for deletion.
  virtual task<void> drop_app(std::string id) = 0;
  /// Drops a vCluster's row if it is marked for deletion, and its CloudSpace with the last one.
  virtual task<void> drop_vcluster(std::string name) = 0;
  /// "app/<resource>" and "tenant/<name>" of the rows that are going away.
  virtual task<std::vector<std::string>> deleting_keys() = 0;
};

/// Thread-safe. All parameters are values: a task starts when it is awaited, and what it was given must still be there then.
/// Errors of all: those of postgres::pool, and not_found; others are named at the member, with their reason in brackets.
class store final : public row_source {
 public:
  explicit store(std::shared_ptr<postgres::pool> pool) : pool_(std::move(pool)) {}

  // CloudSpaces. tenant nullopt: every tenant's (administrators).
  /// Both rows, the outbox row and, where given, the remembered reply in one transaction.
  /// Errors: already_exists (cloudspace_name_taken).
  task<void> insert_cloudspace(cloudspace_row row, vcluster_row first, std::optional<postgres::statement> remember);
  task<cloudspace_row> cloudspace(std::string id, std::optional<std::string> tenant);
  task<std::vector<cloudspace_row>> cloudspaces(std::optional<std::string> tenant, page_query q);
  /// Marks it and its vClusters for deletion, once however many ask. Errors: failed_precondition (CloudSpaceNotEmpty).
  task<void> delete_cloudspace(std::string id, origin from);

  /// Likewise. Errors: already_exists (vcluster_label_taken, vclusters_pkey).
  task<void> insert_vcluster(vcluster_row row, std::optional<postgres::statement> remember);
  task<std::vector<vcluster_row>> vclusters(std::string cloudspace_id);
  task<vcluster_row> vcluster(std::string cloudspace_id, std::string label);
  /// Where a new app would go: a CloudSpace and its vCluster of that label or name, else its default one, in one round trip
  /// whose cost does not grow with what lives there. vcluster is empty where there is no such vCluster.
  task<placement> place(std::string cloudspace_id, std::string tenant, std::optional<std::string> vcluster);
  task<std::optional<vcluster_row>> vcluster_by_name(std::string name) override;
  /// Errors: failed_precondition (VClusterNotEmpty, VClusterIsDefault).
  /// row.from is the request that asks for it.
  task<void> delete_vcluster(vcluster_row row);
  task<void> drop_vcluster(std::string name) override;

  // Apps.
  /// App, host claim, first revision, outbox row and, where given, the remembered reply in one transaction and one round trip.
  /// with_secrets: only while the app's id holds the intent for its name, which ends with it.
  /// Errors: already_exists (app_name_taken, host_taken, app_resource_taken), failed_precondition (VClusterDeleting),
  /// unavailable (IntentLost).
  task<void> insert_app(app_row row, bool with_secrets, std::optional<postgres::statement> remember);
  /// Takes the intent to write the Secret values of an app that is not there yet; one that is older than stale is taken over.
  /// Errors: already_exists (app_name_taken), unavailable (CreateInProgress).
  task<void> take_intent(app_row row, std::chrono::seconds stale);
  /// Takes over what is older than stale.
  task<std::vector<secret_intent>> take_stale_intents(std::chrono::seconds stale);
  task<void> drop_intent(secret_intent which);
  /// Whether an app of that name lives in that vCluster.
  task<bool> has_app(std::string vcluster, std::string name);
  task<app_row> app(std::string id, std::optional<std::string> tenant);
  task<std::optional<app_row>> app_by_resource(std::string resource) override;
  task<std::vector<app_row>> apps(std::optional<std::string> tenant, app_query q);
  /// Writes row as its next revision if the stored version is still row.version. Errors: conflict (VersionChanged),
  /// already_exists (host_taken).
  task<void> update_app(app_row row, std::int64_t expected_version);
  /// Marks it for deletion; row.from is the request that asks for it.
  task<void> delete_app(app_row row);
  task<void> sync_again(std::string topic, std::string name) override;
  task<void> start_removal(std::string id) override;
  task<std::vector<std::string>> deleted_apps(std::vector<std::string> ids) override;
  task<void> drop_app(std::string id) override;
  task<std::vector<std::string>> deleting_keys() override;

  postgres::pool& pool() noexcept { return *pool_; }

 private:
  std::shared_ptr<postgres::pool> pool_;
};

/// The statement that remembers the reply to a request with an Idempotency-Key, for the transaction of its effect; nullopt
/// without one.
std::optional<postgres::statement> remember_reply(const web::call& c, const web::saved_reply& reply);

/// Remembered replies in PostgreSQL. A key whose request died, with its process say, is free again after lock.
std::shared_ptr<web::idempotency> make_idempotency(std::shared_ptr<postgres::pool> pool,
                                                   std::chrono::seconds lock = std::chrono::seconds(60));

}  // namespace kubeopera::inline v1::api
