// The work queue: state machine and awaitable shell.

#include <kubeopera/control/queue.hpp>
#include <kubeopera/core/wait.hpp>

#include <algorithm>

namespace kubeopera::inline v1::control {

namespace detail {

void schedule::put(const std::string& key, steady_time due) {
  auto [it, fresh] = by_key_.emplace(key, due);
  if (!fresh) {
    if (it->second <= due) return;
    by_time_.erase({it->second, key});
    it->second = due;
  }
  by_time_.emplace(due, key);
}

void schedule::erase(const std::string& key) {
  auto it = by_key_.find(key);
  if (it == by_key_.end()) return;
  by_time_.erase({it->second, key});
  by_key_.erase(it);
}

std::optional<steady_time> schedule::next() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

std::optional<std::string> schedule::pop(steady_time now) {
  if (by_time_.empty() || by_time_.begin()->first > now) return std::nullopt;
  std::string key = by_time_.begin()->second;
  by_key_.erase(key);
  by_time_.erase(by_time_.begin());
  return key;
}

}  // namespace detail

bool queue_state::add(const std::string& key, steady_time now) {
  if (!dirty_.emplace(key, now).second) return false;
  if (!in_work_.contains(key)) waiting_.push_back(key);
  return true;
}

void queue_state::add_at(const std::string& key, steady_time due) { added_.put(key, due); }

void queue_state::again_at(const std::string& key, steady_time due) { again_.put(key, due); }

duration queue_state::fail(const std::string& key, steady_time now, duration least) {
  int count = ++failures_[key];
  duration ceiling = options_.first_delay;
  for (int i = 1; i < count && ceiling < options_.max_delay; ++i) ceiling *= 2;
  ceiling = std::max(duration(2), std::min(ceiling, options_.max_delay));
  auto half = static_cast<std::uint64_t>(ceiling.count() / 2);
  duration delay = std::max(least, ceiling - duration(static_cast<duration::rep>(options_.random() % half)));
  again_at(key, now + delay);
  return delay;
}

void queue_state::promote(steady_time now) {
  while (auto key = added_.pop(now)) add(*key, now);
  while (auto key = again_.pop(now)) add(*key, now);
}

std::optional<queue_state::work> queue_state::take(steady_time now) {
  promote(now);
  if (waiting_.empty()) return std::nullopt;
  std::string key = std::move(waiting_.front());
  waiting_.pop_front();
  auto it = dirty_.find(key);
  duration waited = now - it->second;
  dirty_.erase(it);
  in_work_.insert(key);
  again_.erase(key);
  return work{std::move(key), waited};
}

bool queue_state::finish(const std::string& key, steady_time now) {
  promote(now);
  in_work_.erase(key);
  if (!dirty_.contains(key)) return false;
  waiting_.push_back(key);
  return true;
}

std::optional<steady_time> queue_state::next_due() const {
  auto a = added_.next(), b = again_.next();
  if (a && b) return std::min(*a, *b);
  return a ? a : b;
}

int queue_state::failures(const std::string& key) const {
  auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

namespace {

double in_seconds(duration d) { return std::chrono::duration<double>(d).count(); }

asio::awaitable<void> wait_changed(notifier& changed, std::uint64_t ticket) {
  // Cancellation is looked at by the caller.
  auto r = co_await changed.wait(ticket);
  (void)r.has_value();
}

asio::awaitable<void> wait_due(clock& clk, duration time) {
  auto r = co_await clk.sleep(time);
  (void)r.has_value();
}

}  // namespace

queue::queue(std::string name, queue_options options, clock& clk, metrics* all)
    : name_(std::move(name)), clock_(clk), metrics_(all), state_(std::move(options)) {}

void queue::report(std::size_t depth, std::size_t in_work) {
  if (!metrics_) return;
  metrics_->gauge("kubeopera_workqueue_depth", "Keys that wait for a worker", static_cast<double>(depth), {{"name", name_}});
  metrics_->gauge("kubeopera_workqueue_in_work", "Keys that are worked on", static_cast<double>(in_work), {{"name", name_}});
}

void queue::add(const std::string& key) {
  {
    std::lock_guard lock(mutex_);
    if (closed_ || !state_.add(key, clock_.steady())) return;
    if (metrics_) metrics_->count("kubeopera_workqueue_adds_total", "Keys added to the queue", {{"name", name_}});
    report(state_.depth(), state_.in_work());
  }
  changed_.notify();
}

void queue::add_after(const std::string& key, duration delay) {
  if (delay <= duration::zero()) return add(key);
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    state_.add_at(key, clock_.steady() + delay);
  }
  changed_.notify();
}

void queue::again_after(const std::string& key, duration delay) {
  if (delay <= duration::zero()) return add(key);
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    state_.again_at(key, clock_.steady() + delay);
  }
  changed_.notify();
}

duration queue::fail(const std::string& key, duration least) {
  duration delay;
  {
    std::lock_guard lock(mutex_);
    delay = state_.fail(key, clock_.steady(), least);
    if (metrics_) metrics_->count("kubeopera_workqueue_retries_total", "Keys that come back after a failure", {{"name", name_}});
  }
  changed_.notify();
  return delay;
}

void queue::forget(const std::string& key) {
  std::lock_guard lock(mutex_);
  state_.forget(key);
}

task<std::string> queue::take() {
  while (true) {
    if (co_await kubeopera::detail::cancelled()) co_return error(errc::cancelled, "Cancelled", "the wait for work was cancelled");
    auto ticket = changed_.ticket();
    std::optional<queue_state::work> next;
    std::optional<steady_time> due;
    auto now = clock_.steady();
    {
      std::lock_guard lock(mutex_);
      if (closed_) co_return error(errc::unavailable, "QueueClosed", "the work queue " + name_ + " is closed");
      next = state_.take(now);
      due = state_.next_due();
      if (next) {
        started_[next->key] = now;
        report(state_.depth(), state_.in_work());
      }
    }
    if (next) {
      if (metrics_)
        metrics_->observe("kubeopera_workqueue_queue_duration_seconds", "Time a key waited for a worker",
                          in_seconds(next->waited), {{"name", name_}});
      co_return std::move(next->key);
    }
    if (due) {
      co_await first_of(wait_changed(changed_, ticket), wait_due(clock_, *due - now));
    } else {
      co_await wait_changed(changed_, ticket);
    }
  }
}

void queue::finish(const std::string& key) {
  bool again;
  {
    std::lock_guard lock(mutex_);
    auto now = clock_.steady();
    if (auto it = started_.find(key); it != started_.end()) {
      if (metrics_)
        metrics_->observe("kubeopera_workqueue_work_duration_seconds", "Time a key was worked on", in_seconds(now - it->second),
                          {{"name", name_}});
      started_.erase(it);
    }
    again = state_.finish(key, now);
    report(state_.depth(), state_.in_work());
  }
  if (again) changed_.notify();
}

void queue::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify();
}

std::size_t queue::depth() const {
  std::lock_guard lock(mutex_);
  return state_.depth();
}

std::size_t queue::delayed() const {
  std::lock_guard lock(mutex_);
  return state_.delayed();
}

int queue::failures(const std::string& key) const {
  std::lock_guard lock(mutex_);
  return state_.failures(key);
}

}  // namespace kubeopera::inline v1::control
