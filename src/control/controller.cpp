// The workers of a controller.

#include <kubeopera/control/controller.hpp>
#include <kubeopera/core/wait.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <vector>

namespace kubeopera::inline v1::control {

task<void> component::ready() { co_return result<void>(); }

struct controller::state {
  asio::any_io_executor executor;
  std::string name;
  std::shared_ptr<queue> keys;
  std::shared_ptr<reconciler> step;
  controller_options options;
  clock& clk;
  logger& log;
  metrics* all;
  std::atomic<int> active{0};
  std::atomic<bool> closed{false};
  notifier worker_ended;

  void count(std::string_view outcome_word) {
    if (all)
      all->count("kubeopera_reconcile_total", "Reconcile steps by how they ended",
                 {{"controller", name}, {"result", outcome_word}});
  }
  void report_active(int value) {
    if (all) all->gauge("kubeopera_reconcile_active", "Reconcile steps under way", value, {{"controller", name}});
  }
  void settle(const std::string& key, const result<outcome>& r, bool stopping);
};

void controller::state::settle(const std::string& key, const result<outcome>& r, bool stopping) {
  if (!r) {
    if (stopping && r.error().code() == errc::cancelled) return keys->add(key);  // not the key's fault
    count("error");
    duration least = r.error().retry_after() ? duration(*r.error().retry_after()) : duration::zero();
    auto delay = keys->fail(key, least);
    log.warn("reconcile failed", {{"controller", name},
                                  {"key", key},
                                  {"error", r.error()},
                                  {"failures", static_cast<long long>(keys->failures(key))},
                                  {"again_after_ms", static_cast<long long>(delay / std::chrono::milliseconds(1))}});
    return;
  }
  keys->forget(key);
  if (r->is_stalled()) {
    count("stalled");
    log.error("reconcile stalled", {{"controller", name}, {"key", key}, {"error", *r->cause()}});
  } else if (auto delay = r->delay()) {
    count("again");
    keys->again_after(key, *delay);
  } else {
    count("done");
  }
}

namespace {

error from_exception(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return error(errc::internal, "UnexpectedException", "the reconcile step broke").with_detail(e.what());
  } catch (...) {
    return {errc::internal, "UnexpectedException", "the reconcile step broke"};
  }
}

task<outcome> guarded_step(std::shared_ptr<reconciler> step, std::string key, duration limit) {
  std::exception_ptr failure;
  try {
    auto body = step->reconcile(key);
    co_return co_await with_deadline<outcome>(limit, std::move(body));
  } catch (...) {
    failure = std::current_exception();
  }
  co_return from_exception(failure);
}

template <class State>
asio::awaitable<void> work(std::shared_ptr<State> s) {
  while (true) {
    auto key = co_await s->keys->take();
    if (!key) {
      if (key.error().code() != errc::cancelled) s->closed = true;
      break;
    }
    s->report_active(++s->active);
    auto began = s->clk.steady();
    auto r = co_await guarded_step(s->step, *key, s->options.step_deadline);
    if (s->all)
      s->all->observe("kubeopera_reconcile_seconds", "Time of a reconcile step",
                      std::chrono::duration<double>(s->clk.steady() - began).count(), {{"controller", s->name}});
    s->report_active(--s->active);
    s->settle(*key, r, co_await kubeopera::detail::cancelled());
    s->keys->finish(*key);
  }
  s->worker_ended.notify();
}

asio::awaitable<void> join_all(std::vector<background>& workers) {
  for (auto& w : workers) {
    auto r = co_await w.join();
    (void)r.has_value();  // join() fails only where the waiting coroutine is cancelled; this one never is
  }
}

}  // namespace

controller::controller(asio::any_io_executor executor, std::string name, std::shared_ptr<queue> keys,
                       std::shared_ptr<reconciler> step, controller_options options, clock& clk, logger& log, metrics* all)
    : state_(new state{std::move(executor),
                       std::move(name),
                       std::move(keys),
                       std::move(step),
                       std::move(options),
                       clk,
                       log,
                       all,
                       {},
                       {},
                       {}}) {}

controller::~controller() = default;

std::string controller::name() const { return state_->name; }

queue& controller::keys() noexcept { return *state_->keys; }

task<void> controller::run() {
  auto s = state_;
  s->log.info("controller started", {{"controller", s->name}, {"workers", static_cast<long long>(s->options.workers)}});
  auto ticket = s->worker_ended.ticket();
  std::vector<background> workers;
  for (int i = 0; i < std::max(1, s->options.workers); ++i) workers.push_back(background::start(s->executor, work(s)));
  // A worker ends only when the queue is closed or when it is stopped.
  auto ended = co_await s->worker_ended.wait(ticket);
  for (auto& w : workers) w.stop();
  co_await uncancelled(join_all(workers));
  s->log.info("controller stopped", {{"controller", s->name}});
  if (s->closed) co_return error(errc::unavailable, "QueueClosed", "the work queue of " + s->name + " is closed");
  if (!ended) co_return ended.error();
  co_return error(errc::cancelled, "Cancelled", "the controller " + s->name + " was stopped");
}

}  // namespace kubeopera::inline v1::control
