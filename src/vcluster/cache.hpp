// The resolver's memory: sharded entries, who is loading, what is fresh. No I/O.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace kubeopera::inline v1::vcluster::detail {

/// What is known of one vCluster. Guarded by its shard's mutex, but for `changed`.
struct entry {
  std::shared_ptr<kube::client> client;  // the last good one
  std::optional<error> failure;          // of the last load
  std::string secret_version;            // that client was made from
  steady_time fresh_until{};
  steady_time forced_at{};  // last invalidate() that counted
  bool forced = false;
  system_time warned_at{};
  bool loading = false;
  notifier changed;  // a load has ended
};

/// A reference with its hash, so that it is computed once a call. The namespace hardly ever tells two apart and is left out.
struct hashed {
  explicit hashed(const reference& r) noexcept : which(r), hash(hash_of(r)) {}
  static std::size_t hash_of(const reference& r) noexcept {
    std::hash<std::string_view> h;
    return h(r.name) * 31 + h(r.tenant);
  }
  const reference& which;
  std::size_t hash;
};

struct reference_hash {
  using is_transparent = void;
  std::size_t operator()(const reference& r) const noexcept { return hashed::hash_of(r); }
  std::size_t operator()(const hashed& h) const noexcept { return h.hash; }
};

struct reference_equal {
  using is_transparent = void;
  bool operator()(const reference& a, const reference& b) const noexcept { return a == b; }
  bool operator()(const hashed& a, const reference& b) const noexcept { return a.which == b; }
  bool operator()(const reference& a, const hashed& b) const noexcept { return a == b.which; }
};

using answer = std::optional<result<std::shared_ptr<kube::client>>>;

/// What a load found out.
struct loaded {
  std::shared_ptr<kube::client> client;
  std::string secret_version;
  system_time not_after{};
};

/// Thread-safe.
class cache {
 public:
  explicit cache(duration forget_after) : forget_after_(forget_after) {}

  /// The client if it is fresh.
  std::shared_ptr<kube::client> hit(const reference& which, steady_time now) const noexcept;

  struct turn {
    answer ready;                 // answered from memory
    std::shared_ptr<entry> load;  // this caller loads, and must call finish() or give_up()
    std::shared_ptr<entry> wait;  // another caller loads
    std::uint64_t ticket = 0;     // to wait with
    std::string known_version;    // of load: "" when a new client is wanted whatever the Secret's version
    std::shared_ptr<kube::client> known;
  };
  turn take_turn(const reference& which, steady_time now);
  /// Ends a load and gives what callers get now.
  result<std::shared_ptr<kube::client>> finish(const reference& which, entry& e, result<loaded> what, steady_time fresh_until);
  /// Ends a load without an outcome: the next caller loads.
  void give_up(const reference& which, entry& e);
  /// Makes the next caller load. only, where not null, must be the client in use.
  void invalidate(const reference& which, const kube::client* only, steady_time now);
  /// True once in six hours for each entry.
  bool should_warn(const reference& which, entry& e, system_time now);
  resolver_stats stats() const;

 private:
  struct alignas(64) shard {
    mutable std::mutex mutex;
    std::unordered_map<reference, std::shared_ptr<entry>, reference_hash, reference_equal> entries;
    mutable std::uint64_t hits = 0;  // counted under the lock that a hit takes anyway
    std::uint64_t misses = 0, failures = 0;
  };
  static constexpr std::size_t shard_count = 32;
  // The map uses the low bits.
  static std::size_t index(std::size_t hash) noexcept { return (hash >> 40) % shard_count; }
  shard& shard_of(const reference& r) noexcept { return shards_[index(hashed::hash_of(r))]; }
  void sweep(shard& s, steady_time now);

  duration forget_after_;
  std::array<shard, shard_count> shards_;
};

}  // namespace kubeopera::inline v1::vcluster::detail
