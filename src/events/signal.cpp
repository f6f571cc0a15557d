// One NOTIFY for any number of commits.
#include <kubeopera/core/id.hpp>
#include <kubeopera/events/outbox.hpp>

namespace kubeopera::inline v1::events {
namespace {

class signal_impl final : public outbox_signal {
 public:
  signal_impl(std::shared_ptr<postgres::pool> pool, std::string channel, logger& log)
      : pool_(std::move(pool)), channel_(std::move(channel)), log_(log) {}

  void signal() noexcept override { signalled_.notify(); }

  bool own(std::string_view payload) const noexcept override { return payload.starts_with(name_); }

  task<void> run() override {
    auto ticket = first_;  // signals before the start count
    while (true) {
      KUBEOPERA_CO_CHECK(co_await signalled_.wait(ticket));
      ticket = signalled_.ticket();  // what comes from here on needs another NOTIFY
      postgres::statement st("select pg_notify($1, $2)", postgres::params{channel_, name_ + std::to_string(++sent_)});
      auto sent = co_await pool_->query(st);
      if (sent) continue;
      if (sent.error().code() == errc::cancelled) co_return sent.error();
      log_.warn("relays of other processes could not be woken", {{"channel", channel_}, {"error", sent.error()}});
    }
  }

 private:
  std::shared_ptr<postgres::pool> pool_;
  std::string channel_;
  logger& log_;
  const std::string name_ = make_uuid_v4() + ":";
  std::uint64_t sent_ = 0;
  notifier signalled_;
  const std::uint64_t first_ = signalled_.ticket();
};

}  // namespace

std::shared_ptr<outbox_signal> make_outbox_signal(std::shared_ptr<postgres::pool> pool, std::string channel, logger& log) {
  return std::make_shared<signal_impl>(std::move(pool), std::move(channel), log);
}

}  // namespace kubeopera::inline v1::events
