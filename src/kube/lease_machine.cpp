// The election's decisions: when a Lease may be taken, when ours is lost, what is written.
#include "src/kube/lease_machine.hpp"

namespace kubeopera::inline v1::kube::detail {

lease_machine::lease_machine(const lease_options& options, std::function<std::uint64_t()> random)
    : options_(options), random_(std::move(random)) {}

// A leader renews at an even pace; candidates spread out, up to 1.2 times as much again.
duration lease_machine::retry_wait() {
  if (leading_) return options_.retry_period;
  auto most = static_cast<std::uint64_t>(options_.retry_period.count()) * 6 / 5;
  return options_.retry_period + duration(static_cast<duration::rep>(random_() % most));
}

bool lease_machine::held_by_other(steady_time now) const {
  if (holder_.empty() || holder_ == options_.identity) return false;
  return now < seen_since_ + seen_lasts_;
}

lease_step lease_machine::next(steady_time now, system_time wall) {
  if (leading_ && now >= leads_until_) {
    leading_ = false;
    known_ = false;
  }
  lease_step step;
  if (attempted_) {
    attempted_ = false;
    step.kind = lease_step_kind::wait;
    step.wait = retry_wait();
    if (leading_) step.wait = std::min(step.wait, leads_until_ - now);
    return step;
  }
  if (!known_) {
    step.kind = lease_step_kind::read;
    return step;
  }
  if (seen_ && held_by_other(now)) {
    known_ = false;
    step.kind = lease_step_kind::wait;
    step.wait = retry_wait();
    return step;
  }
  step.kind = seen_ ? lease_step_kind::update : lease_step_kind::create;
  step.body = fill(seen_ ? *seen_ : make_object(types::leases(), {options_.ns, options_.name}), wall, !leading_);
  return step;
}

object lease_machine::fill(object lease, system_time wall, bool acquiring) const {
  auto& spec = json::ensure_object(lease, "spec");
  auto now = format_rfc3339_micros(wall);
  if (acquiring) {
    // Also where the holder has our name: an earlier process of that name must be told apart.
    // And also where the Lease was deleted: the number must not fall back.
    auto transitions = json::get_int(spec, {"leaseTransitions"}, -1);
    spec["leaseTransitions"] = std::max(transitions, most_transitions_) + 1;
    spec["acquireTime"] = now;
  }
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = static_cast<std::int64_t>(options_.lease_duration.count());
  spec["renewTime"] = now;
  return lease;
}

void lease_machine::observe(object lease, steady_time now) {
  std::string version(resource_version_of(lease));
  if (!seen_ || version.empty() || version != seen_version_) {
    seen_since_ = now;
    seen_version_ = std::move(version);
  }
  holder_ = std::string(json::get_string(lease, {"spec", "holderIdentity"}));
  most_transitions_ = std::max(most_transitions_, json::get_int(lease, {"spec", "leaseTransitions"}, -1));
  auto seconds = json::get_int(lease, {"spec", "leaseDurationSeconds"}, options_.lease_duration.count());
  seen_lasts_ = std::chrono::seconds(std::max<std::int64_t>(seconds, 1));
  seen_ = std::move(lease);
  known_ = true;
}

void lease_machine::on_read(std::optional<object> lease, steady_time now) {
  if (!lease) {
    seen_.reset();
    seen_version_.clear();
    holder_.clear();
    known_ = true;
    leading_ = false;
    return;
  }
  observe(std::move(*lease), now);
  if (holder_ != options_.identity) leading_ = false;
}

void lease_machine::on_written(object lease, steady_time sent, steady_time now) {
  observe(std::move(lease), now);
  attempted_ = true;
  conflicts_ = 0;
  leading_ = holder_ == options_.identity;
  fence_ = json::get_int(*seen_, {"spec", "leaseTransitions"});
  leads_until_ = sent + options_.renew_deadline;
}

void lease_machine::on_error(const error& what) {
  // Whoever wrote, or whether our own write went through after all, is found out by reading; at once after a first conflict.
  known_ = false;
  bool outpaced = what.code() == errc::conflict || what.code() == errc::already_exists || what.code() == errc::not_found;
  attempted_ = !outpaced || ++conflicts_ > 1;
}

std::optional<object> lease_machine::release(system_time wall) {
  if (!seen_ || !leading_) return std::nullopt;
  object lease = *seen_;
  auto& spec = json::ensure_object(lease, "spec");
  auto now = format_rfc3339_micros(wall);
  spec["holderIdentity"] = "";
  spec["leaseDurationSeconds"] = 1;
  spec["renewTime"] = now;
  spec["acquireTime"] = now;
  return lease;
}

void lease_machine::on_released() {
  leading_ = false;
  known_ = false;
  holder_.clear();
}

}  // namespace kubeopera::inline v1::kube::detail
