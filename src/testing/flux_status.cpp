// Status patches in Flux's order, and the coroutine of each object.
#include "src/testing/flux_controllers.hpp"
#include "src/testing/sim_meta.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::sim {

using namespace std::chrono_literals;

namespace {

// Reconciling and Ready come first, as Flux sorts them.
int rank_of(std::string_view type) {
  if (type == "Stalled") return 0;
  if (type == "Reconciling") return 1;
  if (type == "Ready") return 2;
  if (type == "FetchFailed") return 3;
  return 4;
}

}  // namespace

task<void> worker_controller::reconcile(const object_key& key) {
  auto& w = workers_[key];
  w.dirty = true;
  if (!w.running) {
    w.running = true;
    w.work = background::start(env.strand, work(key));
  }
  co_return result<void>();
}

asio::awaitable<void> worker_controller::work(object_key key) {
  while (workers_[key].dirty) {
    workers_[key].dirty = false;
    env.loop->forget_timer(*this, key);
    auto again = co_await pass(key);
    auto& w = workers_[key];
    if (again) {
      w.failures = 0;
      if (*again) enqueue_after(key, **again);
      continue;
    }
    if (again.error().code() == errc::cancelled) break;
    env.log.debug("flux object tried again", {{"controller", name()}, {"key", key.str()}, {"error", again.error()}});
    enqueue_after(key, std::min<duration>(20ms * (1 << std::min(w.failures++, 10)), 10s));
  }
  workers_[key].running = false;
}

task<void> worker_controller::stop() {
  for (auto& [key, w] : workers_) w.work.stop();
  for (auto& [key, w] : workers_) KUBEOPERA_CO_CHECK(co_await w.work.join());
  co_return result<void>();
}

flux_status::flux_status(environment& env, const resource_type& type, const object& obj, std::string manager)
    : env_(env), type_(type), manager_(std::move(manager)), obj_(obj) {
  if (const auto* s = json::get_object(obj, {"status"})) rest_ = *s;
  if (const auto* c = json::get_array(obj, {"status", "conditions"})) conditions_ = *c;
  rest_.erase("conditions");
  rest_written_ = rest_;
  conditions_written_ = json::write_canonical(value(conditions_));
}

const object* flux_status::find(std::string_view type) const { return condition_in(conditions_, type); }

bool flux_status::is_true(std::string_view type) const {
  const auto* c = find(type);
  return c && json::get_string(*c, {"status"}) == "True";
}

void flux_status::set(std::string_view type, std::string_view status, std::string_view reason, std::string message) {
  object c;
  std::string since = env_.now();
  if (const auto* old = find(type)) {
    bool same = json::get_string(*old, {"status"}) == status && json::get_string(*old, {"reason"}) == reason &&
                json::get_string(*old, {"message"}) == message;
    if (same) since = std::string(json::get_string(*old, {"lastTransitionTime"}, since));
  }
  c["lastTransitionTime"] = since;
  c["message"] = std::move(message);
  c["observedGeneration"] = generation();
  c["reason"] = reason;
  c["status"] = status;
  c["type"] = type;
  if (auto* old = condition_in(conditions_, type)) {
    *old = std::move(c);
    return;
  }
  auto at = std::find_if(conditions_.begin(), conditions_.end(),
                         [&](const value& v) { return rank_of(json::get_string(v.as_object(), {"type"})) > rank_of(type); });
  conditions_.insert(at, std::move(c));
}

void flux_status::drop(std::string_view type) { erase_condition(conditions_, type); }

task<void> flux_status::write(object status) {
  object body;
  body["status"] = std::move(status);
  auto r = co_await env_.merge(type_, kube::key_of(obj_), json::value(std::move(body)), manager_, "status");
  if (!r) co_return r.error();
  co_return result<void>();
}

object flux_status::changed_rest() const {
  object changed;
  for (const auto& member : rest_) {
    const auto* before = rest_written_.if_contains(member.key());
    if (!before || json::write_canonical(*before) != json::write_canonical(member.value()))
      changed[member.key()] = member.value();
  }
  for (const auto& member : rest_written_) {
    if (!rest_.contains(member.key())) changed[member.key()] = nullptr;
  }
  return changed;
}

task<void> flux_status::patch() {
  if (held_) co_return result<void>();
  auto now = json::write_canonical(value(conditions_));
  if (now != conditions_written_) {
    object status;
    status["conditions"] = conditions_;
    KUBEOPERA_CO_CHECK(co_await write(std::move(status)));
    conditions_written_ = std::move(now);
  }
  auto changed = changed_rest();
  if (!changed.empty()) {
    KUBEOPERA_CO_CHECK(co_await write(std::move(changed)));
    rest_written_ = rest_;
  }
  co_return result<void>();
}

task<void> flux_status::patch_at_once() {
  held_ = false;
  auto status = changed_rest();
  auto now = json::write_canonical(value(conditions_));
  if (now != conditions_written_) status["conditions"] = conditions_;
  if (status.empty()) co_return result<void>();
  KUBEOPERA_CO_CHECK(co_await write(std::move(status)));
  conditions_written_ = std::move(now);
  rest_written_ = rest_;
  co_return result<void>();
}

task<void> flux_status::set_finalizers(json::array finalizers) {
  object body;
  auto& metadata = json::ensure_object(body, "metadata");
  if (finalizers.empty())
    metadata["finalizers"] = nullptr;
  else
    metadata["finalizers"] = std::move(finalizers);
  auto rv = std::string(kube::resource_version_of(obj_));
  auto key = kube::key_of(obj_);
  kube::write_options w;
  w.field_manager = manager_;
  auto r = co_await env_.api->patch(type_, key, kube::patch_kind::merge, json::value(std::move(body)), w);
  if (!r && r.error().code() == errc::not_found) co_return result<void>();
  if (!r) co_return r.error();
  if (!kube::being_deleted(*r)) env_.objects.observe(type_, *r);
  co_return co_await env_.objects.wait_change(type_, key, rv);
}

}  // namespace kubeopera::inline v1::testing::sim
