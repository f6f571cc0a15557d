#include "server/services/api/store.hpp"

#include "server/web/paging.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

namespace kubeopera::inline v1::api {
namespace {

using postgres::params;
using postgres::rows;
using postgres::statement;

error no_app() { return {errc::not_found, "AppNotFound", "no such app"}; }
error no_cloudspace() { return {errc::not_found, "CloudSpaceNotFound", "no such CloudSpace"}; }
error no_vcluster() { return {errc::not_found, "VClusterNotFound", "no such vCluster in this CloudSpace"}; }

constexpr const char* app_columns =
    "select a.id, a.tenant_id, a.cloudspace_id, c.name as cloudspace_name, a.vcluster, a.name, a.resource, a.host, a.spec, "
    "a.revision, "
    "a.version, a.actor, a.request_id, a.traceparent, a.created_at, a.updated_at, a.deleting, "
    "a.removal_started from apps a join cloudspaces c on c.id = "
    "a.cloudspace_id ";

origin read_origin(const rows& r, std::size_t i) { return {r.str(i, "actor"), r.str(i, "request_id"), r.str(i, "traceparent")}; }

result<app_row> read_app(const rows& r, std::size_t i) {
  app_row a;
  a.id = r.str(i, "id");
  a.tenant_id = r.str(i, "tenant_id");
  a.cloudspace_id = r.str(i, "cloudspace_id");
  a.cloudspace_name = r.str(i, "cloudspace_name");
  a.vcluster = r.str(i, "vcluster");
  a.name = r.str(i, "name");
  a.resource = r.str(i, "resource");
  a.host = r.str(i, "host");
  a.revision = r.integer(i, "revision");
  a.version = r.integer(i, "version");
  a.from = read_origin(r, i);
  a.created_at = r.time(i, "created_at");
  a.updated_at = r.time(i, "updated_at");
  a.deleting = r.boolean(i, "deleting");
  a.removal_started = r.boolean(i, "removal_started");
  KUBEOPERA_TRY(auto v, json::read(r.text(i, "spec")));
  KUBEOPERA_TRY(a.spec, json::decode<manifest::app_spec>(v));
  return a;
}

result<std::vector<app_row>> read_apps(const rows& r) {
  std::vector<app_row> out;
  for (std::size_t i = 0; i < r.size(); ++i) {
    KUBEOPERA_TRY(auto a, read_app(r, i));
    out.push_back(std::move(a));
  }
  return out;
}

std::string spec_text(const manifest::app_spec& spec) { return json::write_canonical(json::encode(spec)); }

statement outbox(const std::string& aggregate, const std::string& topic, const origin& from) {
  return events::enqueue(
      aggregate, topic,
      json::object{{"resource", aggregate}, {"request_id", from.request_id}, {"traceparent", from.traceparent}});
}

statement insert_revision(const app_row& a) {
  return statement(
      "insert into app_revisions (app_id, revision, spec, host, actor, request_id, traceparent) values ($1, $2, $3, $4, $5, $6, "
      "$7)",
      params{a.id, a.revision, spec_text(a.spec), a.host, a.from.actor, a.from.request_id, a.from.traceparent});
}

result<vcluster_row> read_vcluster(const rows& r, std::size_t i) {
  vcluster_row v;
  v.name = r.str(i, "name");
  v.cloudspace_id = r.str(i, "cloudspace_id");
  v.cloudspace_name = r.str(i, "cloudspace_name");
  v.tenant_id = r.str(i, "tenant_id");
  v.label = r.str(i, "label");
  v.is_default = r.boolean(i, "is_default");
  v.deleting = r.boolean(i, "deleting");
  v.from = read_origin(r, i);
  v.created_at = r.time(i, "created_at");
  KUBEOPERA_TRY(auto q, json::read(r.text(i, "quota")));
  KUBEOPERA_TRY(v.quota, json::decode<quota_model>(q));
  return v;
}

constexpr const char* vcluster_columns =
    "select v.name, v.cloudspace_id, c.name as cloudspace_name, v.tenant_id, v.label, v.is_default, v.quota, v.created_at, "
    "v.deleting, v.actor, v.request_id, v.traceparent "
    "from vclusters v join cloudspaces c on c.id = v.cloudspace_id ";

statement insert_vcluster_row(const vcluster_row& v) {
  return statement(
      "insert into vclusters (name, cloudspace_id, tenant_id, label, is_default, quota, created_at, actor, request_id, "
      "traceparent) "
      "values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
      params{v.name, v.cloudspace_id, v.tenant_id, v.label, v.is_default, json::write(json::encode(v.quota)), v.created_at,
             v.from.actor, v.from.request_id, v.from.traceparent});
}

constexpr const char* cloudspace_columns =
    "select c.id, c.tenant_id, c.name, c.display_name, c.version, c.deleting, c.created_at, c.updated_at, "
    "coalesce((select v.name from vclusters v where v.cloudspace_id = c.id and v.is_default), '') as default_vcluster, "
    "(select count(*) from vclusters v where v.cloudspace_id = c.id) as vclusters, "
    "(select count(*) from apps a where a.cloudspace_id = c.id) as apps from cloudspaces c ";

cloudspace_row read_cloudspace(const rows& r, std::size_t i) {
  cloudspace_row c;
  c.id = r.str(i, "id");
  c.tenant_id = r.str(i, "tenant_id");
  c.name = r.str(i, "name");
  c.display_name = r.str(i, "display_name");
  c.default_vcluster = r.str(i, "default_vcluster");
  c.version = r.integer(i, "version");
  c.vclusters = static_cast<int>(r.integer(i, "vclusters"));
  c.apps = static_cast<int>(r.integer(i, "apps"));
  c.deleting = r.boolean(i, "deleting");
  c.created_at = r.time(i, "created_at");
  c.updated_at = r.time(i, "updated_at");
  return c;
}

}  // namespace

// ---- CloudSpaces ----------------------------------------------------------------------------------------------------

task<void> store::insert_cloudspace(cloudspace_row c, vcluster_row first, std::optional<statement> remember) {
  std::vector<statement> all;
  all.emplace_back(
      "insert into cloudspaces (id, tenant_id, name, display_name, created_at, updated_at) values ($1, $2, $3, $4, $5, $5)",
      params{c.id, c.tenant_id, c.name, c.display_name, c.created_at});
  all.push_back(insert_vcluster_row(first));
  all.push_back(outbox(first.name, "tenant", first.from));
  if (remember) all.push_back(std::move(*remember));
  KUBEOPERA_CO_CHECK(co_await pool_->atomic_pipeline(all));
  co_return result<void>();
}

task<cloudspace_row> store::cloudspace(std::string id, std::optional<std::string> tenant) {
  if (!is_uuid(id)) co_return no_cloudspace();
  statement st(std::string(cloudspace_columns) + "where c.id = $1 and ($2::text is null or c.tenant_id = $2)",
               params{id, tenant});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  if (r.empty()) co_return no_cloudspace();
  co_return read_cloudspace(r, 0);
}

task<std::vector<cloudspace_row>> store::cloudspaces(std::optional<std::string> tenant, page_query q) {
  std::optional<std::string> after;
  if (q.cursor) {
    KUBEOPERA_CO_TRY(auto parts, web::decode_cursor(*q.cursor, 1));
    if (!is_uuid(parts[0]))
      co_return error(errc::invalid_argument, "InvalidCursor", "the cursor is not one that this list gave out")
          .with_violation("?cursor", "is not valid");
    after = parts[0];
  }
  statement st(std::string(cloudspace_columns) +
                   "where ($1::text is null or c.tenant_id = $1) and ($2::uuid is null or c.id > $2) order by c.id limit $3",
               params{tenant, after, q.limit + 1});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  std::vector<cloudspace_row> out;
  for (std::size_t i = 0; i < r.size(); ++i) out.push_back(read_cloudspace(r, i));
  co_return out;
}

task<void> store::delete_cloudspace(std::string id, origin from) {
  std::function<task<void>(postgres::session&)> body = [id, from](postgres::session& s) -> task<void> {
    statement lock("select deleting from cloudspaces where id = $1 for update", params{id});
    KUBEOPERA_CO_TRY(auto found, co_await s.query(lock));
    if (found.empty()) co_return no_cloudspace();
    if (found.boolean(0, "deleting")) co_return result<void>();  // another request was faster
    statement used("select count(*) as n from apps where cloudspace_id = $1", params{id});
    KUBEOPERA_CO_TRY(auto n, co_await s.query(used));
    if (n.integer(0, "n") > 0)
      co_return error(errc::failed_precondition, "CloudSpaceNotEmpty", "delete its apps first; it still has " + n.str(0, "n"));
    statement mark("update cloudspaces set deleting = true, updated_at = now(), version = version + 1 where id = $1", params{id});
    KUBEOPERA_CO_CHECK(co_await s.query(mark));
    statement marks(
        "update vclusters set deleting = true, actor = $2, request_id = $3, traceparent = $4 where cloudspace_id = $1 returning "
        "name",
        params{id, from.actor, from.request_id, from.traceparent});
    KUBEOPERA_CO_TRY(auto names, co_await s.query(marks));
    for (std::size_t i = 0; i < names.size(); ++i) {
      auto row = outbox(names.str(i, "name"), "tenant", from);
      KUBEOPERA_CO_CHECK(co_await s.query(row));
    }
    co_return result<void>();
  };
  co_return co_await pool_->transaction_void(body);
}

// ---- vClusters ------------------------------------------------------------------------------------------------------

task<void> store::insert_vcluster(vcluster_row v, std::optional<statement> remember) {
  std::vector<statement> all;
  all.push_back(insert_vcluster_row(v));
  all.push_back(outbox(v.name, "tenant", v.from));
  if (remember) all.push_back(std::move(*remember));
  KUBEOPERA_CO_CHECK(co_await pool_->atomic_pipeline(all));
  co_return result<void>();
}

task<std::vector<vcluster_row>> store::vclusters(std::string cloudspace_id) {
  statement st(std::string(vcluster_columns) + "where v.cloudspace_id = $1 order by v.label", params{cloudspace_id});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  std::vector<vcluster_row> out;
  for (std::size_t i = 0; i < r.size(); ++i) {
    KUBEOPERA_CO_TRY(auto v, read_vcluster(r, i));
    out.push_back(std::move(v));
  }
  co_return out;
}

task<vcluster_row> store::vcluster(std::string cloudspace_id, std::string label) {
  statement st(std::string(vcluster_columns) + "where v.cloudspace_id = $1 and (v.label = $2 or v.name = $2)",
               params{cloudspace_id, label});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  if (r.empty()) co_return no_vcluster();
  co_return read_vcluster(r, 0);
}

task<placement> store::place(std::string cloudspace_id, std::string tenant, std::optional<std::string> vcluster) {
  if (!is_uuid(cloudspace_id)) co_return no_cloudspace();
  statement st(
      "select c.id, c.name, c.tenant_id, v.name as vcluster, v.deleting from cloudspaces c left join vclusters v on "
      "v.cloudspace_id = c.id and (case when $3::text is null then v.is_default else v.label = $3 or v.name = $3 end) "
      "where c.id = $1 and c.tenant_id = $2",
      params{cloudspace_id, tenant, vcluster});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  if (r.empty()) co_return no_cloudspace();
  placement p;
  p.cloudspace_id = r.str(0, "id");
  p.cloudspace_name = r.str(0, "name");
  p.tenant_id = r.str(0, "tenant_id");
  p.vcluster = r.opt(0, "vcluster").value_or("");
  p.deleting = !p.vcluster.empty() && r.boolean(0, "deleting");
  co_return p;
}

task<std::optional<vcluster_row>> store::vcluster_by_name(std::string name) {
  statement st(std::string(vcluster_columns) + "where v.name = $1", params{name});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  if (r.empty()) co_return std::optional<vcluster_row>();
  KUBEOPERA_CO_TRY(auto v, read_vcluster(r, 0));
  co_return std::optional<vcluster_row>(std::move(v));
}

task<void> store::delete_vcluster(vcluster_row v) {
  if (v.is_default)
    co_return error(errc::failed_precondition, "VClusterIsDefault", "the default vCluster goes with its CloudSpace");
  std::function<task<void>(postgres::session&)> body = [name = v.name, from = v.from](postgres::session& s) -> task<void> {
    statement lock("select deleting from vclusters where name = $1 for update", params{name});
    KUBEOPERA_CO_TRY(auto found, co_await s.query(lock));
    if (found.empty()) co_return no_vcluster();
    if (found.boolean(0, "deleting")) co_return result<void>();  // another request was faster
    statement used("select count(*) as n from apps where vcluster = $1", params{name});
    KUBEOPERA_CO_TRY(auto n, co_await s.query(used));
    if (n.integer(0, "n") > 0)
      co_return error(errc::failed_precondition, "VClusterNotEmpty", "delete its apps first; it still has " + n.str(0, "n"));
    statement mark("update vclusters set deleting = true, actor = $2, request_id = $3, traceparent = $4 where name = $1",
                   params{name, from.actor, from.request_id, from.traceparent});
    KUBEOPERA_CO_CHECK(co_await s.query(mark));
    auto row = outbox(name, "tenant", from);
    KUBEOPERA_CO_CHECK(co_await s.query(row));
    co_return result<void>();
  };
  co_return co_await pool_->transaction_void(body);
}

task<void> store::drop_vcluster(std::string name) {
  std::vector<statement> all;
  all.emplace_back("delete from vclusters where name = $1 and deleting", params{name});
  all.emplace_back(
      "delete from cloudspaces c where deleting and not exists (select 1 from vclusters v where v.cloudspace_id = c.id)");
  KUBEOPERA_CO_CHECK(co_await pool_->atomic_pipeline(all));
  co_return result<void>();
}

// ---- apps -----------------------------------------------------------------------------------------------------------

task<void> store::insert_app(app_row a, bool with_secrets, std::optional<statement> remember) {
  std::vector<statement> all;
  // The vCluster's row is locked against deletion by the foreign key; one that is being deleted takes no app.
  all.emplace_back(
      "with held as (delete from secret_intents where vcluster = $4 and app = $5 and holder = $1 returning 1) "
      "insert into apps (id, tenant_id, cloudspace_id, vcluster, name, resource, host, spec, revision, actor, request_id, "
      "created_at, updated_at, traceparent) select $1, $2, $3, v.name, $5, $6, $7, $8, $9, $10, $11, $12, $12, $14 "
      "from vclusters v where v.name = $4 and not v.deleting and (not $13::boolean or exists (select 1 from held))",
      params{a.id, a.tenant_id, a.cloudspace_id, a.vcluster, a.name, a.resource, a.host, spec_text(a.spec), a.revision,
             a.from.actor, a.from.request_id, a.created_at, with_secrets, a.from.traceparent});
  all.emplace_back("insert into host_claims (host, app_id) values ($1, $2)", params{a.host, a.id});
  all.push_back(insert_revision(a));
  all.push_back(outbox(a.resource, "app", a.from));
  if (remember) all.push_back(std::move(*remember));
  auto done = co_await pool_->atomic_pipeline(all);
  if (!done) {
    auto e = done.error();
    if (e.reason() != "host_claims_app_id_fkey") co_return e;
    if (with_secrets)
      co_return error(errc::unavailable, "IntentLost", "this took too long, or the vCluster is being deleted")
          .with_retry_after(std::chrono::seconds(1));
    co_return error(errc::failed_precondition, "VClusterDeleting", "this vCluster is being deleted");
  }
  co_return result<void>();
}

task<void> store::take_intent(app_row a, std::chrono::seconds stale) {
  std::vector<statement> both;
  both.emplace_back("select 1 from apps where cloudspace_id = $1 and name = $2", params{a.cloudspace_id, a.name});
  both.emplace_back(
      "insert into secret_intents as i (vcluster, app, holder) select $1, $2, $3 where not exists (select 1 from apps where "
      "cloudspace_id = $4 and name = $2) on conflict (vcluster, app) do update set holder = excluded.holder, taken_at = now() "
      "where i.taken_at < now() - make_interval(secs => $5) returning 1",
      params{a.vcluster, a.name, a.id, a.cloudspace_id, static_cast<std::int64_t>(stale.count())});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->atomic_pipeline(both));
  if (!r[1].empty()) co_return result<void>();
  if (!r[0].empty()) co_return error(errc::already_exists, "app_name_taken", "there is an app of this name");
  co_return error(errc::unavailable, "CreateInProgress", "an app of this name is being created by another request")
      .with_retry_after(std::chrono::seconds(1));
}

