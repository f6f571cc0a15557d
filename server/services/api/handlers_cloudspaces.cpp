// CloudSpaces and vClusters, as far as apps need them.
#include "server/services/api/service.hpp"
#include "server/web/paging.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/manifest/resources.hpp>

namespace kubeopera::inline v1::api {

std::string tenant_resource_name(const std::string& cloudspace, const std::string& label, const std::string& salt) {
  auto base = label == cloudspace ? cloudspace : cloudspace + "-" + label;
  base = base.substr(0, 40);
  while (base.ends_with('-')) base.pop_back();
  return base + "-" + crypto::sha256_hex(salt).substr(0, 6);
}

namespace {

std::string phase_of_tenant(const vcluster_row& v, const kube::object& resource, std::string& message) {
  if (v.deleting) return "deleting";
  if (resource.empty()) return "provisioning";
  auto* ready = kube::find_condition(resource, "Ready");
  if (!ready) return "provisioning";
  if (json::get_string(*ready, {"status"}) == "True") return "ready";
  message = json::get_string(*ready, {"message"});
  return kube::condition_true(resource, "Stalled") ? "failed" : "provisioning";
}

// What the rows alone say: nothing of either is on the host cluster yet.
vcluster_view summarize(const vcluster_row& v) {
  vcluster_view out;
  out.name = v.label;
  out.tenant_cr_name = v.name;
  out.is_default = v.is_default;
  out.quota = v.quota;
  out.phase = "provisioning";
  out.created_at = format_rfc3339_millis(v.created_at);
  return out;
}

cloudspace_view summarize(const cloudspace_row& s) {
  cloudspace_view out;
  out.id = s.id;
  out.name = s.name;
  out.display_name = s.display_name;
  out.default_vcluster = s.default_vcluster;
  out.vclusters = s.vclusters;
  out.apps = s.apps;
  out.phase = "provisioning";
  out.created_at = format_rfc3339_millis(s.created_at);
  out.updated_at = format_rfc3339_millis(s.updated_at);
  return out;
}

}  // namespace

task<vcluster_view> api_service::view_vcluster(const vcluster_row& v) {
  auto out = summarize(v);
  auto r = co_await host_->get(kube::types::kubeopera_tenants(), {options_.system_namespace, v.name});
  if (!r && r.error().code() != errc::not_found) {
    out.phase = "unknown";
    out.message = r.error().message();
    co_return out;
  }
  out.phase = phase_of_tenant(v, r ? *r : kube::object(), out.message);
  co_return out;
}

task<cloudspace_view> api_service::view_cloudspace(const cloudspace_row& s) {
  auto out = summarize(s);
  if (s.deleting) {
    out.phase = "deleting";
    co_return out;
  }
  KUBEOPERA_CO_TRY(auto v, co_await store_->vcluster(s.id, s.default_vcluster));
  KUBEOPERA_CO_TRY(auto seen, co_await view_vcluster(v));
  out.phase = seen.phase;
  co_return out;
}

task<web::page<cloudspace_view>> api_service::list_cloudspaces(web::call& c, web::query<page_query> q) {
  KUBEOPERA_CO_TRY(auto rows, co_await store_->cloudspaces(c.visible_tenant(), q.value));
  web::page<cloudspace_view> page;
  auto limit = static_cast<std::size_t>(q->limit);
  if (rows.size() > limit) {
    rows.resize(limit);
    page.next_cursor = web::encode_cursor({rows.back().id});
  }
  for (const auto& r : rows) {
    KUBEOPERA_CO_TRY(auto v, co_await view_cloudspace(r));
    page.items.push_back(std::move(v));
  }
  co_return page;
}

namespace {

result<void> check_quota(const quota_model& q) {
  manifest::tenant_quota as_tenant;
  as_tenant.cpu = q.cpu;
  as_tenant.memory = q.memory;
  as_tenant.pods = q.pods;
  auto again = json::decode<manifest::tenant_quota>(json::encode(as_tenant));
  if (again) return {};
  auto e = again.error();
  std::vector<violation> all;
  for (const auto& v : e.violations()) all.push_back({"/quota" + v.pointer, v.message});
  return error(errc::invalid_argument, "InvalidBody", "the quota is not valid").with_violations(std::move(all));
}

vcluster_row new_vcluster(const cloudspace_row& space, const std::string& label, const quota_model& quota, bool is_default,
                          system_time now) {
  vcluster_row v;
  v.name = tenant_resource_name(space.name, label, space.id + "/" + label);
  v.cloudspace_id = space.id;
  v.cloudspace_name = space.name;
  v.tenant_id = space.tenant_id;
  v.label = label;
  v.is_default = is_default;
  v.quota = quota;
  v.created_at = now;
  return v;
}

}  // namespace

task<web::created<cloudspace_view>> api_service::create_cloudspace(web::call& c, web::body<create_cloudspace_request> b) {
  KUBEOPERA_CO_TRY(auto tenant, c.acting_tenant());
  KUBEOPERA_CO_CHECK(check_quota(b->quota));
  cloudspace_row s;
  s.id = make_uuid_v7(clock_);
  s.tenant_id = tenant;
  s.name = b->name;
  s.display_name = b->display_name.empty() ? b->name : b->display_name;
  s.created_at = s.updated_at = clock_.now();
  s.vclusters = 1;
  auto first = new_vcluster(s, s.name, b->quota, true, s.created_at);
  first.from = origin_of(c);
  s.default_vcluster = first.name;
  web::created<cloudspace_view> reply{summarize(s), "/api/v1/cloudspaces/" + s.id, std::to_string(s.version)};
  auto done = co_await store_->insert_cloudspace(s, first, remember_created(c, reply));
  if (!done) {
    auto e = done.error();
    if (e.reason() == "cloudspace_name_taken")
      co_return error(errc::already_exists, "CloudSpaceExists", "there is a CloudSpace named " + s.name + " already")
          .with_violation("/name", "is taken");
    co_return e;
  }
  c.reply_kept = true;
  c.about = {{"cloudspace_id", s.id}, {"cloudspace", s.name}, {"cluster", first.name}};
  wake_outbox_();
  co_return std::move(reply);
}

task<web::tagged<cloudspace_view>> api_service::get_cloudspace(web::call& c) {
  KUBEOPERA_CO_TRY(auto row, co_await store_->cloudspace(c.param("cloudSpaceId"), c.visible_tenant()));
  KUBEOPERA_CO_TRY(auto v, co_await view_cloudspace(row));
  co_return web::tagged<cloudspace_view>{std::move(v), std::to_string(row.version)};
}

task<web::accepted<cloudspace_view>> api_service::delete_cloudspace(web::call& c) {
  KUBEOPERA_CO_TRY(auto row, co_await store_->cloudspace(c.param("cloudSpaceId"), c.visible_tenant()));
  if (!row.deleting) {
    KUBEOPERA_CO_CHECK(co_await store_->delete_cloudspace(row.id, origin_of(c)));
    wake_outbox_();
    row.deleting = true;
  }
  KUBEOPERA_CO_TRY(auto v, co_await view_cloudspace(row));
  co_return web::accepted<cloudspace_view>{std::move(v)};
}

task<web::page<vcluster_view>> api_service::list_vclusters(web::call& c) {
  KUBEOPERA_CO_TRY(auto space, co_await store_->cloudspace(c.param("cloudSpaceId"), c.visible_tenant()));
  KUBEOPERA_CO_TRY(auto rows, co_await store_->vclusters(space.id));
  web::page<vcluster_view> page;
  for (const auto& r : rows) {
    KUBEOPERA_CO_TRY(auto v, co_await view_vcluster(r));
    page.items.push_back(std::move(v));
  }
  co_return page;
}

task<web::created<vcluster_view>> api_service::create_vcluster(web::call& c, web::body<create_vcluster_request> b) {
  KUBEOPERA_CO_TRY(auto space, co_await store_->cloudspace(c.param("cloudSpaceId"), c.visible_tenant()));
  if (space.deleting) co_return error(errc::failed_precondition, "CloudSpaceDeleting", "this CloudSpace is being deleted");
  KUBEOPERA_CO_CHECK(check_quota(b->quota));
  auto v = new_vcluster(space, b->name, b->quota, false, clock_.now());
  v.from = origin_of(c);
  web::created<vcluster_view> reply{summarize(v), "/api/v1/cloudspaces/" + space.id + "/vclusters/" + v.label, ""};
  auto done = co_await store_->insert_vcluster(v, remember_created(c, reply));
  if (!done) {
    auto e = done.error();
    if (e.reason() == "vcluster_label_taken" || e.reason() == "vclusters_pkey")
      co_return error(errc::already_exists, "VClusterExists", "this CloudSpace has a vCluster named " + v.label + " already")
          .with_violation("/name", "is taken");
    co_return e;
  }
  c.reply_kept = true;
  c.about = {{"cluster", v.name}};
  wake_outbox_();
  co_return std::move(reply);
}

task<vcluster_view> api_service::get_vcluster(web::call& c) {
  KUBEOPERA_CO_TRY(auto space, co_await store_->cloudspace(c.param("cloudSpaceId"), c.visible_tenant()));
  KUBEOPERA_CO_TRY(auto row, co_await store_->vcluster(space.id, c.param("name")));
  co_return co_await view_vcluster(row);
}

task<web::accepted<vcluster_view>> api_service::delete_vcluster(web::call& c) {
  KUBEOPERA_CO_TRY(auto space, co_await store_->cloudspace(c.param("cloudSpaceId"), c.visible_tenant()));
  KUBEOPERA_CO_TRY(auto row, co_await store_->vcluster(space.id, c.param("name")));
  c.about = {{"cluster", row.name}};
  if (!row.deleting) {
    row.from = origin_of(c);
    KUBEOPERA_CO_CHECK(co_await store_->delete_vcluster(row));
    wake_outbox_();
    row.deleting = true;
  }
  KUBEOPERA_CO_TRY(auto v, co_await view_vcluster(row));
  co_return web::accepted<vcluster_view>{std::move(v)};
}

}  // namespace kubeopera::inline v1::api
