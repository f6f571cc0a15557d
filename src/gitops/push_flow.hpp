// How one batch gets onto the branch: the decisions only. The committer does what next() says and tells how it went.
#pragma once

#include <kubeopera/core/error.hpp>
#include <kubeopera/core/result.hpp>

#include <chrono>
#include <optional>

namespace kubeopera::inline v1::gitops::detail {

class push_flow {
 public:
  enum class step {
    refresh,  ///< ask the remote for the tip, fetch it, look whether a commit of ours is in it
    build,    ///< make the commit on the tip that is known
    push,     ///< send it
    pause,    ///< wait with jitter
    done,     ///< see outcome()
    failed,   ///< see failure()
  };
  enum class outcome_kind { pushed, found, unchanged };

  /// tip_known: a tip is at hand and probably right, so that the first attempt needs no question.
  push_flow(int max_attempts, bool tip_known) : attempts_left_(max_attempts), at_(tip_known ? step::build : step::refresh) {}

  step next() const noexcept { return at_; }
  /// ours_found: the tip contains a commit that this batch pushed earlier with an unknown outcome.
  void refreshed(const result<bool>& ours_found);
  /// differs: there is something to commit.
  void built(const result<bool>& differs);
  void pushed(const result<void>& answer);
  void paused();

  /// In a pause: the least that the server asked to wait.
  std::chrono::seconds asked_to_wait() const noexcept { return asked_to_wait_; }
  outcome_kind outcome() const noexcept { return outcome_; }
  const error& failure() const noexcept { return *failure_; }

 private:
  void again(const error& why);
  void look_once_more(error why);
  void fail(error why);

  int attempts_left_;
  step at_;
  bool tip_fresh_ = false;  // the tip was asked for in this flow
  bool in_doubt_ = false;   // a push was sent whose outcome is not known
  bool last_look_ = false;  // it will fail, unless a push in doubt has landed
  std::chrono::seconds asked_to_wait_{0};
  outcome_kind outcome_ = outcome_kind::pushed;
  std::optional<error> failure_, last_;
};

}  // namespace kubeopera::inline v1::gitops::detail
