// The Asio machinery behind core/wait.hpp.
#include <kubeopera/core/wait.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>

namespace kubeopera::inline v1 {
namespace {

asio::awaitable<void> quiet(asio::awaitable<void> body) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await std::move(body);
}

}  // namespace

asio::awaitable<void> first_of(asio::awaitable<void> a, asio::awaitable<void> b) {
  auto executor = co_await asio::this_coro::executor;
  auto op_a = asio::co_spawn(executor, quiet(std::move(a)), asio::deferred);
  auto op_b = asio::co_spawn(executor, quiet(std::move(b)), asio::deferred);
  auto group = asio::experimental::make_parallel_group(std::move(op_a), std::move(op_b));
  auto [order, failed_a, failed_b] = co_await group.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (failed_a) std::rethrow_exception(failed_a);
  if (failed_b) std::rethrow_exception(failed_b);
}

asio::awaitable<void> uncancelled(asio::awaitable<void> body) {
  auto executor = co_await asio::this_coro::executor;
  co_await asio::co_spawn(executor, quiet(std::move(body)),
                          asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
}

}  // namespace kubeopera::inline v1
