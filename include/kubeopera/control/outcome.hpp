// What a reconciler says when it has looked at one key.
#pragma once

#include <kubeopera/core/async.hpp>

#include <optional>
#include <utility>

namespace kubeopera::inline v1::control {

/// The end of one reconcile step that did not fail. A failed step returns an error instead and is tried again with growing
/// delays, whatever the error's code (state may change); what cannot get better by itself is stalled().
class outcome {
 public:
  /// Nothing to do until something changes.
  static outcome done() { return outcome(kind::done); }
  /// Look again after the delay; the key's failure count starts over.
  static outcome again_after(duration delay) {
    outcome o(kind::again);
    o.delay_ = delay;
    return o;
  }
  /// It cannot go on and trying again will not help: logged and counted, then left alone until the key is added again.
  static outcome stalled(error cause) {
    outcome o(kind::stalled);
    o.cause_ = std::move(cause);
    return o;
  }

  bool is_done() const noexcept { return kind_ == kind::done; }
  bool is_stalled() const noexcept { return kind_ == kind::stalled; }
  /// The delay of again_after().
  std::optional<duration> delay() const noexcept { return kind_ == kind::again ? std::optional(delay_) : std::nullopt; }
  /// The cause of stalled(), else null.
  const error* cause() const noexcept { return cause_ ? &*cause_ : nullptr; }

 private:
  enum class kind { done, again, stalled };
  explicit outcome(kind k) : kind_(k) {}
  kind kind_;
  duration delay_{};
  std::optional<error> cause_;
};

}  // namespace kubeopera::inline v1::control
