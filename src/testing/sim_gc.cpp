// The garbage collector. Its keys name kind and object: namespace, then "group/plural|name".
// Source: Kubernetes' garbage collector (attemptToDeleteItem, processDeletingDependentsItem, orphan finalizer).
#include "src/testing/sim_cleanup.hpp"
#include "src/testing/sim_meta.hpp"

#include <kubeopera/json/write.hpp>

#include <unordered_map>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

const std::string discover_key = "!discover";

class garbage_collector final : public controller {
 public:
  garbage_collector(environment& e, type_registry& r) : controller(e), registry_(r) {}
  std::string_view name() const override { return "garbage-collector"; }
  std::vector<resource_type> watches() const override { return {kube::types::custom_resource_definitions()}; }

  void start() override { enqueue({"", discover_key}); }

  void on_change(const resource_type& type, const shared_object& before, const shared_object& after) override {
    if (type == kube::types::custom_resource_definitions()) enqueue({"", discover_key});
    if (before) unindex(type, *before, after == nullptr);
    if (after) index(type, *after);
  }

  task<void> reconcile(const object_key& key) override {
    if (key.name == discover_key) co_return co_await discover();
    auto known = types_.find(key.name.substr(0, key.name.find('|')));
    if (known == types_.end()) co_return result<void>();
    auto type = known->second;
    object_key at;
    at.ns = key.ns;
    at.name = key.name.substr(key.name.find('|') + 1);
    auto obj = env.objects.get(type, at);
    if (!obj) co_return result<void>();
    if (kube::being_deleted(*obj)) {
      if (has_finalizer(*obj, "orphan")) co_return co_await orphan(type, *obj);
      if (has_finalizer(*obj, "foregroundDeletion")) {
        auto [seen, fresh] = waiting_.try_emplace(std::string(kube::uid_of(*obj)), std::chrono::steady_clock::now());
        auto left = seen->second + env.options.collect_delay - std::chrono::steady_clock::now();
        if (left <= duration::zero()) co_return co_await foreground(type, *obj);
        enqueue_after(key, left);
      }
      co_return result<void>();
    }
    co_return co_await collect(type, *obj);
  }

 private:
  static object_key encode(const resource_type& type, const object& o) {
    auto key = kube::key_of(o);
    key.name = type.group + "/" + type.plural + "|" + key.name;
    return key;
  }

  void index(const resource_type& type, const object& o) {
    types_.try_emplace(type.group + "/" + type.plural, type);
    auto key = encode(type, o);
    where_[std::string(kube::uid_of(o))] = key;
    bool special = kube::being_deleted(o) && (has_finalizer(o, "orphan") || has_finalizer(o, "foregroundDeletion"));
    if (const auto* refs = json::get_array(o, {"metadata", "ownerReferences"})) {
      for (const auto& r : *refs) {
        auto owner = std::string(json::get_string(r.as_object(), {"uid"}));
        dependents_[owner].insert(key);
        // Only a dependent whose owner is missing or on its way out needs a look.
        auto w = where_.find(owner);
        if (w == where_.end())
          special = true;
        else if (deleting_.contains(owner))
          enqueue(w->second);
      }
    }
    if (kube::being_deleted(o) && has_finalizer(o, "foregroundDeletion")) deleting_.insert(std::string(kube::uid_of(o)));
    if (special) enqueue(key);
  }

  void unindex(const resource_type& type, const object& o, bool gone) {
    auto key = encode(type, o);
    auto uid = std::string(kube::uid_of(o));
    if (const auto* refs = json::get_array(o, {"metadata", "ownerReferences"})) {
      for (const auto& r : *refs) {
        auto owner = std::string(json::get_string(r.as_object(), {"uid"}));
        if (auto it = dependents_.find(owner); it != dependents_.end()) it->second.erase(key);
        if (auto w = where_.find(owner); gone && w != where_.end() && deleting_.contains(owner)) enqueue(w->second);
      }
    }
    if (!gone) return;
    where_.erase(uid);
    deleting_.erase(uid);
    waiting_.erase(uid);
    if (auto it = dependents_.find(uid); it != dependents_.end()) {
      for (const auto& d : it->second) enqueue(d);
      if (it->second.empty()) dependents_.erase(it);
    }
  }

  task<void> discover() {
    KUBEOPERA_CO_CHECK(co_await registry_.refresh(*env.api));
    std::set<std::string> served;
    for (const auto& type : registry_.all()) {
      if (type.plural == "events") continue;
      auto id = type.group + "/" + type.plural;
      served.insert(id);
      if (env.objects.follows(type)) continue;
      ours_[id] = type;
      types_[id] = type;
      env.objects.follow(type);
    }
    for (auto it = ours_.begin(); it != ours_.end();) {
      if (served.contains(it->first)) {
        ++it;
        continue;
      }
      env.objects.unfollow(it->second);
      it = ours_.erase(it);
    }
    co_return result<void>();
  }

  task<void> without_refs(resource_type type, object obj, std::set<std::string> owners) {
    auto& metadata = json::ensure_object(obj, "metadata");
    array kept;
    if (const auto* refs = json::get_array(obj, {"metadata", "ownerReferences"})) {
      for (const auto& r : *refs) {
        if (!owners.contains(std::string(json::get_string(r.as_object(), {"uid"})))) kept.push_back(r);
      }
    }
    if (kept.empty())
      metadata.erase("ownerReferences");
    else
      metadata["ownerReferences"] = std::move(kept);
    auto r = co_await env.replace(type, obj);
    if (!r && r.error().code() != errc::not_found) co_return r.error();
    co_return result<void>();
  }

