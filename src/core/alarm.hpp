// One wait with a limit that can be cancelled: a steady_timer, or a wait that the context's timekeeper ends.
#pragma once

#include <kubeopera/core/timekeeper.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <optional>

namespace kubeopera::inline v1::detail {

/// The timekeeper of an executor's context, or null: the machine's timers.
timekeeper* timekeeper_of(const asio::any_io_executor& executor);

/// One start() at a time. Thread safety: none, but cancel() from any thread where a steady_timer allows it.
class alarm {
 public:
  alarm(const asio::any_io_executor& executor, duration time)
      : executor_(executor), time_(time), keeper_(timekeeper_of(executor)) {
    if (!keeper_) timer_.emplace(executor, time);
  }
  alarm(const alarm&) = delete;
  alarm& operator=(const alarm&) = delete;

  void expire_at_once() {
    time_ = duration::zero();
    if (timer_) timer_->expires_after(duration::zero());
  }

  /// Ends the wait under way with operation_aborted.
  void cancel() {
    if (timer_)
      timer_->cancel();
    else
      cut(*keeper_, number_);
  }

  /// handler(error_code): no error when the time is over. It is cancelled through its own slot, too.
  template <class Handler>
  void start(Handler handler) {
    if (timer_) return timer_->async_wait(std::move(handler));
    auto slot = asio::get_associated_cancellation_slot(handler);
    number_ = keeper_->keep(time_, std::make_unique<held<Handler>>(std::move(handler), executor_));
    if (slot.is_connected()) slot.assign([keeper = keeper_, number = number_](asio::cancellation_type) { cut(*keeper, number); });
  }

  template <class Token>
  auto async_wait(Token&& token) {
    return asio::async_initiate<Token, void(boost::system::error_code)>([this](auto handler) { this->start(std::move(handler)); },
                                                                        token);
  }

 private:
  template <class Handler>
  struct held final : timekeeper::wait {
    held(Handler h, asio::any_io_executor e) : handler(std::move(h)), executor(std::move(e)) {}
    void end(bool time_is_over) override {
      boost::system::error_code ec;
      if (!time_is_over) ec = asio::error::operation_aborted;
      auto where = asio::get_associated_executor(handler, executor);
      asio::post(where, [h = std::move(handler), ec]() mutable { std::move(h)(ec); });
    }
    Handler handler;
    asio::any_io_executor executor;
  };

  static void cut(timekeeper& keeper, std::uint64_t number) {
    if (auto w = keeper.take(number)) w->end(false);
  }

  asio::any_io_executor executor_;
  duration time_;
  timekeeper* keeper_;
  std::optional<asio::steady_timer> timer_;
  std::uint64_t number_ = 0;
};

}  // namespace kubeopera::inline v1::detail
