// The LISTEN connection: reconnects for ever, tells subscribers of notifications and of reconnects.
#include "src/postgres/connection.hpp"
#include "src/postgres/sqlstate.hpp"

#include <kubeopera/core/backoff.hpp>

#include <map>
#include <mutex>

namespace kubeopera::inline v1::postgres {
namespace {

using callback = std::function<void(std::string_view)>;

class listener_impl final : public listener {
 public:
  listener_impl(asio::any_io_executor executor, std::string url, logger& log)
      : executor_(std::move(executor)), url_(std::move(url)), log_(log) {}

  void subscribe(std::string channel, callback on_notify) override {
    {
      std::lock_guard lock(mutex_);
      channels_[std::move(channel)].push_back(std::move(on_notify));
    }
    changed_.notify();
  }

  task<void> run() override {
    backoff pause(std::chrono::milliseconds(100), std::chrono::seconds(5));
    while (true) {
      auto r = co_await serve(pause);
      if (r.error().code() == errc::cancelled) co_return r.error();
      log_.warn("notifications interrupted", {{"error", r.error()}});
      KUBEOPERA_CO_CHECK(co_await sleep_for(pause.next()));
    }
  }

 private:
  // One connection's life. Always ends with an error.
  task<void> serve(backoff& pause) {
    connection_options o;
    o.url = url_;
    o.application_name = "kubeopera listener";
    auto c = co_await connection::open(executor_, std::move(o));
    if (!c) co_return c.error();
    std::map<std::string, std::size_t> told;  // channel -> how many of its subscribers know of this connection
    std::function<void(std::string_view, std::string_view)> on_notify = [this](std::string_view channel,
                                                                               std::string_view payload) {
      for (auto& f : subscribers(channel)) f(payload);
    };
    while (true) {
      auto ticket = changed_.ticket();
      KUBEOPERA_CO_CHECK(co_await listen(**c, told));
      pause.reset();
      auto before = std::chrono::steady_clock::now();
      KUBEOPERA_CO_CHECK(co_await (*c)->wait_notification(changed_, ticket, ping_interval, on_notify));
      if (std::chrono::steady_clock::now() - before < ping_interval) continue;
      // Nothing for a while: is the server still there?
      statement ping("SELECT 1");
      std::vector<const statement*> all{&ping};
      KUBEOPERA_CO_CHECK(co_await (*c)->run(std::move(all)));
    }
  }

  task<void> listen(connection& c, std::map<std::string, std::size_t>& told) {
    std::map<std::string, std::size_t> wanted;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [channel, list] : channels_) wanted[channel] = list.size();
    }
    for (const auto& [channel, count] : wanted) {
      if (!told.contains(channel)) {
        statement st("LISTEN " + quote_identifier(channel));
        std::vector<const statement*> all{&st};
        KUBEOPERA_CO_CHECK(co_await c.run(std::move(all)));
      }
      auto list = subscribers(channel);
      for (std::size_t i = told[channel]; i < count; ++i) list[i]({});
      told[channel] = count;
    }
    co_return result<void>();
  }

  std::vector<callback> subscribers(std::string_view channel) {
    std::lock_guard lock(mutex_);
    auto it = channels_.find(channel);
    return it == channels_.end() ? std::vector<callback>{} : it->second;
  }

  static constexpr std::chrono::seconds ping_interval{20};
  asio::any_io_executor executor_;
  std::string url_;
  logger& log_;
  std::mutex mutex_;
  std::map<std::string, std::vector<callback>, std::less<>> channels_;
  notifier changed_;
};

}  // namespace

std::shared_ptr<listener> make_listener(asio::any_io_executor executor, std::string url, logger& log) {
  return std::make_shared<listener_impl>(std::move(executor), std::move(url), log);
}

}  // namespace kubeopera::inline v1::postgres
