// Leader election as a pure state machine: what was read or written goes in, the next step comes out. No I/O, no clock.
#pragma once

#include <kubeopera/kube/lease.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kubeopera::inline v1::kube::detail {

enum class lease_step_kind { read, create, update, wait };

struct lease_step {
  lease_step_kind kind = lease_step_kind::read;
  object body;                       ///< of create and update
  duration wait = duration::zero();  ///< of wait
};

/// Not thread-safe. Times are the caller's: now for decisions, sent for the moment before a request left.
class lease_machine {
 public:
  lease_machine(const lease_options& options, std::function<std::uint64_t()> random);

  lease_step next(steady_time now, system_time wall);
  /// The Lease as it is on the server; nullopt when there is none.
  void on_read(std::optional<object> lease, steady_time now);
  /// The create or update went through.
  void on_written(object lease, steady_time sent, steady_time now);
  /// The step failed. A conflict means that someone else wrote.
  void on_error(const error& what);
  /// The update that gives the Lease up; nullopt when it is not ours.
  std::optional<object> release(system_time wall);
  /// After release() was written: not a leader any more.
  void on_released();

  bool leading(steady_time now) const noexcept { return leading_ && now < leads_until_; }
  /// Until when this leadership holds without another renewal.
  steady_time leads_until() const noexcept { return leads_until_; }
  std::int64_t transitions() const noexcept { return fence_; }
  const std::string& holder() const noexcept { return holder_; }

 private:
  void observe(object lease, steady_time now);
  bool held_by_other(steady_time now) const;
  object fill(object lease, system_time wall, bool acquiring) const;
  duration retry_wait();

  lease_options options_;
  std::function<std::uint64_t()> random_;
  std::optional<object> seen_;  // last state of the Lease on the server
  std::string seen_version_;    // its resourceVersion
  std::string holder_;
  duration seen_lasts_{};     // leaseDurationSeconds of what was seen
  steady_time seen_since_{};  // when it was first seen to be so
  bool known_ = false;        // seen_ is current as far as we know
  bool attempted_ = false;    // a step was taken since the last wait
  bool leading_ = false;
  std::int64_t fence_ = 0;
  std::int64_t most_transitions_ = -1;  // ever seen here
  int conflicts_ = 0;                   // since the last write that went through
  steady_time leads_until_{};
};

}  // namespace kubeopera::inline v1::kube::detail
