// The shared watch cache of one simulated cluster: every object of the watched kinds, kept by list and watch, told of own writes
// at once. Everything here runs on the simulator's strand.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/kube/client.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

namespace kubeopera::inline v1::testing::sim {

using json::object;
using kube::object_key;
using kube::resource_type;
using shared_object = std::shared_ptr<const object>;

/// Not thread-safe: one strand.
class cache {
 public:
  /// before is null for a new object, after for one that is gone.
  using listener = std::function<void(const resource_type&, const shared_object& before, const shared_object& after)>;

  cache(asio::any_io_executor strand, std::shared_ptr<kube::client> api, logger& log);
  ~cache();
  cache(const cache&) = delete;
  cache& operator=(const cache&) = delete;

  /// Called on every change, in order, after the cache holds it.
  void subscribe(listener l) { listeners_.push_back(std::move(l)); }
  /// Begins to follow a kind; a second call does nothing.
  void follow(const resource_type& type);
  /// Stops following a kind and forgets its objects without telling anyone.
  void unfollow(const resource_type& type);
  bool follows(const resource_type& type) const;
  /// Every kind followed has been listed once.
  bool synced() const;
  /// Waits until synced() holds. Errors: cancelled.
  task<void> wait_synced();
  /// Stops every watch and waits for its end.
  asio::awaitable<void> finish();

  shared_object get(const resource_type& type, const object_key& key) const;
  /// All objects, or those of one namespace, in order of their keys.
  std::vector<shared_object> list(const resource_type& type, const std::string& ns = {}) const;
  std::vector<resource_type> types() const;

  /// An object as a write returned it; ignored when the cache knows a newer one.
  void observe(const resource_type& type, const object& obj);
  /// Waits until the object is no longer what it was at resource version rv, at most a second.
  task<void> wait_change(const resource_type& type, const object_key& key, const std::string& rv);

 private:
  struct kind_state {
    resource_type type;
    std::map<object_key, shared_object> objects;
    bool listed = false;
    background watcher;
  };
  static std::string id_of(const resource_type& type) { return type.group + "/" + type.plural; }
  asio::awaitable<void> run_kind(std::string id, resource_type type);
  task<std::string> relist(const std::string& id, const resource_type& type);
  /// Ends with "gone" where the kind must be listed again; otherwise the version to go on from.
  task<std::string> follow_stream(const std::string& id, const resource_type& type, std::string rv);
  void put(kind_state& kind, const object& obj);
  void erase(kind_state& kind, const object& last);
  void tell(const resource_type& type, const shared_object& before, const shared_object& after);

  asio::any_io_executor strand_;
  std::shared_ptr<kube::client> api_;
  logger& log_;
  std::map<std::string, kind_state> kinds_;
  std::vector<background> retired_;
  std::vector<listener> listeners_;
  std::deque<std::string> buried_order_;
  std::unordered_set<std::string> buried_;
  notifier changed_;
};

/// A resourceVersion as a number; 0 where it is none.
std::uint64_t version_number(const object& o) noexcept;

}  // namespace kubeopera::inline v1::testing::sim
