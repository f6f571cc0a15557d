// A model of one Kubernetes API: objects with versions, finalizers, preconditions, lists and watches; and a kube::client of it
// over the simulated network. Every read is of the present (as Kubernetes promises) at the moment the call arrives; answers and
// watch events come late, watches repeat events, are cut, or have to start over.
// A call that makes an object arrives within 900 ms or not at all; every other one may take 45 s, whatever became of its sender.
// Limits: apply merges and never removes; no admission, no selectors, one page a list.
#pragma once

#include "tests/simulation/engine.hpp"

#include <kubeopera/kube/client.hpp>
#include <kubeopera/kube/informer.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kubeopera::simulation {

using kube::object;
using kube::object_ptr;

/// Who made a change: a process of ours, or an actor of the world (Flux, the garbage collector).
struct actor {
  std::string name;
  bool ours = false;
};

class cluster {
 public:
  cluster(engine& e, std::string name) : engine_(e), name_(std::move(name)) {}
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  // The API server's side. All happen at once.
  result<object> get(const kube::resource_type& type, const kube::object_key& key) const;
  kube::object_list list(const kube::resource_type& type, const std::string& ns) const;
  result<object> create(const actor& who, const kube::resource_type& type, object obj);
  result<object> replace(const actor& who, const kube::resource_type& type, object obj);
  result<object> patch(const actor& who, const kube::resource_type& type, const kube::object_key& key, const object& body,
                       bool status);
  result<object> apply(const actor& who, const kube::resource_type& type, const object& obj);
  result<void> remove(const actor& who, const kube::resource_type& type, const kube::object_key& key,
                      const kube::delete_options& options = kube::delete_options());
  /// The whole cluster disappears.
  void vanish() { gone_ = true; }
  bool gone() const noexcept { return gone_; }

  /// Told of each change after it happened; before or now is null for a creation or the end of an object.
  std::function<void(const actor&, const kube::resource_type&, const object_ptr& before, const object_ptr& now)> changed;
  /// Asked when a process sends an update of an object: how much later it arrives.
  std::function<duration(const process& from, const kube::resource_type&, const object&)> hold_back;
  /// Told of each deletion that is asked for, before it happens.
  std::function<void(const actor&, const kube::resource_type&, const object&)> deleting;

  const std::string& name() const noexcept { return name_; }
  engine& world() noexcept { return engine_; }

  // Watches.
  struct event {
    std::uint64_t version;
    kube::event_type type;
    object_ptr obj;
  };
  struct stream {
    std::string kind;
    std::size_t next = 0;  // in the history of the kind
    std::deque<kube::watch_event> inbox;
    std::optional<error> failed;
    bool ended = false, pumping = false;
    notifier arrived;
  };
  result<std::shared_ptr<stream>> open_watch(const kube::resource_type& type, const kube::watch_options& options);
  /// How many watches in a thousand deliveries are cut, and how many have to list again.
  int cuts = 0, expiries = 0, repeats = 0;

 private:
  using store = std::map<kube::object_key, object_ptr>;
  struct history {
    std::vector<event> events;
    std::vector<std::weak_ptr<stream>> watchers;
  };
  result<object> put(const actor& who, const kube::resource_type& type, const object_ptr& before, object next);
  void drop(const actor& who, const kube::resource_type& type, const object_ptr& before);
  void publish(const std::string& kind, kube::event_type type, object_ptr obj);
  void pump(std::shared_ptr<stream> s);
  void deliver(stream& s);
  const object_ptr* find(const std::string& kind, const kube::object_key& key) const;

  engine& engine_;
  std::string name_;
  std::map<std::string, store> objects_;
  std::map<std::string, history> histories_;
  std::uint64_t version_ = 100, last_uid_ = 0;
  bool gone_ = false;
};

/// A process's client of a cluster.
std::shared_ptr<kube::client> make_client(std::shared_ptr<process> from, std::shared_ptr<cluster> to);

bool has_finalizer(const object& o, std::string_view name);

}  // namespace kubeopera::simulation
