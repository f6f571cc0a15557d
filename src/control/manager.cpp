// Ordered start, watch and reverse stop of components.

#include <kubeopera/control/manager.hpp>
#include <kubeopera/core/wait.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

namespace kubeopera::inline v1::control {
namespace {

constexpr std::array all_groups = {group::stores, group::caches, group::leader_elected, group::http};

class functions final : public component {
 public:
  functions(std::string name, std::function<task<void>()> run, std::function<task<void>()> ready)
      : name_(std::move(name)), run_(std::move(run)), ready_(std::move(ready)) {}
  std::string name() const override { return name_; }
  task<void> run() override { return run_(); }
  task<void> ready() override { return ready_ ? ready_() : component::ready(); }

 private:
  std::string name_;
  std::function<task<void>()> run_, ready_;
};

struct part {
  group where;
  std::shared_ptr<component> it;
  std::optional<background> running;
};

}  // namespace

struct manager::state {
  asio::any_io_executor executor;
  manager_options options;
  logger& log;
  std::vector<part> parts;
  std::mutex mutex;
  std::optional<error> failure;
  std::atomic<bool> stopping{false}, asked{false}, ready{false};
  notifier changed;

  state(asio::any_io_executor e, manager_options o, logger& l) : executor(std::move(e)), options(std::move(o)), log(l) {}

  void fail(const std::string& name, error e) {
    {
      std::lock_guard lock(mutex);
      log.error("component failed", {{"component", name}, {"error", e}});
      if (!failure) failure = std::move(e).prefixed(name);
    }
    changed.notify();
  }
  bool failed() {
    std::lock_guard lock(mutex);
    return failure.has_value();
  }
};

namespace {

result<void> exception_error(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return error(errc::internal, "UnexpectedException", "it broke").with_detail(e.what());
  } catch (...) {
    return error(errc::internal, "UnexpectedException", "it broke");
  }
}

task<void> guarded_run(std::shared_ptr<component> it, std::function<task<void>()> gate) {
  std::exception_ptr failure;
  try {
    if (gate) KUBEOPERA_CO_CHECK(co_await gate());
    co_return co_await it->run();
  } catch (...) {
    failure = std::current_exception();
  }
  co_return exception_error(failure);
}

template <class State>
asio::awaitable<void> run_component(std::shared_ptr<State> s, std::shared_ptr<component> it, std::function<task<void>()> gate) {
  auto r = co_await guarded_run(it, std::move(gate));
  if (s->stopping || r) co_return;
  s->fail(it->name(), r.error());
}

template <class State>
asio::awaitable<void> await_ready(std::shared_ptr<State> s, group where, std::atomic<bool>& done) {
  for (auto& p : s->parts) {
    if (p.where != where) continue;
    auto body = p.it->ready();
    auto r = co_await with_deadline<void>(s->options.ready_limit, std::move(body));
    if (r) continue;
    if (r.error().code() != errc::cancelled) s->fail(p.it->name(), std::move(r).error().prefixed("not ready"));
    co_return;
  }
  done = true;
}

template <class State>
asio::awaitable<void> await_end(std::shared_ptr<State> s) {
  while (!s->asked && !s->failed()) {
    auto ticket = s->changed.ticket();
    if (s->asked || s->failed()) break;
    auto r = co_await s->changed.wait(ticket);
    if (!r) break;
  }
}

// Starts the groups in order. False when something ended it before all were ready.
template <class State>
asio::awaitable<bool> start_groups(std::shared_ptr<State> s) {
  for (auto where : all_groups) {
    bool elected = where == group::leader_elected && s->options.leader_gate;
    for (auto& p : s->parts) {
      if (p.where != where) continue;
      std::function<task<void>()> gate;
      if (elected) gate = s->options.leader_gate;
      p.running = background::start(s->executor, run_component(s, p.it, std::move(gate)));
    }
    if (elected) continue;
    std::atomic<bool> done{false};
    co_await first_of(await_ready(s, where, done), await_end(s));
    if (!done || s->asked || s->failed()) co_return false;
  }
  co_return true;
}

template <class State>
task<void> join_group(std::shared_ptr<State> s, group where) {
  for (auto& p : s->parts)
    if (p.where == where && p.running) KUBEOPERA_CO_CHECK(co_await p.running->join());
  co_return result<void>();
}

template <class State>
asio::awaitable<void> stop_groups(std::shared_ptr<State> s, std::string& stuck) {
  for (auto it = all_groups.rbegin(); it != all_groups.rend(); ++it) {
    for (auto& p : s->parts)
      if (p.where == *it && p.running) p.running->stop();
    auto body = join_group(s, *it);
    auto joined = co_await with_deadline<void>(s->options.drain_limit, std::move(body));
    if (joined) continue;
    for (auto& p : s->parts) {
      if (p.where != *it || !p.running || p.running->finished()) continue;
      s->log.error("component does not stop", {{"component", p.it->name()}, {"error", joined.error()}});
      stuck += (stuck.empty() ? "" : ", ") + p.it->name();
    }
  }
}

}  // namespace

manager::manager(asio::any_io_executor executor, manager_options options, logger& log)
    : state_(std::make_shared<state>(std::move(executor), std::move(options), log)) {}

manager::~manager() { stop(); }

void manager::add(group where, std::shared_ptr<component> it) { state_->parts.push_back({where, std::move(it), std::nullopt}); }

void manager::add(group where, std::string name, std::function<task<void>()> run, std::function<task<void>()> ready) {
  add(where, std::make_shared<functions>(std::move(name), std::move(run), std::move(ready)));
}

task<void> manager::run() {
  auto s = state_;
  bool started = co_await start_groups(s);
  if (started) {
    s->ready = true;
    co_await await_end(s);
  }
  s->ready = false;
  s->stopping = true;
  bool cancelled = co_await kubeopera::detail::cancelled();
  std::string stuck;
  co_await uncancelled(stop_groups(s, stuck));
  {
    std::lock_guard lock(s->mutex);
    if (s->failure) co_return *s->failure;
  }
  if (!stuck.empty()) co_return error(errc::deadline_exceeded, "DrainLimit", "did not stop in time: " + stuck);
  if (cancelled) co_return error(errc::cancelled, "Cancelled", "the manager was cancelled");
  co_return result<void>();
}

void manager::stop() noexcept {
  state_->asked = true;
  state_->changed.notify();
}

bool manager::ready() const noexcept { return state_->ready; }

}  // namespace kubeopera::inline v1::control
