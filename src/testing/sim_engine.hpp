// The loop that runs a simulated cluster's controllers: one after another, in a fixed order of precedence, each from its own
// queue. One loop for all makes a run repeatable: who acts first depends on the state, not on the threads.
#pragma once

#include "src/testing/sim_cache.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/testing/simulator.hpp>

#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::testing::sim {

/// A Kubernetes event about an object, as client-go's recorder writes it: one that repeats counts up.
struct happening {
  happening() = default;
  object_key key;  ///< of the object
  std::string api_version, kind, uid, resource_version, field_path;
  std::string type = "Normal";
  std::string reason, message, component, host, manager;
  std::map<std::string, std::string> annotations;
};

class engine;

/// What every controller works with. Lives as long as the simulator.
struct environment {
  environment(asio::any_io_executor s, std::shared_ptr<kube::client> a, simulator_options o, clock& c, logger& l)
      : strand(std::move(s)), api(std::move(a)), options(std::move(o)), time(c), log(l), objects(strand, api, l) {}
  asio::any_io_executor strand;
  std::shared_ptr<kube::client> api;
  simulator_options options;
  clock& time;
  logger& log;
  cache objects;
  engine* loop = nullptr;

  std::string now() const { return format_rfc3339(time.now()); }
  // Writes; what they return is in the cache before the caller goes on.
  task<object> create(const resource_type& type, object obj, const std::string& manager = "kube-controller-manager");
  task<object> replace(const resource_type& type, object obj, const std::string& manager = "kube-controller-manager");
  task<object> replace_status(const resource_type& type, object obj, const std::string& manager = "kube-controller-manager");
  task<object> merge(const resource_type& type, object_key key, json::value body,
                     const std::string& manager = "kube-controller-manager", const std::string& subresource = {});
  /// Deletes and waits until the cache has seen it. An object that is gone already is a success.
  task<void> remove(const resource_type& type, const object& obj, kube::delete_options options = kube::delete_options());
  /// Writes an Event later, when nothing else is to do.
  void record(happening h);
  void record(const resource_type& type, const object& about, std::string reason, std::string message, std::string component,
              std::string event_type = "Normal");
};

/// One controller: turns changes into keys, and a key into the wanted state.
class controller {
 public:
  explicit controller(environment& e) : env(e) {}
  virtual ~controller() = default;
  virtual std::string_view name() const = 0;
  /// The kinds it looks at.
  virtual std::vector<resource_type> watches() const = 0;
  virtual void on_change(const resource_type& type, const shared_object& before, const shared_object& after) = 0;
  virtual task<void> reconcile(const object_key& key) = 0;
  /// True: all keys waiting are handled before any other controller gets its turn.
  virtual bool batched() const { return false; }
  /// Called once, when the cache has listed everything.
  virtual void start() {}
  /// Called once, when the loop ends: stops what the controller started and waits for it.
  virtual task<void> stop();

 protected:
  void enqueue(const object_key& key);
  void enqueue_after(const object_key& key, duration wait);
  environment& env;

 private:
  friend class engine;
  std::deque<object_key> ready_;
  std::set<object_key> waiting_;
  std::map<object_key, int> failures_;
};

/// The loop. Not thread-safe: one strand.
class engine {
 public:
  explicit engine(environment& env);
  /// Earlier ones take precedence.
  void add(std::unique_ptr<controller> c);
  /// Runs until cancelled; then finish() has to be awaited.
  task<void> run();
  /// Stops and awaits every controller and the cache.
  asio::awaitable<void> finish();
  void wake() { wake_.notify(); }
  void enqueue(controller& c, const object_key& key);
  void enqueue_after(controller& c, const object_key& key, duration wait);
  /// Takes back what enqueue_after() planned.
  void forget_timer(controller& c, const object_key& key) { planned_.erase({&c, key}); }
  void record(happening h);
  /// True when no controller has anything to do now; timers may be pending.
  bool idle() const;

 private:
  struct timer {
    steady_time due;
    controller* who;
    object_key key;
    friend bool operator>(const timer& a, const timer& b) { return a.due > b.due; }
  };
  void fire_timers();
  asio::awaitable<bool> step();
  asio::awaitable<bool> handle(controller& c, object_key key);
  asio::awaitable<void> write_event(happening h);

  environment& env_;
  std::vector<std::unique_ptr<controller>> controllers_;
  std::priority_queue<timer, std::vector<timer>, std::greater<>> timers_;
  std::map<std::pair<controller*, object_key>, steady_time> planned_;  // the earliest timer of each key
  std::deque<happening> events_;
  std::map<std::string, std::pair<object_key, int>> written_;
  bool busy_ = false;
  notifier wake_;
};

}  // namespace kubeopera::inline v1::testing::sim