task<std::vector<secret_intent>> store::take_stale_intents(std::chrono::seconds stale) {
  statement st(
      "update secret_intents set holder = $1, taken_at = now() where taken_at < now() - make_interval(secs => $2) "
      "returning vcluster, app, holder",
      params{make_uuid_v4(), static_cast<std::int64_t>(stale.count())});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  std::vector<secret_intent> out;
  for (std::size_t i = 0; i < r.size(); ++i) out.push_back({r.str(i, "vcluster"), r.str(i, "app"), r.str(i, "holder")});
  co_return out;
}

task<void> store::drop_intent(secret_intent which) {
  statement st("delete from secret_intents where vcluster = $1 and app = $2 and holder = $3",
               params{which.vcluster, which.app, which.holder});
  KUBEOPERA_CO_CHECK(co_await pool_->query(st));
  co_return result<void>();
}

task<bool> store::has_app(std::string vcluster, std::string name) {
  statement st("select 1 from apps where vcluster = $1 and name = $2", params{vcluster, name});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  co_return !r.empty();
}

task<app_row> store::app(std::string id, std::optional<std::string> tenant) {
  if (!is_uuid(id)) co_return no_app();
  statement st(std::string(app_columns) + "where a.id = $1 and ($2::text is null or a.tenant_id = $2)", params{id, tenant});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  if (r.empty()) co_return no_app();
  co_return read_app(r, 0);
}

