#include "server/services/api/sync.hpp"

#include <kubeopera/manifest/resources.hpp>

#include <algorithm>

namespace kubeopera::inline v1::api {
namespace {

json::value app_spec_of(const app_row& a) {
  manifest::app_resource_spec s;
  s.app_id = a.id;
  s.tenant_id = a.tenant_id;
  s.cloudspace = a.cloudspace_name;
  s.tenant_ref = a.vcluster;
  s.revision = a.revision;
  s.host = a.host;
  s.actor = a.from.actor;
  s.request_id = a.from.request_id;
  s.app = a.spec;
  return json::encode(s);
}

json::value tenant_spec_of(const vcluster_row& v) {
  manifest::tenant_resource_spec s;
  s.tenant_id = v.tenant_id;
  s.cloudspace = v.cloudspace_name;
  s.display_name = v.label;
  s.quota.cpu = v.quota.cpu;
  s.quota.memory = v.quota.memory;
  s.quota.pods = v.quota.pods;
  return json::encode(s);
}

json::object annotations_of(const origin& from) {
  json::object out;
  for (const auto& [key, value] : {std::pair(manifest::actor_annotation, &from.actor),
                                   {manifest::request_id_annotation, &from.request_id},
                                   {manifest::traceparent_annotation, &from.traceparent}})
    if (!value->empty()) out[key] = *value;
  return out;
}

void set_annotations(kube::object& o, const origin& from) {
  auto& all = json::ensure_object(json::ensure_object(o, "metadata"), "annotations");
  for (const auto& m : annotations_of(from)) all[m.key()] = m.value();
}

}  // namespace

error from_cluster(const error& e) {
  if (e.code() != errc::permission_denied && e.code() != errc::unauthenticated) return e;
  return error(errc::unavailable, e.reason(), "the cluster does not accept the platform's requests").with_detail(to_string(e));
}

task<remainder> resource_sync::ensure(const kube::resource_type& type, const std::string& name, const json::value& spec,
                                      std::int64_t revision, const origin& from) {
  kube::write_options o;
  o.field_manager = "kubeopera-api";
  kube::object_key key{ns_, name};
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto there = co_await host_->get(type, key);
    if (!there && there.error().code() != errc::not_found) co_return from_cluster(there.error());
    result<kube::object> written = error();
    if (!there) {
      auto fresh = kube::make_object(type, key);
      fresh["spec"] = spec;
      set_annotations(fresh, from);
      written = co_await host_->create(type, fresh, o);
    } else {
      if (kube::being_deleted(*there))
        co_return error(errc::unavailable, "ResourceDeleting", "the resource of this name is still being deleted")
            .with_retry_after(std::chrono::seconds(1));
      if (json::get_int(*there, {"spec", "revision"}, 0) >= revision) co_return remainder::none;
      auto next = *there;
      set_annotations(next, from);
      next["spec"] = spec;  // its resourceVersion makes this a compare-and-swap
      written = co_await host_->replace(type, next, o);
    }
    if (written) co_return remainder::none;
    auto code = written.error().code();
    if (code != errc::conflict && code != errc::already_exists && code != errc::not_found)
      co_return from_cluster(written.error());
  }
  co_return error(errc::unavailable, "ResourceContended", "the resource keeps changing");
}

// Says on the resource who asked, for the one who cleans up after it.
task<void> resource_sync::annotate(const kube::resource_type& type, const kube::object& there, const origin& from) {
  auto wanted = annotations_of(from);
  bool same = std::all_of(wanted.begin(), wanted.end(),
                          [&](const auto& m) { return kube::annotation_of(there, m.key()) == json::as_view(m.value()); });
  if (same) co_return result<void>();
  json::object patch{{"metadata", json::object{{"annotations", std::move(wanted)}}}};
  kube::write_options o;
  o.field_manager = "kubeopera-api";
  auto done = co_await host_->patch(type, kube::key_of(there), kube::patch_kind::merge, patch, o);
  if (!done && done.error().code() != errc::not_found) co_return done.error();
  co_return result<void>();
}

task<remainder> resource_sync::remove(const kube::resource_type& type, const std::string& name, const origin& from) {
  auto there = co_await host_->get(type, {ns_, name});
  if (!there && there.error().code() == errc::not_found) co_return remainder::none;
  if (!there) co_return there.error();
  if (kube::being_deleted(*there)) co_return remainder::waiting;
  KUBEOPERA_CO_CHECK(co_await annotate(type, *there, from));
  auto gone = co_await host_->remove(type, {ns_, name});
  if (!gone && gone.error().code() == errc::not_found) co_return remainder::none;
  if (!gone) co_return from_cluster(gone.error());
  auto again = co_await host_->get(type, {ns_, name});
  if (!again && again.error().code() == errc::not_found) co_return remainder::none;
  if (!again) co_return from_cluster(again.error());
  co_return remainder::waiting;
}

task<remainder> resource_sync::sync_app(const std::string& resource) {
  KUBEOPERA_CO_TRY(auto row, co_await store_->app_by_resource(resource));
  if (!row) co_return remainder::none;
  if (!row->deleting)
    co_return co_await ensure(kube::types::kubeopera_apps(), resource, app_spec_of(*row), row->revision, row->from);
  KUBEOPERA_CO_TRY(auto left, co_await remove(kube::types::kubeopera_apps(), resource, row->from));
  if (left == remainder::none) KUBEOPERA_CO_CHECK(co_await store_->drop_app(row->id));
  co_return left;
}

task<remainder> resource_sync::sync_tenant(const std::string& name) {
  KUBEOPERA_CO_TRY(auto row, co_await store_->vcluster_by_name(name));
  if (!row) co_return remainder::none;
  // A tenant's resource has no revision: what the row says is written once and is not changed afterwards.
  if (!row->deleting) co_return co_await ensure(kube::types::kubeopera_tenants(), name, tenant_spec_of(*row), 0, row->from);
  KUBEOPERA_CO_TRY(auto left, co_await remove(kube::types::kubeopera_tenants(), name, row->from));
  if (left == remainder::none) KUBEOPERA_CO_CHECK(co_await store_->drop_vcluster(name));
  co_return left;
}

task<control::outcome> row_reaper::reconcile(const std::string& key) {
  auto slash = key.find('/');
  auto kind = key.substr(0, slash);
  auto name = key.substr(slash + 1);
  result<remainder> left = kind == "app" ? co_await sync_->sync_app(name) : co_await sync_->sync_tenant(name);
  if (!left) co_return left.error();
  // The informer wakes this when the resource goes; the delay is for a missed word.
  if (*left == remainder::waiting) co_return control::outcome::again_after(std::chrono::seconds(2));
  co_return control::outcome::done();
}

}  // namespace kubeopera::inline v1::api
