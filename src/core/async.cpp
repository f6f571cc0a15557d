// The Asio machinery behind core/async.hpp, instantiated once.
#include "src/core/alarm.hpp"

#include <kubeopera/core/async.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <atomic>
#include <exception>
#include <list>
#include <mutex>

namespace kubeopera::inline v1 {

namespace {

error cancelled_error() { return {errc::cancelled, "Cancelled", "the operation was cancelled"}; }

asio::awaitable<bool> already_cancelled() {
  auto state = co_await asio::this_coro::cancellation_state;
  co_return state.cancelled() != asio::cancellation_type::none;
}

// Every coroutine of ours reports cancellation as an error value, never as an exception.
asio::awaitable<void> quiet(asio::awaitable<void> body) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await std::move(body);
}

}  // namespace

asio::awaitable<asio::any_io_executor> current_executor() { co_return co_await asio::this_coro::executor; }

task<void> sleep_for(duration time) {
  auto executor = co_await asio::this_coro::executor;
  if (co_await already_cancelled()) co_return cancelled_error();
  detail::alarm timer(executor, time);
  boost::system::error_code ec;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return cancelled_error();
  co_return result<void>();
}

namespace detail {

asio::awaitable<bool> cancelled() { return already_cancelled(); }

asio::awaitable<bool> run_until(duration time, asio::awaitable<void> op) {
  auto executor = co_await asio::this_coro::executor;
  // A cancellation that came before this call would never reach the new coroutine: its time is over at once.
  if (co_await already_cancelled()) time = duration::zero();
  alarm timer(executor, time);
  auto op_handler = asio::co_spawn(executor, quiet(std::move(op)), asio::deferred);
  auto wait_handler = timer.async_wait(asio::deferred);
  auto group = asio::experimental::make_parallel_group(std::move(op_handler), std::move(wait_handler));
  auto [order, op_exception, timer_ec] = co_await group.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (op_exception) std::rethrow_exception(op_exception);
  co_return order[0] == 0;
}

}  // namespace detail

void spawn(asio::any_io_executor executor, asio::awaitable<void> body, std::function<void(std::exception_ptr)> on_exception) {
  asio::co_spawn(asio::make_strand(executor), quiet(std::move(body)),
                 [on_exception = std::move(on_exception)](std::exception_ptr e) {
                   if (!e) return;
                   if (on_exception)
                     on_exception(e);
                   else
                     std::terminate();
                 });
}

struct background::state {
  asio::any_io_executor strand;
  asio::cancellation_signal cancel;
  std::atomic<bool> done{false};
  notifier ended;
  std::exception_ptr failure;
};

background& background::operator=(background&& other) noexcept {
  if (this != &other) {
    stop();
    state_ = std::move(other.state_);
  }
  return *this;
}

background::~background() { stop(); }

background background::start(asio::any_io_executor executor, asio::awaitable<void> body) {
  background b;
  b.state_ = std::make_shared<state>();
  b.state_->strand = asio::make_strand(executor);
  auto s = b.state_;
  asio::co_spawn(s->strand, quiet(std::move(body)), asio::bind_cancellation_slot(s->cancel.slot(), [s](std::exception_ptr e) {
                   s->failure = e;
                   s->done = true;
                   s->ended.notify();
                 }));
  return b;
}

void background::stop() noexcept {
  if (!state_ || state_->done) return;
  auto s = state_;
  asio::dispatch(s->strand, [s] {
    if (!s->done) s->cancel.emit(asio::cancellation_type::terminal);
  });
}

bool background::finished() const noexcept { return !state_ || state_->done; }

task<void> background::join() {
  auto s = state_;
  while (s) {
    auto ticket = s->ended.ticket();
    if (s->done) break;
    auto r = co_await s->ended.wait(ticket);
    if (!r) co_return r.error();
  }
  if (s && s->failure) std::rethrow_exception(s->failure);
  co_return result<void>();
}

// Waiters are timers that notify() makes fire. A waiter's timer is started and cancelled under the mutex.
struct notifier::state {
  std::mutex mutex;
  std::atomic<std::uint64_t> generation{0};
  std::list<detail::alarm*> waiters;
};

namespace {

// A timer that is in the list while it waits, and no longer: also where its coroutine is destroyed without being resumed.
template <class State>
struct listed_alarm {
  listed_alarm(std::shared_ptr<State> s, const asio::any_io_executor& executor, duration time)
      : owner(std::move(s)), timer(executor, time) {}
  listed_alarm(const listed_alarm&) = delete;
  listed_alarm& operator=(const listed_alarm&) = delete;
  ~listed_alarm() {
    std::lock_guard lock(owner->mutex);
    owner->waiters.remove(&timer);
  }
  std::shared_ptr<State> owner;
  detail::alarm timer;
};

}  // namespace

notifier::notifier() : state_(std::make_shared<state>()) {}
notifier::~notifier() = default;

std::uint64_t notifier::ticket() const noexcept { return state_->generation.load(); }

void notifier::notify() noexcept {
  std::lock_guard lock(state_->mutex);
  ++state_->generation;
  for (auto* timer : state_->waiters) timer->cancel();
  state_->waiters.clear();
}

task<void> notifier::wait(std::uint64_t ticket) {
  auto r = co_await wait_for(ticket, std::chrono::hours(24 * 365));
  if (!r) co_return r.error();
  co_return result<void>();
}

task<bool> notifier::wait_for(std::uint64_t ticket, duration time) {
  auto s = state_;
  auto executor = co_await asio::this_coro::executor;
  if (s->generation.load() != ticket) co_return true;
  if (co_await already_cancelled()) co_return cancelled_error();
  {
    listed_alarm waiter(s, executor, time);
    boost::system::error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    auto start = [s, ticket, &timer = waiter.timer](auto handler) {
      std::lock_guard lock(s->mutex);
      if (s->generation.load() != ticket)
        timer.expire_at_once();
      else
        s->waiters.push_back(&timer);
      timer.start(std::move(handler));
    };
    co_await asio::async_initiate<decltype(token), void(boost::system::error_code)>(std::move(start), token);
  }
  if (s->generation.load() != ticket) co_return true;
  if (co_await already_cancelled()) co_return cancelled_error();
  co_return false;
}

struct offload::state {
  asio::thread_pool pool;
  explicit state(unsigned threads) : pool(threads) {}
};

offload::offload(unsigned threads) : state_(std::make_unique<state>(threads)) {}
offload::~offload() { state_->pool.join(); }

asio::awaitable<void> offload::run_job(std::function<void()> job) {
  std::exception_ptr failure;
  auto executor = co_await asio::this_coro::executor;
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
      [&](auto handler) {
        auto work = asio::prefer(executor, asio::execution::outstanding_work.tracked);
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        asio::post(state_->pool, [&job, &failure, shared, work] {
          try {
            job();
          } catch (...) {
            failure = std::current_exception();
          }
          asio::post(work, [shared] { (*shared)(); });
        });
      },
      asio::use_awaitable);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace kubeopera::inline v1