task<std::optional<app_row>> store::app_by_resource(std::string resource) {
  statement st(std::string(app_columns) + "where a.resource = $1", params{resource});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  if (r.empty()) co_return std::optional<app_row>();
  KUBEOPERA_CO_TRY(auto a, read_app(r, 0));
  co_return std::optional<app_row>(std::move(a));
}

task<std::vector<app_row>> store::apps(std::optional<std::string> tenant, app_query q) {
  std::optional<std::string> before_time, before_id;
  if (q.cursor) {
    KUBEOPERA_CO_TRY(auto parts, web::decode_cursor(*q.cursor, 2));
    if (!is_uuid(parts[1]) || !parse_rfc3339(parts[0]))
      co_return error(errc::invalid_argument, "InvalidCursor", "the cursor is not one that this list gave out")
          .with_violation("?cursor", "is not valid");
    before_time = parts[0];
    before_id = parts[1];
  }
  if (q.cloudspace_id && !is_uuid(*q.cloudspace_id)) co_return std::vector<app_row>();
  statement st(std::string(app_columns) +
                   "where ($1::text is null or a.tenant_id = $1) and ($2::uuid is null or a.cloudspace_id = $2) "
                   "and ($3::text is null or a.vcluster = $3) and ($4::text is null or position($4 in a.name) > 0) "
                   "and ($5::timestamptz is null or (a.created_at, a.id) < ($5::timestamptz, $6::uuid)) "
                   "order by a.created_at desc, a.id desc limit $7",
               params{tenant, q.cloudspace_id, q.tenant_cr_name, q.name, before_time, before_id, q.limit + 1});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  co_return read_apps(r);
}

