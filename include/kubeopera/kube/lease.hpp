// Leader election on a coordination.k8s.io/v1 Lease, with a fencing token. Source: client-go's leaderelection; the Lease API.
// A Lease alone fences nobody: give fence() to the store that the leader writes to, and have it refuse smaller numbers.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/kube/client.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kubeopera::inline v1::kube {

struct lease_options {
  lease_options() = default;
  std::string ns, name;
  std::string identity;                                ///< must be another one for each process that runs, also after a restart
  std::chrono::seconds lease_duration{15};             ///< others wait this long after the last change that they saw
  duration renew_deadline = std::chrono::seconds(10);  ///< leadership ends this long after the last renewal was sent
  duration retry_period = std::chrono::seconds(2);     ///< between attempts; candidates add up to 1.2 times as much
  bool release_on_stop = true;                         ///< gives the Lease up when run() is cancelled
  clock* time = nullptr;                               ///< null means clock::real(); must outlive the elector
  std::function<std::uint64_t()> random;               ///< jitter; empty means random_u64()
  logger* log = nullptr;                               ///< must outlive the elector
  std::function<void(const std::string& identity)> new_leader;  ///< told of every change of the holder that is seen
};

/// What the leader does. It is cancelled when leadership is lost and awaited before the next candidacy.
using leader_body = std::function<asio::awaitable<void>(std::int64_t fence)>;

/// A candidate for one Lease.
///
/// Expiry of another's Lease is judged by how long it did not change here, never by the times that it holds: clocks may differ as
/// they like, only their rates must agree. Leadership is given up renew_deadline after the last successful renewal was *sent*;
/// the others wait lease_duration after it *arrived*, which is later: two never lead at once unless the process stands still
/// between asking leading() and acting, and that is what the fencing token is for.
///
/// Thread safety: leading(), fence(), leader() may be called from any thread while run() runs.
class leader_elector {
 public:
  /// Errors: invalid_argument (names; identity empty; not retry_period * 1.2 < renew_deadline < lease_duration).
  static result<std::unique_ptr<leader_elector>> make(std::shared_ptr<client> api, lease_options options);
  ~leader_elector();
  leader_elector(const leader_elector&) = delete;
  leader_elector& operator=(const leader_elector&) = delete;

  /// Takes part in the election until cancelled; runs body each time it leads. When body ends by itself the Lease is given up and
  /// run() ends with success. Errors: cancelled. Call it once at a time.
  task<void> run(leader_body body);

  bool leading() const noexcept;
  /// leaseTransitions of this leadership: larger with every new one; nullopt when not leading.
  std::optional<std::int64_t> fence() const noexcept;
  /// Who holds the Lease, as last seen; "" when nobody does.
  std::string leader() const;
  /// Fires when leading() changes.
  notifier& changed() noexcept;

  struct state;

 private:
  explicit leader_elector(std::shared_ptr<state> s);
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::kube
