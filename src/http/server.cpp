// Listening, the list of sessions, the sweep over their deadlines, and draining.
#include "src/http/session.hpp"
#include "src/http/tls.hpp"

#include <kubeopera/http/server.hpp>

#include <boost/asio/this_coro.hpp>

#include <atomic>
#include <list>
#include <mutex>

namespace kubeopera::inline v1::http {

namespace {
constexpr std::chrono::milliseconds sweep_interval{100};
error cancelled_error() { return {errc::cancelled, "Cancelled", "the server was stopped"}; }
}  // namespace

struct server::state {
  asio::any_io_executor executor;
  std::shared_ptr<server_context> context = std::make_shared<server_context>();
  std::unique_ptr<listener> listening;
  std::uint16_t port = 0;
  std::mutex mutex;
  std::list<std::shared_ptr<session>> sessions;
  notifier ended;

  std::size_t count() {
    std::lock_guard lock(mutex);
    return sessions.size();
  }
  template <class F>
  void each(F f) {
    std::lock_guard lock(mutex);
    for (auto& s : sessions) f(*s);
  }
  static void admit(const std::shared_ptr<state>& self, std::unique_ptr<byte_stream> stream);
  static asio::awaitable<void> sweep(std::shared_ptr<state> self);
  static asio::awaitable<void> accept_all(std::shared_ptr<state> self);
  static asio::awaitable<void> drain(std::shared_ptr<state> self);
};

void server::state::admit(const std::shared_ptr<state>& self, std::unique_ptr<byte_stream> stream) {
  auto s = std::make_shared<session>(self->context, std::move(stream), self->executor);
  std::list<std::shared_ptr<session>>::iterator at;
  {
    std::lock_guard lock(self->mutex);
    if (self->sessions.size() >= self->context->options.max_connections) return;
    self->sessions.push_front(s);
    at = self->sessions.begin();
  }
  session::start(std::move(s), [self, at] {
    std::shared_ptr<session> last;
    {
      std::lock_guard lock(self->mutex);
      last = std::move(*at);
      self->sessions.erase(at);
    }
    self->ended.notify();
  });
}

asio::awaitable<void> server::state::sweep(std::shared_ptr<state> self) {
  for (;;) {
    auto slept = co_await sleep_for(sweep_interval);
    if (!slept) co_return;
    auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    self->each([now](session& s) { s.tick(now); });
  }
}

// Ends when cancelled.
asio::awaitable<void> server::state::accept_all(std::shared_ptr<state> self) {
  for (;;) {
    auto stream = co_await self->listening->accept();
    if (stream) {
      admit(self, std::move(*stream));
      continue;
    }
    if (stream.error().code() == errc::cancelled) co_return;
    self->context->log->warn("accept failed", {{"error", stream.error()}});
    auto slept = co_await sleep_for(std::chrono::milliseconds(50));
    if (!slept) co_return;
  }
}

asio::awaitable<void> server::state::drain(std::shared_ptr<state> self) {
  self->context->draining = true;
  self->listening->close();
  self->each([](session& s) { s.stop(true); });
  auto end = std::chrono::steady_clock::now() + self->context->options.drain_timeout;
  bool forced = false;
  for (;;) {
    auto ticket = self->ended.ticket();
    if (self->count() == 0) co_return;
    auto left = end - std::chrono::steady_clock::now();
    if (!forced && left <= duration::zero()) {
      forced = true;
      self->each([](session& s) { s.stop(false); });
    }
    auto woken = co_await self->ended.wait_for(ticket, forced ? std::chrono::hours(1) : left);
    if (!woken) co_return;
  }
}

server::server(std::shared_ptr<state> s) : state_(std::move(s)) {}

server::~server() {
  state_->listening->close();
  state_->each([](session& s) { s.stop(false); });
}

result<std::unique_ptr<server>> server::listen(asio::any_io_executor executor, server_options options, handler h, logger& log) {
  auto s = std::make_shared<state>();
  s->executor = executor;
  std::shared_ptr<server_tls_context> tls;
  if (options.tls) {
    KUBEOPERA_TRY(tls, server_tls_context::make(options.tls));
  }
  KUBEOPERA_TRY(s->listening, listener::open(executor, options.address, options.port, std::move(tls)));
  s->port = s->listening->port();
  s->context->options = std::move(options);
  s->context->handle = std::move(h);
  s->context->log = &log;
  return std::unique_ptr<server>(new server(std::move(s)));
}

std::uint16_t server::port() const noexcept { return state_->port; }

std::size_t server::connections() const noexcept { return state_->count(); }

task<void> server::run() {
  auto s = state_;
  auto sweeper = background::start(s->executor, state::sweep(s));
  co_await state::accept_all(s);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
  co_await state::drain(s);
  sweeper.stop();
  co_return cancelled_error();
}

}  // namespace kubeopera::inline v1::http
