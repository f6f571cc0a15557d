// The state machine of a push: bounded, never forced, never doubled.
#include "src/gitops/push_flow.hpp"

namespace kubeopera::inline v1::gitops::detail {

void push_flow::refreshed(const result<bool>& ours_found) {
  if (!ours_found) {
    if (!ours_found.error().transient() && ours_found.error().code() != errc::conflict) return fail(ours_found.error());
    if (last_look_) return fail(*last_);
    return again(ours_found.error());
  }
  tip_fresh_ = true;
  if (*ours_found) {
    outcome_ = outcome_kind::found;
    at_ = step::done;
  } else if (last_look_) {
    fail(*last_);
  } else {
    at_ = step::build;
  }
}

void push_flow::built(const result<bool>& differs) {
  if (!differs) return fail(differs.error());
  if (*differs) {
    at_ = step::push;
  } else if (tip_fresh_) {
    outcome_ = outcome_kind::unchanged;
    at_ = step::done;
  } else {
    at_ = step::refresh;  // equal to what was known; somebody may have changed it since
  }
}

void push_flow::pushed(const result<void>& answer) {
  if (answer) {
    outcome_ = outcome_kind::pushed;
    at_ = step::done;
    return;
  }
  const auto& e = answer.error();
  if (e.code() != errc::conflict && !e.transient()) return fail(e);
  if (attempts_left_ <= 1 && e.transient()) {
    last_look_ = true;
    last_ = e;
    at_ = step::refresh;
    return;
  }
  again(e);
}

void push_flow::paused() { at_ = step::refresh; }

void push_flow::again(const error& why) {
  if (--attempts_left_ <= 0) {
    if (why.code() == errc::conflict)
      return fail(
          error(errc::unavailable, "Contention", "the branch kept moving; all attempts are used up").with_detail(to_string(why)));
    return fail(why);
  }
  at_ = step::pause;
}

void push_flow::fail(error why) {
  failure_ = std::move(why);
  at_ = step::failed;
}

}  // namespace kubeopera::inline v1::gitops::detail