task<void> store::update_app(app_row a, std::int64_t expected_version) {
  std::function<task<void>(postgres::session&)> body = [a, expected_version](postgres::session& s) -> task<void> {
    statement update(
        "update apps set host = $2, spec = $3, revision = $4, version = version + 1, actor = $5, request_id = $6, traceparent = "
        "$8, "
        "updated_at = now() "
        "where id = $1 and version = $7 and not deleting",
        params{a.id, a.host, spec_text(a.spec), a.revision, a.from.actor, a.from.request_id, expected_version,
               a.from.traceparent});
    KUBEOPERA_CO_TRY(auto done, co_await s.query(update));
    if (done.affected() == 0)
      co_return error(errc::conflict, "VersionChanged", "the app was changed or deleted meanwhile; read it again");
    std::vector<statement> rest;
    rest.emplace_back("delete from host_claims where app_id = $1 and host <> $2", params{a.id, a.host});
    rest.emplace_back(
        "insert into host_claims (host, app_id) select $1::text, $2::uuid where not exists "
        "(select 1 from host_claims where app_id = $2::uuid and host = $1::text)",
        params{a.host, a.id});
    rest.push_back(insert_revision(a));
    rest.push_back(outbox(a.resource, "app", a.from));
    KUBEOPERA_CO_CHECK(co_await s.pipeline(rest));
    co_return result<void>();
  };
  co_return co_await pool_->transaction_void(body);
}

