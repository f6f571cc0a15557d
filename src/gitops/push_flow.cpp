// The state machine of a push: bounded, never forced, never doubled.
#include "src/gitops/push_flow.hpp"

namespace kubeopera::inline v1::gitops::detail {

namespace {

// What it means when attempts are used up.
error worn_out(const error& last) {
  if (last.code() != errc::conflict) return last;
  return error(errc::unavailable, "Contention", "the branch kept moving; all attempts are used up").with_detail(to_string(last));
}

}  // namespace

void push_flow::refreshed(const result<bool>& ours_found) {
  if (!ours_found) {
    if (last_look_) return fail(*last_);
    if (!ours_found.error().transient() && ours_found.error().code() != errc::conflict) return fail(ours_found.error());
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
  in_doubt_ |= e.transient();
  bool final = e.code() != errc::conflict && !e.transient();
  if (!final && attempts_left_ > 1) return again(e);
  if (in_doubt_) return look_once_more(final ? e : worn_out(e));
  final ? fail(e) : again(e);
}

void push_flow::look_once_more(error why) {
  last_look_ = true;
  last_ = std::move(why);
  at_ = step::refresh;
}

void push_flow::paused() { at_ = step::refresh; }

void push_flow::again(const error& why) {
  if (--attempts_left_ <= 0) return fail(worn_out(why));
  asked_to_wait_ = why.retry_after().value_or(std::chrono::seconds(0));
  at_ = step::pause;
}

void push_flow::fail(error why) {
  failure_ = std::move(why);
  at_ = step::failed;
}

}  // namespace kubeopera::inline v1::gitops::detail
