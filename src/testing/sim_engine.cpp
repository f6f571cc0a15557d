// The loop, writes with the cache told at once, and events.
#include "src/testing/sim_engine.hpp"

#include <kubeopera/core/id.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

kube::write_options managed_by(const std::string& manager, const std::string& subresource = {}) {
  kube::write_options w;
  w.field_manager = manager;
  w.subresource = subresource;
  return w;
}

std::string hex64(std::uint64_t number) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; number >>= 4) out[i] = digits[number & 15];
  return out;
}

}  // namespace

task<object> environment::create(const resource_type& type, object obj, const std::string& manager) {
  auto w = managed_by(manager);
  auto r = co_await api->create(type, obj, w);
  if (r) objects.observe(type, *r);
  co_return r;
}

task<object> environment::replace(const resource_type& type, object obj, const std::string& manager) {
  auto w = managed_by(manager);
  auto r = co_await api->replace(type, obj, w);
  if (r) objects.observe(type, *r);
  co_return r;
}

task<object> environment::replace_status(const resource_type& type, object obj, const std::string& manager) {
  auto w = managed_by(manager, "status");
  auto r = co_await api->replace(type, obj, w);
  if (r) objects.observe(type, *r);
  co_return r;
}

task<object> environment::merge(const resource_type& type, object_key key, json::value body, const std::string& manager,
                                const std::string& subresource) {
  auto w = managed_by(manager, subresource);
  auto r = co_await api->patch(type, key, kube::patch_kind::merge, body, w);
  if (r) objects.observe(type, *r);
  co_return r;
}

task<void> environment::remove(const resource_type& type, const object& obj, kube::delete_options how) {
  auto key = kube::key_of(obj);
  auto rv = std::string(kube::resource_version_of(obj));
  how.uid = std::string(kube::uid_of(obj));
  auto r = co_await api->remove(type, key, how);
  if (!r && r.error().code() != errc::not_found && r.error().code() != errc::conflict) co_return r.error();
  if (objects.follows(type)) co_return co_await objects.wait_change(type, key, rv);
  co_return result<void>();
}

void environment::record(happening h) { loop->record(std::move(h)); }

void environment::record(const resource_type& type, const object& about, std::string reason, std::string message,
                         std::string component, std::string event_type) {
  happening h;
  h.key = kube::key_of(about);
  h.api_version = type.api_version();
  h.kind = type.kind;
  h.uid = std::string(kube::uid_of(about));
  h.resource_version = std::string(kube::resource_version_of(about));
  h.reason = std::move(reason);
  h.message = std::move(message);
  h.component = std::move(component);
  h.type = std::move(event_type);
  record(std::move(h));
}

void controller::enqueue(const object_key& key) { env.loop->enqueue(*this, key); }
void controller::enqueue_after(const object_key& key, duration wait) { env.loop->enqueue_after(*this, key, wait); }

task<void> controller::stop() { co_return result<void>(); }

asio::awaitable<void> engine::finish() {
  for (auto& c : controllers_) {
    auto stopped = co_await c->stop();
    if (!stopped) env_.log.warn("controller did not stop", {{"controller", c->name()}, {"error", stopped.error()}});
  }
  co_await env_.objects.finish();
}

engine::engine(environment& env) : env_(env) {
  env_.loop = this;
  env_.objects.subscribe([this](const resource_type& type, const shared_object& before, const shared_object& after) {
    for (auto& c : controllers_) c->on_change(type, before, after);
    wake_.notify();
  });
}

void engine::add(std::unique_ptr<controller> c) { controllers_.push_back(std::move(c)); }

void engine::enqueue(controller& c, const object_key& key) {
  if (c.waiting_.insert(key).second) c.ready_.push_back(key);
  wake_.notify();
}

void engine::enqueue_after(controller& c, const object_key& key, duration wait) {
  if (wait <= duration::zero()) return enqueue(c, key);
  auto due = std::chrono::steady_clock::now() + wait;
  auto [it, fresh] = planned_.try_emplace({&c, key}, due);
  if (!fresh && it->second <= due) return;
  it->second = due;
  timers_.push(timer{due, &c, key});
  wake_.notify();
}