  std::vector<std::pair<resource_type, shared_object>> dependents_of(const object& owner) const {
    std::vector<std::pair<resource_type, shared_object>> out;
    auto it = dependents_.find(std::string(kube::uid_of(owner)));
    if (it == dependents_.end()) return out;
    for (const auto& key : it->second) {
      auto type = types_.find(key.name.substr(0, key.name.find('|')));
      if (type == types_.end()) continue;
      object_key at;
      at.ns = key.ns;
      at.name = key.name.substr(key.name.find('|') + 1);
      if (auto o = env.objects.get(type->second, at)) out.emplace_back(type->second, o);
    }
    return out;
  }

  task<void> orphan(resource_type type, object owner) {
    auto uid = std::string(kube::uid_of(owner));
    for (auto& [t, dependent] : dependents_of(owner)) {
      std::set<std::string> one;
      one.insert(uid);
      KUBEOPERA_CO_CHECK(co_await without_refs(t, *dependent, one));
    }
    co_return co_await drop_finalizer(type, std::move(owner), "orphan");
  }

  task<void> drop_finalizer(resource_type type, object owner, std::string finalizer) {
    remove_finalizer(owner, finalizer);
    auto key = kube::key_of(owner);
    auto rv = std::string(kube::resource_version_of(owner));
    kube::write_options w;
    w.field_manager = "kube-controller-manager";
    auto r = co_await env.api->replace(type, owner, w);
    if (!r && r.error().code() != errc::not_found) co_return r.error();
    co_return co_await env.objects.wait_change(type, key, rv);
  }

  task<void> foreground(resource_type type, object owner) {
    auto uid = std::string(kube::uid_of(owner));
    bool blocked = false;
    for (auto& [t, dependent] : dependents_of(owner)) {
      const auto& refs = *json::get_array(*dependent, {"metadata", "ownerReferences"});
      for (const auto& r : refs) {
        if (json::get_string(r.as_object(), {"uid"}) == uid && json::get_bool(r.as_object(), {"blockOwnerDeletion"}))
          blocked = true;
      }
      if (kube::being_deleted(*dependent)) continue;
      kube::delete_options how;
      bool has_own = !dependents_of(*dependent).empty();
      how.propagation = has_own ? "Foreground" : "Background";
      KUBEOPERA_CO_CHECK(co_await env.remove(t, *dependent, how));
    }
    if (blocked) {
      // Whatever was removed at once has told us by now; look once more.
      for (auto& [t, dependent] : dependents_of(owner)) {
        (void)t;
        (void)dependent;
        co_return result<void>();
      }
    }
    co_return co_await drop_finalizer(type, std::move(owner), "foregroundDeletion");
  }

  // "gone", "ending" (waits for its dependents) or "there".
  task<std::string> state_of_owner(object ref, std::string ns) {
    auto uid = std::string(json::get_string(ref, {"uid"}));
    if (where_.contains(uid)) co_return std::string(deleting_.contains(uid) ? "ending" : "there");
    auto type = registry_.find(json::get_string(ref, {"apiVersion"}), json::get_string(ref, {"kind"}));
    if (!type) co_return std::string("there");
    object_key key;
    if (type->namespaced) key.ns = ns;
    key.name = std::string(json::get_string(ref, {"name"}));
    auto owner = co_await env.api->get(*type, key);
    if (!owner && owner.error().code() == errc::not_found) co_return std::string("gone");
    if (!owner) co_return owner.error();
    co_return std::string(kube::uid_of(*owner) == uid ? "there" : "gone");
  }

  task<void> collect(resource_type type, object obj) {
    const auto* refs = json::get_array(obj, {"metadata", "ownerReferences"});
    if (!refs || refs->empty()) co_return result<void>();
    auto ns = std::string(kube::namespace_of(obj));
    auto all = *refs;
    std::set<std::string> lost;
    bool solid = false, ending = false;
    for (const auto& r : all) {
      auto ref = r.as_object();
      auto uid = std::string(json::get_string(ref, {"uid"}));
      auto state = co_await state_of_owner(ref, ns);
      if (!state) co_return state.error();
      if (*state == "there")
        solid = true;
      else
        lost.insert(uid);
      ending = ending || *state == "ending";
    }
    if (lost.empty()) co_return result<void>();
    if (solid) co_return co_await without_refs(type, std::move(obj), lost);
    kube::delete_options how;
    how.propagation = ending && !dependents_of(obj).empty() ? "Foreground" : "Background";
    co_return co_await env.remove(type, obj, how);
  }

  type_registry& registry_;
  std::map<std::string, resource_type> types_, ours_;
  std::unordered_map<std::string, object_key> where_;
  std::unordered_map<std::string, std::set<object_key>> dependents_;
  std::set<std::string> deleting_;
  std::map<std::string, steady_time> waiting_;  // owners in foreground deletion, since when
};

}  // namespace

std::unique_ptr<controller> make_garbage_collector(environment& env, type_registry& registry) {
  return std::make_unique<garbage_collector>(env, registry);
}

}  // namespace kubeopera::inline v1::testing::sim
