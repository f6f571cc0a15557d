// The resolver's memory.
#include "src/vcluster/cache.hpp"

namespace kubeopera::inline v1::vcluster::detail {

namespace {
constexpr duration forced_apart = std::chrono::seconds(1);
constexpr std::chrono::hours warnings_apart{6};
}  // namespace

std::shared_ptr<kube::client> cache::hit(const reference& which, steady_time now) const noexcept {
  hashed key(which);
  const auto& s = shards_[index(key.hash)];
  std::lock_guard lock(s.mutex);
  auto it = s.entries.find(key);
  if (it == s.entries.end()) return nullptr;
  const auto& e = *it->second;
  if (e.failure || now >= e.fresh_until) return nullptr;
  ++s.hits;
  return e.client;
}

cache::turn cache::take_turn(const reference& which, steady_time now) {
  auto& s = shard_of(which);
  std::lock_guard lock(s.mutex);
  auto& slot = s.entries[which];
  if (!slot) {
    slot = std::make_shared<entry>();
    sweep(s, now);
  }
  auto e = slot;
  turn out;
  if (now < e->fresh_until) {
    ++s.hits;
    if (e->failure)
      out.ready.emplace(*e->failure);
    else
      out.ready.emplace(e->client);
  } else if (e->loading) {
    out.ticket = e->changed.ticket();
    out.wait = std::move(e);
  } else {
    e->loading = true;
    if (!e->forced) {
      out.known_version = e->secret_version;
      out.known = e->client;
    }
    e->forced = false;
    out.load = std::move(e);
  }
  return out;
}

result<std::shared_ptr<kube::client>> cache::finish(const reference& which, entry& e, result<loaded> what,
                                                    steady_time fresh_until) {
  auto& home = shard_of(which);
  std::unique_lock lock(home.mutex);
  ++home.misses;
  if (!what) ++home.failures;
  e.loading = false;
  e.fresh_until = e.forced ? e.forced_at : fresh_until;
  if (what) {
    e.client = std::move(what->client);
    e.secret_version = std::move(what->secret_version);
    e.failure.reset();
  } else {
    auto failure = what.error();
    // The host's outage says nothing about the vCluster: what was good stays good.
    bool keep = e.client && failure.transient();
    if (!keep) {
      e.failure = std::move(failure);
      e.client.reset();
      e.secret_version.clear();
    }
  }
  result<std::shared_ptr<kube::client>> out = e.client;
  if (e.failure) out = *e.failure;
  lock.unlock();
  e.changed.notify();
  return out;
}

void cache::give_up(const reference& which, entry& e) {
  {
    std::lock_guard lock(shard_of(which).mutex);
    e.loading = false;
  }
  e.changed.notify();
}

void cache::invalidate(const reference& which, const kube::client* only, steady_time now) {
  auto& s = shard_of(which);
  std::lock_guard lock(s.mutex);
  auto it = s.entries.find(which);
  if (it == s.entries.end()) return;
  auto& e = *it->second;
  if (only && e.client.get() != only) return;
  if (e.forced_at != steady_time{} && now < e.forced_at + forced_apart) return;
  e.forced_at = now;
  e.forced = true;
  e.fresh_until = now;
}

bool cache::should_warn(const reference& which, entry& e, system_time now) {
  std::lock_guard lock(shard_of(which).mutex);
  if (e.warned_at != system_time{} && now < e.warned_at + warnings_apart) return false;
  e.warned_at = now;
  return true;
}

void cache::sweep(shard& s, steady_time now) {
  std::erase_if(s.entries, [&](const auto& item) {
    const auto& e = *item.second;
    return !e.loading && e.fresh_until != steady_time{} && now > e.fresh_until + forget_after_;  // a new entry has no time yet
  });
}

resolver_stats cache::stats() const {
  resolver_stats out;
  for (const auto& s : shards_) {
    std::lock_guard lock(s.mutex);
    out.hits += s.hits;
    out.misses += s.misses;
    out.failures += s.failures;
    out.entries += s.entries.size();
  }
  return out;
}

}  // namespace kubeopera::inline v1::vcluster::detail
