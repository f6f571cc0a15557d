// List and watch for the simulator's cache.
#include "src/testing/sim_cache.hpp"

#include <kubeopera/core/backoff.hpp>

#include <charconv>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

std::uint64_t version_number(const object& o) noexcept {
  auto text = kube::resource_version_of(o);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

cache::cache(asio::any_io_executor strand, std::shared_ptr<kube::client> api, logger& log)
    : strand_(std::move(strand)), api_(std::move(api)), log_(log) {}

cache::~cache() = default;

void cache::follow(const resource_type& type) {
  auto id = id_of(type);
  auto [it, fresh] = kinds_.try_emplace(id);
  if (!fresh) return;
  it->second.type = type;
  it->second.watcher = background::start(strand_, run_kind(id, type));
}

void cache::unfollow(const resource_type& type) {
  auto it = kinds_.find(id_of(type));
  if (it == kinds_.end()) return;
  it->second.watcher.stop();
  std::erase_if(retired_, [](const background& b) { return b.finished(); });
  retired_.push_back(std::move(it->second.watcher));
  kinds_.erase(it);
}

bool cache::follows(const resource_type& type) const { return kinds_.contains(id_of(type)); }

bool cache::synced() const {
  for (const auto& [id, kind] : kinds_) {
    if (!kind.listed) return false;
  }
  return true;
}

task<void> cache::wait_synced() {
  while (true) {
    auto ticket = changed_.ticket();
    if (synced()) co_return result<void>();
    KUBEOPERA_CO_CHECK(co_await changed_.wait(ticket));
  }
}

asio::awaitable<void> cache::finish() {
  for (auto& [id, kind] : kinds_) retired_.push_back(std::move(kind.watcher));
  for (auto& b : retired_) b.stop();
  for (auto& b : retired_) {
    auto ended = co_await b.join();
    if (!ended) log_.debug("watch did not end in order", {{"error", ended.error()}});
  }
  retired_.clear();
}

shared_object cache::get(const resource_type& type, const object_key& key) const {
  auto kind = kinds_.find(id_of(type));
  if (kind == kinds_.end()) return nullptr;
  auto it = kind->second.objects.find(key);
  return it == kind->second.objects.end() ? nullptr : it->second;
}

std::vector<shared_object> cache::list(const resource_type& type, const std::string& ns) const {
  std::vector<shared_object> out;
  auto kind = kinds_.find(id_of(type));
  if (kind == kinds_.end()) return out;
  const auto& all = kind->second.objects;
  object_key first;
  first.ns = ns;
  for (auto it = ns.empty() ? all.begin() : all.lower_bound(first); it != all.end(); ++it) {
    if (!ns.empty() && it->first.ns != ns) break;
    out.push_back(it->second);
  }
  return out;
}

std::vector<resource_type> cache::types() const {
  std::vector<resource_type> out;
  for (const auto& [id, kind] : kinds_) out.push_back(kind.type);
  return out;
}

void cache::observe(const resource_type& type, const object& obj) {
  auto kind = kinds_.find(id_of(type));
  if (kind != kinds_.end()) put(kind->second, obj);
}

task<void> cache::wait_change(const resource_type& type, const object_key& key, const std::string& rv) {
  auto until = std::chrono::steady_clock::now() + 1s;
  while (true) {
    auto ticket = changed_.ticket();
    auto now = get(type, key);
    if (!now || kube::resource_version_of(*now) != rv) co_return result<void>();
    auto left = until - std::chrono::steady_clock::now();
    if (left <= duration::zero()) co_return result<void>();
    auto woken = co_await changed_.wait_for(ticket, left);
    if (!woken) co_return woken.error();
  }
}

asio::awaitable<void> cache::run_kind(std::string id, resource_type type) {
  backoff pause(5ms, 1s);
  while (true) {
    auto rv = co_await relist(id, type);
    while (rv) {
      pause.reset();
      rv = co_await follow_stream(id, type, *rv);
    }
    if (rv.error().code() == errc::cancelled) co_return;
    if (rv.error().code() == errc::gone) continue;
    log_.debug("watch cache lists again", {{"kind", type.kind}, {"error", rv.error()}});
    auto slept = co_await sleep_for(pause.next());
    if (!slept) co_return;
  }
}

task<std::string> cache::relist(const std::string& id, const resource_type& type) {
  auto all = co_await kube::list_all(*api_, type, "");
  auto it = kinds_.find(id);
  if (!all) {
    // A kind that is not served has no objects; whoever waits for the caches must not wait for it.
    if (all.error().code() == errc::not_found && it != kinds_.end()) {
      it->second.listed = true;
      changed_.notify();
    }
    co_return all.error();
  }
  if (it == kinds_.end()) co_return error(errc::cancelled, "Cancelled", "no longer followed");
  auto& kind = it->second;
  std::map<object_key, bool> seen;
  for (auto& item : all->items) {
    if (!item.contains("apiVersion")) item["apiVersion"] = type.api_version();
    if (!item.contains("kind")) item["kind"] = type.kind;
    seen[kube::key_of(item)] = true;
    put(kind, item);
  }
  std::uint64_t at = 0;
  std::from_chars(all->resource_version.data(), all->resource_version.data() + all->resource_version.size(), at);
  std::vector<shared_object> lost;
  for (const auto& [key, obj] : kind.objects) {
    if (!seen.contains(key) && version_number(*obj) <= at) lost.push_back(obj);
  }
  for (const auto& obj : lost) erase(kind, *obj);
  kind.listed = true;
  changed_.notify();
  co_return all->resource_version;
}

task<std::string> cache::follow_stream(const std::string& id, const resource_type& type, std::string rv) {
  kube::watch_options options;
  options.resource_version = rv;
  auto stream = co_await api_->watch(type, "", options);
  if (!stream) co_return stream.error();
  while (true) {
    auto e = co_await (*stream)->next();
    if (!e) {
      if (e.error().code() == errc::unavailable) co_return rv;
      co_return e.error();
    }
    if (!*e) co_return rv;
    auto it = kinds_.find(id);
    if (it == kinds_.end()) co_return error(errc::cancelled, "Cancelled", "no longer followed");
    rv = std::string(kube::resource_version_of((*e)->obj));
    if ((*e)->type == kube::event_type::deleted)
      erase(it->second, (*e)->obj);
    else if ((*e)->type != kube::event_type::bookmark)
      put(it->second, (*e)->obj);
  }
}

void cache::put(kind_state& kind, const object& obj) {
  if (buried_.contains(std::string(kube::uid_of(obj)))) return;
  auto key = kube::key_of(obj);
  auto& slot = kind.objects[key];
  if (slot && kube::uid_of(*slot) == kube::uid_of(obj) && version_number(*slot) >= version_number(obj)) return;
  auto before = slot;
  slot = std::make_shared<const object>(obj);
  auto after = slot;
  tell(kind.type, before, after);
}

void cache::erase(kind_state& kind, const object& last) {
  auto uid = std::string(kube::uid_of(last));
  if (buried_.insert(uid).second) {
    buried_order_.push_back(uid);
    if (buried_order_.size() > 8192) {
      buried_.erase(buried_order_.front());
      buried_order_.pop_front();
    }
  }
  auto it = kind.objects.find(kube::key_of(last));
  if (it == kind.objects.end() || kube::uid_of(*it->second) != uid) return;
  auto before = it->second;
  kind.objects.erase(it);
  tell(kind.type, before, nullptr);
}

void cache::tell(const resource_type& type, const shared_object& before, const shared_object& after) {
  changed_.notify();
  for (const auto& l : listeners_) l(type, before, after);
}

}  // namespace kubeopera::inline v1::testing::sim
