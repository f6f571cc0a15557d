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

// A row that was read longer ago is read again before a resource is made from it. Together with the time that a request may take
// this stays under the lease of an outbox row, so that nobody else has acted on the row meanwhile.
constexpr duration fresh_for = std::chrono::seconds(1);

}  // namespace

error from_cluster(const error& e) {
  if (e.code() != errc::permission_denied && e.code() != errc::unauthenticated) return e;
  return error(errc::unavailable, e.reason(), "the cluster does not accept the platform's requests").with_detail(to_string(e));
}

task<remainder> resource_sync::ensure(const kube::resource_type& type, const std::string& name, const json::value& spec,
                                      std::int64_t revision, const origin& from, steady_time since) {
  kube::write_options o;
  o.field_manager = "kubeopera-api";
  kube::object_key key{ns_, name};
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto there = co_await host_->get(type, key);
    if (!there && there.error().code() != errc::not_found) co_return from_cluster(there.error());
    result<kube::object> written = error();
    if (!there) {
      if (clock_.steady() - since > fresh_for)
        co_return error(errc::unavailable, "RowOutOfDate", "reading took too long; the row is read again");
      auto fresh = kube::make_object(type, key);
      // From its first moment on an app's resource does not go before its controller has cleaned up.
      if (type == kube::types::kubeopera_apps())
        json::ensure_object(fresh, "metadata")["finalizers"] = json::array{manifest::finalizer_name};
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
  json::object meta{{"uid", kube::uid_of(there)}, {"annotations", std::move(wanted)}};
  json::object patch{{"metadata", std::move(meta)}};
  kube::write_options o;
  o.field_manager = "kubeopera-api";
  auto done = co_await host_->patch(type, kube::key_of(there), kube::patch_kind::merge, patch, o);
  if (!done && done.error().code() != errc::not_found) co_return from_cluster(done.error());
  co_return result<void>();
}

// Deletes the very resource that is there now: a request may arrive late, when another has the name.
task<remainder> resource_sync::remove(const kube::resource_type& type, const std::string& name, const origin& from) {
  kube::object_key key{ns_, name};
  for (bool asked = false;; asked = true) {
    auto there = co_await host_->get(type, key);
    if (!there && there.error().code() == errc::not_found) co_return remainder::none;
    if (!there) co_return from_cluster(there.error());
    if (asked || kube::being_deleted(*there)) co_return remainder::waiting;
    KUBEOPERA_CO_CHECK(co_await annotate(type, *there, from));
    kube::delete_options o;
    o.uid = std::string(kube::uid_of(*there));
    auto gone = co_await host_->remove(type, key, o);
    if (!gone && gone.error().code() != errc::not_found) co_return from_cluster(gone.error());
  }
}

// A resource that was never made is made first: its controller then takes away what the API made inside the vCluster for it.
task<remainder> resource_sync::remove_app(app_row row, steady_time since) {
  const auto& type = kube::types::kubeopera_apps();
  if (!row.removal_started) {
    kube::object_key key{ns_, row.resource};
    auto there = co_await host_->get(type, key);
    if (!there && there.error().code() != errc::not_found) co_return from_cluster(there.error());
    if (!there) KUBEOPERA_CO_CHECK(co_await ensure(type, row.resource, app_spec_of(row), row.revision, row.from, since));
    KUBEOPERA_CO_CHECK(co_await rows_->start_removal(row.id));
  }
  co_return co_await drop_when_gone(std::move(row));
}

task<remainder> resource_sync::drop_when_gone(app_row row) {
  KUBEOPERA_CO_TRY(auto left, co_await remove(kube::types::kubeopera_apps(), row.resource, row.from));
  if (left == remainder::none) KUBEOPERA_CO_CHECK(co_await rows_->drop_app(row.id));
  co_return left;
}

// A resource without a row, made by a request that arrived after its app's end. One whose app there never was is left alone.
task<remainder> resource_sync::remove_orphan(std::string resource) {
  auto there = co_await host_->get(kube::types::kubeopera_apps(), {ns_, resource});
  if (!there && there.error().code() == errc::not_found) co_return remainder::none;
  if (!there) co_return from_cluster(there.error());
  std::vector<std::string> ids{std::string(json::get_string(*there, {"spec", "app_id"}))};
  KUBEOPERA_CO_TRY(auto deleted, co_await rows_->deleted_apps(std::move(ids)));
  if (deleted.empty()) co_return remainder::none;
  co_return co_await remove(kube::types::kubeopera_apps(), resource, origin());
}

task<remainder> resource_sync::sync_app(const std::string& resource) {
  auto since = clock_.steady();
  KUBEOPERA_CO_TRY(auto row, co_await rows_->app_by_resource(resource));
  if (!row) co_return co_await remove_orphan(resource);
  if (row->deleting) co_return co_await remove_app(std::move(*row), since);
  co_return co_await ensure(kube::types::kubeopera_apps(), resource, app_spec_of(*row), row->revision, row->from, since);
}

task<remainder> resource_sync::sync_tenant(const std::string& name) {
  auto since = clock_.steady();
  KUBEOPERA_CO_TRY(auto row, co_await rows_->vcluster_by_name(name));
  if (!row) co_return remainder::none;
  if (row->deleting) co_return co_await reap_tenant(name);
  // A tenant's resource has no revision: what the row says is written once and is not changed afterwards.
  co_return co_await ensure(kube::types::kubeopera_tenants(), name, tenant_spec_of(*row), 0, row->from, since);
}

task<remainder> resource_sync::make_again(const kube::resource_type& type, const char* topic, const std::string& name) {
  auto there = co_await host_->get(type, {ns_, name});
  if (there) co_return remainder::none;
  if (there.error().code() != errc::not_found) co_return from_cluster(there.error());
  KUBEOPERA_CO_CHECK(co_await rows_->sync_again(topic, name));
  co_return remainder::none;
}

task<remainder> resource_sync::reap_app(const std::string& resource) {
  KUBEOPERA_CO_TRY(auto row, co_await rows_->app_by_resource(resource));
  if (!row) co_return co_await remove_orphan(resource);
  if (!row->deleting) co_return co_await make_again(kube::types::kubeopera_apps(), "app", resource);
  if (!row->removal_started) co_return remainder::waiting;  // for its outbox row
  co_return co_await drop_when_gone(std::move(*row));
}

task<remainder> resource_sync::reap_tenant(const std::string& name) {
  KUBEOPERA_CO_TRY(auto row, co_await rows_->vcluster_by_name(name));
  if (!row) co_return remainder::none;
  if (!row->deleting) co_return co_await make_again(kube::types::kubeopera_tenants(), "tenant", name);
  KUBEOPERA_CO_TRY(auto left, co_await remove(kube::types::kubeopera_tenants(), name, row->from));
  if (left == remainder::none) KUBEOPERA_CO_CHECK(co_await rows_->drop_vcluster(name));
  co_return left;
}

task<control::outcome> row_reaper::reconcile(const std::string& key) {
  auto slash = key.find('/');
  auto kind = key.substr(0, slash);
  auto name = key.substr(slash + 1);
  result<remainder> left = kind == "app" ? co_await sync_->reap_app(name) : co_await sync_->reap_tenant(name);
  if (!left) co_return left.error();
  // The informer wakes this when the resource goes; the delay is for a missed word.
  if (*left == remainder::waiting) co_return control::outcome::again_after(std::chrono::seconds(2));
  co_return control::outcome::done();
}

}  // namespace kubeopera::inline v1::api