task<void> store::delete_app(app_row a) {
  std::function<task<void>(postgres::session&)> body = [a](postgres::session& s) -> task<void> {
    statement mark(
        "update apps set deleting = true, version = version + 1, updated_at = now(), actor = $2, request_id = $3, traceparent = "
        "$4 "
        "where id = $1 and not deleting",
        params{a.id, a.from.actor, a.from.request_id, a.from.traceparent});
    KUBEOPERA_CO_TRY(auto marked, co_await s.query(mark));
    if (marked.affected() == 0) co_return result<void>();  // another request was faster
    auto row = outbox(a.resource, "app", a.from);
    KUBEOPERA_CO_CHECK(co_await s.query(row));
    co_return result<void>();
  };
  co_return co_await pool_->transaction_void(body);
}

task<void> store::sync_again(std::string topic, std::string name) {
  auto st = outbox(name, topic, origin());
  KUBEOPERA_CO_CHECK(co_await pool_->query(st));
  co_return result<void>();
}

task<void> store::start_removal(std::string id) {
  statement st("update apps set removal_started = true where id = $1 and deleting", params{id});
  KUBEOPERA_CO_CHECK(co_await pool_->query(st));
  co_return result<void>();
}

task<std::vector<std::string>> store::deleted_apps(std::vector<std::string> ids) {
  std::erase_if(ids, [](const std::string& id) { return !is_uuid(id); });
  statement st(
      "select distinct r.app_id::text as id from app_revisions r where r.app_id = any($1::uuid[]) "
      "and not exists (select 1 from apps a where a.id = r.app_id)",
      params{ids});
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < r.size(); ++i) out.push_back(r.str(i, "id"));
  co_return out;
}

task<void> store::drop_app(std::string id) {
  statement st("delete from apps where id = $1 and deleting", params{id});
  KUBEOPERA_CO_CHECK(co_await pool_->query(st));
  co_return result<void>();
}

task<std::vector<std::string>> store::deleting_keys() {
  statement st(
      "select 'app/' || resource as key from apps where deleting union all select 'tenant/' || name from vclusters where "
      "deleting");
  KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
  std::vector<std::string> out;
  for (std::size_t i = 0; i < r.size(); ++i) out.push_back(r.str(i, "key"));
  co_return out;
}

}  // namespace kubeopera::inline v1::api
