#include "server/services/api/app_secrets.hpp"

#include "server/services/api/sync.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/manifest/app_spec.hpp>

namespace kubeopera::inline v1::api {
namespace {

// On a namespace or Secret that a create made: the id that the app was going to have.
constexpr const char* made_for = "kubeopera.io/made-for-app";

kube::write_options as_api() {
  kube::write_options o;
  o.field_manager = "kubeopera-api";
  return o;
}

kube::object_key secret_key(const std::string& app) {
  manifest::app_spec spec;
  spec.name = app;
  return {app, manifest::env_secret_name(spec)};
}

kube::object marked(const kube::resource_type& type, const kube::object_key& key, const std::string& id) {
  auto o = kube::make_object(type, key);
  o["metadata"].as_object()["annotations"] = json::object{{made_for, id}};
  return o;
}

// One that is going away takes with it what is written into it.
task<void> ensure_namespace(kube::client& client, std::string app, std::string id) {
  auto ns = marked(kube::types::namespaces(), {"", app}, id);
  auto o = as_api();
  auto made = co_await client.create(kube::types::namespaces(), ns, o);
  if (made) co_return result<void>();
  if (made.error().code() != errc::already_exists) co_return made.error();
  KUBEOPERA_CO_TRY(auto there, co_await client.get(kube::types::namespaces(), {"", app}));
  if (kube::being_deleted(there))
    co_return error(errc::unavailable, "NamespaceTerminating", "the namespace of this name is still being deleted")
        .with_retry_after(std::chrono::seconds(1));
  co_return result<void>();
}

task<void> write_once(kube::client& client, std::string app, std::string id, json::object data) {
  KUBEOPERA_CO_CHECK(co_await ensure_namespace(client, app, id));
  auto o = as_api();
  auto key = secret_key(app);
  json::object patch{{"data", data}};
  auto merged = co_await client.patch(kube::types::secrets(), key, kube::patch_kind::merge, patch, o);
  if (merged) co_return result<void>();
  if (merged.error().code() != errc::not_found) co_return merged.error();
  auto secret = marked(kube::types::secrets(), key, id);
  secret["type"] = "Opaque";
  secret["data"] = std::move(data);
  KUBEOPERA_CO_CHECK(co_await client.create(kube::types::secrets(), secret, o));
  co_return result<void>();
}

// Removes the object if a create made it. True when nothing of it is left.
task<bool> remove_if_marked(kube::client& client, const kube::resource_type& type, kube::object_key key) {
  auto there = co_await client.get(type, key);
  if (!there && there.error().code() == errc::not_found) co_return true;
  if (!there) co_return there.error();
  if (kube::annotation_of(*there, made_for).empty()) co_return false;
  kube::delete_options o;
  o.uid = std::string(kube::uid_of(*there));
  auto gone = co_await client.remove(type, key, o);
  if (!gone && gone.error().code() != errc::not_found) co_return gone.error();
  co_return true;
}

task<void> clean(std::shared_ptr<store> rows, vcluster_lookup vcluster, secret_intent which) {
  KUBEOPERA_CO_TRY(bool alive, co_await rows->has_app(which.vcluster, which.app));
  if (!alive) {
    auto client = co_await vcluster(which.vcluster);
    // A vCluster that is gone took everything with it.
    if (!client && client.error().code() != errc::not_found) co_return client.error();
    if (client) {
      KUBEOPERA_CO_TRY(bool all_gone, co_await remove_if_marked(**client, kube::types::namespaces(), {"", which.app}));
      if (!all_gone) KUBEOPERA_CO_CHECK(co_await remove_if_marked(**client, kube::types::secrets(), secret_key(which.app)));
    }
  }
  co_return co_await rows->drop_intent(which);
}

}  // namespace

task<void> write_app_secret(std::shared_ptr<kube::client> vcluster, std::string app, std::string id,
                            std::map<std::string, std::string> values) {
  json::object data;
  for (const auto& [k, v] : values) data[k] = crypto::base64_encode(v);
  // Another request may make or change it between a look and a write of ours: that is no answer for the caller.
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto written = co_await write_once(*vcluster, app, id, data);
    if (written) co_return written;
    auto code = written.error().code();
    if (code != errc::conflict && code != errc::already_exists && code != errc::not_found)
      co_return from_cluster(written.error());
  }
  co_return error(errc::unavailable, "SecretContended", "the app's Secret keeps changing")
      .with_retry_after(std::chrono::seconds(1));
}

task<void> sweep_app_secrets(std::shared_ptr<store> rows, vcluster_lookup vcluster, std::chrono::seconds stale,
                             std::shared_ptr<logger> log) {
  while (true) {
    auto left = co_await rows->take_stale_intents(stale);
    if (!left) {
      if (left.error().code() == errc::cancelled) co_return left.error();
      log->warn("secret intents cannot be read", {{"error", left.error()}});
      left = std::vector<secret_intent>();
    }
    for (const auto& which : *left) {
      // Well before another create may take the name over.
      auto cleaning = clean(rows, vcluster, which);
      auto cleaned = co_await with_deadline<void>(duration(stale) / 2, std::move(cleaning));
      if (cleaned) continue;
      if (cleaned.error().code() == errc::cancelled) co_return cleaned.error();
      log->warn("a Secret without an app could not be removed yet",
                {{"vcluster", which.vcluster}, {"app", which.app}, {"error", cleaned.error()}});
    }
    KUBEOPERA_CO_CHECK(co_await sleep_for(stale));
  }
}

}  // namespace kubeopera::inline v1::api
