// The namespace controller: deletes what is inside, says what remains, and lets the namespace go.
#include "src/testing/sim_cleanup.hpp"
#include "src/testing/sim_meta.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/status.hpp>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

std::string collection_path(const resource_type& type, const std::string& ns) {
  auto root = type.group.empty() ? "/api/" + type.version : "/apis/" + type.group + "/" + type.version;
  return root + "/namespaces/" + ns + "/" + type.plural;
}

const std::string root_ca = "kube-root-ca.crt";

object condition(std::string_view type, bool bad, std::string_view reason, const std::string& message, const std::string& now) {
  object c;
  c["type"] = type;
  c["status"] = bad ? "True" : "False";
  c["lastTransitionTime"] = now;
  c["reason"] = reason;
  c["message"] = message;
  return c;
}

class namespace_controller final : public controller {
 public:
  namespace_controller(environment& e, type_registry& r) : controller(e), registry_(r) {}
  std::string_view name() const override { return "namespace"; }
  std::vector<resource_type> watches() const override {
    return {kube::types::namespaces(), kube::types::service_accounts(), kube::types::config_maps()};
  }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    if (type == kube::types::namespaces()) {
      if (after && (!before || kube::being_deleted(*after)))
        enqueue(kube::key_of(*after));
      else if (!after)
        since_.erase(std::string(kube::name_of(*before)));
    } else if (!after && (kube::name_of(*before) == "default" || kube::name_of(*before) == root_ca)) {
      object_key key;
      key.name = std::string(kube::namespace_of(*before));
      enqueue(key);
    } else if (!after && since_.contains(std::string(kube::namespace_of(*before)))) {
      object_key key;
      key.name = std::string(kube::namespace_of(*before));
      enqueue(key);
    }
  }

  task<void> reconcile(const object_key& key) override {
    auto stored = env.objects.get(kube::types::namespaces(), key);
    if (!stored) co_return result<void>();
    if (!kube::being_deleted(*stored)) co_return co_await seed(key.name);
    const auto* finalizers = json::get_array(*stored, {"spec", "finalizers"});
    if (!finalizers || finalizers->empty()) co_return result<void>();
    if (registry_.all().empty()) KUBEOPERA_CO_CHECK(co_await registry_.refresh(*env.api));
    auto [began, fresh] = since_.try_emplace(key.name, std::chrono::steady_clock::now());
    std::map<std::string, std::size_t> remaining;
    std::map<std::string, std::size_t> held;
    for (const auto& type : registry_.all()) {
      if (!type.namespaced) continue;
      auto left = co_await empty_out(type, key.name, held);
      if (!left) co_return left.error();
      if (*left > 0) remaining[type.plural + (type.group.empty() ? "" : "." + type.group)] = *left;
    }
    auto ns = *stored;
    if (remaining.empty()) {
      KUBEOPERA_CO_CHECK(co_await write_conditions(ns, remaining, held));
      co_return co_await finalize(key);
    }
    if (std::chrono::steady_clock::now() - began->second > 500ms) {
      KUBEOPERA_CO_CHECK(co_await write_conditions(ns, remaining, held));
    }
    enqueue_after(key, 100ms);
    co_return result<void>();
  }

 private:
  // What every namespace has: the ServiceAccount "default" and the CA of the API server.
  task<void> seed(const std::string& ns) {
    object_key account, certificate, model;
    account.ns = certificate.ns = ns;
    account.name = "default";
    certificate.name = root_ca;
    model.ns = "kube-system";
    model.name = root_ca;
    if (!env.objects.get(kube::types::service_accounts(), account)) {
      auto made =
          co_await env.create(kube::types::service_accounts(), kube::make_object(kube::types::service_accounts(), account));
      if (!made && !settled(made.error())) co_return made.error();
    }
    auto source = env.objects.get(kube::types::config_maps(), model);
    if (!source || env.objects.get(kube::types::config_maps(), certificate)) co_return result<void>();
    auto map = kube::make_object(kube::types::config_maps(), certificate);
    if (const auto* notes = json::get_object(*source, {"metadata", "annotations"})) {
      json::ensure_object(map, "metadata")["annotations"] = *notes;
    }
    if (const auto* data = json::find(*source, {"data"})) map["data"] = *data;
    auto made = co_await env.create(kube::types::config_maps(), std::move(map));
    if (!made && !settled(made.error())) co_return made.error();
    co_return result<void>();
  }

  // There already, or the namespace is on its way out.
  static bool settled(const error& e) {
    return e.code() == errc::already_exists || e.code() == errc::not_found || e.code() == errc::permission_denied;
  }

  // Deletes all of a kind and answers how many are left.
  task<std::size_t> empty_out(const resource_type& type, const std::string& ns, std::map<std::string, std::size_t>& held) {
    kube::list_options one;
    auto before = co_await kube::list_all(*env.api, type, ns, one);
    if (!before && before.error().code() == errc::not_found) co_return std::size_t(0);
    if (!before) co_return before.error();
    if (before->items.empty()) co_return std::size_t(0);
    bool fresh = false;
    for (const auto& item : before->items) fresh = fresh || !kube::being_deleted(item);
    if (fresh) {
      http::request request("DELETE", collection_path(type, ns),
                            R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})");
      request.headers.set("Content-Type", "application/json");
      auto r = co_await env.api->raw(std::move(request));
      if (!r) co_return r.error();
      if (r->status >= 300 && r->status != 404 && r->status != 405)
        co_return kube::error_of_response(r->status, r->headers, r->body);
    }
    auto after = co_await kube::list_all(*env.api, type, ns, one);
    if (!after) co_return after.error();
    for (const auto& item : after->items) {
      const auto* all = json::get_array(item, {"metadata", "finalizers"});
      if (!all) continue;
      for (const auto& f : *all) ++held[std::string(json::as_view(f))];
    }
    co_return after->items.size();
  }

  task<void> write_conditions(object& ns, const std::map<std::string, std::size_t>& remaining,
                              const std::map<std::string, std::size_t>& held) {
    auto now = env.now();
    std::string content, finalizers;
    for (const auto& [what, n] : remaining)
      content += (content.empty() ? "" : ", ") + what + " has " + std::to_string(n) + " resource instances";
    for (const auto& [what, n] : held)
      finalizers += (finalizers.empty() ? "" : ", ") + what + " in " + std::to_string(n) + " resource instances";
    array all;
    all.push_back(condition("NamespaceDeletionDiscoveryFailure", false, "ResourcesDiscovered",
                            "All resources successfully discovered", now));
    all.push_back(condition("NamespaceDeletionGroupVersionParsingFailure", false, "ParsedGroupVersions",
                            "All legacy kube types successfully parsed", now));
    all.push_back(condition("NamespaceDeletionContentFailure", false, "ContentDeleted",
                            "All content successfully deleted, may be waiting on finalization", now));
    all.push_back(remaining.empty()
                      ? condition("NamespaceContentRemaining", false, "ContentRemoved", "All content successfully removed", now)
                      : condition("NamespaceContentRemaining", true, "SomeResourcesRemain",
                                  "Some resources are remaining: " + content, now));
    all.push_back(held.empty() ? condition("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers",
                                           "All content-preserving finalizers finished", now)
                               : condition("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain",
                                           "Some content in the namespace has finalizers remaining: " + finalizers, now));
    auto& status = json::ensure_object(ns, "status");
    bool same = true;
    const auto* before = json::get_array(ns, {"status", "conditions"});
    for (auto& c : all) {
      const auto* old = before ? condition_in(*before, json::get_string(c.as_object(), {"type"})) : nullptr;
      if (old && json::get_string(*old, {"status"}) == json::get_string(c.as_object(), {"status"})) {
        c.as_object()["lastTransitionTime"] = json::get_string(*old, {"lastTransitionTime"});
      }
      same = same && old && json::write_canonical(json::value(*old)) == json::write_canonical(c);
    }
    if (same) co_return result<void>();
    status["conditions"] = std::move(all);
    auto r = co_await env.replace_status(kube::types::namespaces(), ns);
    if (!r && r.error().code() != errc::not_found) co_return r.error();
    co_return result<void>();
  }

  task<void> finalize(const object_key& key) {
    auto now = env.objects.get(kube::types::namespaces(), key);
    if (!now) co_return result<void>();
    auto body = *now;
    json::ensure_object(body, "spec")["finalizers"] = array();
    http::request request("PUT", "/api/v1/namespaces/" + key.name + "/finalize", json::write(body));
    request.headers.set("Content-Type", "application/json");
    auto r = co_await env.api->raw(std::move(request));
    if (!r) co_return r.error();
    if (r->status >= 300 && r->status != 404) co_return kube::error_of_response(r->status, r->headers, r->body);
    co_return result<void>();
  }

  type_registry& registry_;
  std::map<std::string, steady_time> since_;
};

}  // namespace

std::unique_ptr<controller> make_namespace_controller(environment& env, type_registry& registry) {
  return std::make_unique<namespace_controller>(env, registry);
}

}  // namespace kubeopera::inline v1::testing::sim