void engine::record(happening h) {
  if (events_.size() < 10'000) events_.push_back(std::move(h));
  wake_.notify();
}

bool engine::idle() const {
  return !busy_ && events_.empty() &&
         std::all_of(controllers_.begin(), controllers_.end(), [](const auto& c) { return c->ready_.empty(); });
}

void engine::fire_timers() {
  auto now = std::chrono::steady_clock::now();
  while (!timers_.empty() && timers_.top().due <= now) {
    auto t = timers_.top();
    timers_.pop();
    auto it = planned_.find({t.who, t.key});
    if (it == planned_.end() || it->second != t.due) continue;
    planned_.erase(it);
    enqueue(*t.who, t.key);
  }
}

task<void> engine::run() {
  for (auto& c : controllers_) {
    for (const auto& type : c->watches()) env_.objects.follow(type);
  }
  KUBEOPERA_CO_CHECK(co_await env_.objects.wait_synced());
  for (auto& c : controllers_) c->start();
  while (true) {
    auto ticket = wake_.ticket();
    fire_timers();
    bool worked = co_await step();
    if (co_await detail::cancelled()) co_return error(errc::cancelled, "Cancelled", "the simulator was stopped");
    if (worked) continue;
    if (timers_.empty()) {
      KUBEOPERA_CO_CHECK(co_await wake_.wait(ticket));
    } else {
      auto left = timers_.top().due - std::chrono::steady_clock::now();
      if (left <= duration::zero()) continue;
      auto woken = co_await wake_.wait_for(ticket, left);
      if (!woken) co_return woken.error();
    }
  }
}

asio::awaitable<bool> engine::step() {
  for (auto& c : controllers_) {
    if (c->ready_.empty()) continue;
    std::size_t turns = c->batched() ? c->ready_.size() : 1;
    busy_ = true;
    for (; turns > 0 && !c->ready_.empty(); --turns) {
      auto key = c->ready_.front();
      c->ready_.pop_front();
      c->waiting_.erase(key);
      if (!co_await handle(*c, key)) break;
    }
    busy_ = false;
    co_return true;
  }
  if (!events_.empty()) {
    auto h = std::move(events_.front());
    events_.pop_front();
    busy_ = true;
    co_await write_event(std::move(h));
    busy_ = false;
    co_return true;
  }
  co_return false;
}

// False when the loop has been asked to stop.
asio::awaitable<bool> engine::handle(controller& c, object_key key) {
  planned_.erase({&c, key});  // what it planned before is planned again by this turn, or no longer wanted
  auto r = co_await c.reconcile(key);
  if (r) {
    c.failures_.erase(key);
    co_return true;
  }
  if (r.error().code() == errc::cancelled) co_return false;
  int& failures = c.failures_[key];
  auto wait = std::min<duration>(5ms * (1 << std::min(failures, 12)), 10s);
  ++failures;
  env_.log.debug("controller tries again", {{"controller", c.name()}, {"key", key.str()}, {"error", r.error()}});
  enqueue_after(c, key, wait);
  co_return true;
}

asio::awaitable<void> engine::write_event(happening h) {
  const auto& type = kube::types::events();
  std::string ns = h.key.ns.empty() ? "default" : h.key.ns;
  std::string identity = h.uid + "/" + h.type + "/" + h.reason + "/" + h.component + "/" + h.message;
  auto manager = h.manager.empty() ? std::string("kube-controller-manager") : h.manager;
  if (auto it = written_.find(identity); it != written_.end()) {
    object patch;
    patch["count"] = ++it->second.second;
    patch["lastTimestamp"] = env_.now();
    auto w = managed_by(manager);
    auto r = co_await env_.api->patch(type, it->second.first, kube::patch_kind::merge, json::value(patch), w);
    if (r || r.error().code() != errc::not_found) co_return;
    written_.erase(identity);
  }
  object_key key;
  key.ns = ns;
  key.name = h.key.name + "." + hex64(random_u64() >> 4);
  auto e = kube::make_object(type, key);
  if (!h.annotations.empty()) {
    for (const auto& [k, v] : h.annotations) json::ensure_object(json::ensure_object(e, "metadata"), "annotations")[k] = v;
  }
  auto& about = json::ensure_object(e, "involvedObject");
  about["kind"] = h.kind;
  if (!h.key.ns.empty()) about["namespace"] = h.key.ns;
  about["name"] = h.key.name;
  about["uid"] = h.uid;
  about["apiVersion"] = h.api_version;
  about["resourceVersion"] = h.resource_version;
  if (!h.field_path.empty()) about["fieldPath"] = h.field_path;
  e["reason"] = h.reason;
  e["message"] = h.message;
  auto& source = json::ensure_object(e, "source");
  source["component"] = h.component;
  if (!h.host.empty()) source["host"] = h.host;
  e["firstTimestamp"] = env_.now();
  e["lastTimestamp"] = env_.now();
  e["count"] = 1;
  e["type"] = h.type;
  e["eventTime"] = nullptr;
  e["reportingComponent"] = h.component;
  e["reportingInstance"] = h.host;
  auto w = managed_by(manager);
  auto r = co_await env_.api->create(type, e, w);
  if (!r) {
    env_.log.debug("event not written", {{"reason", h.reason}, {"error", r.error()}});
    co_return;
  }
  if (written_.size() > 5'000) written_.clear();
  written_[identity] = {key, 1};
}

}  // namespace kubeopera::inline v1::testing::sim
