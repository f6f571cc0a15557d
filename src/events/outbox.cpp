// The relay: claiming, delivering and marking outbox rows. The SQL is in outbox_table.cpp.
#include "src/events/relay_rules.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/core/wait.hpp>
#include <kubeopera/events/outbox_table.hpp>

#include <mutex>
#include <set>
#include <vector>

namespace kubeopera::inline v1::events {

namespace {

constexpr std::chrono::seconds depth_interval{5};

struct relay_state {
  std::shared_ptr<outbox_table> table;
  outbox_sink sink;
  relay_options options;
  clock* clk;
  logger* log;
  metrics* stats;
  std::string token = make_uuid_v4();
  std::mutex mutex;
  std::set<std::int64_t> in_work;  // rows whose delivery has not ended; only these keep their claims
  notifier changed;                // rows were added, or a delivery has ended

  void count(const char* name, const char* help, const outbox_row& row) {
    if (stats) stats->count(name, help, {{"topic", row.topic}});
  }
  void begin(std::int64_t seq) {
    std::lock_guard lock(mutex);
    in_work.insert(seq);
    report();
  }
  void end(std::int64_t seq) {
    std::lock_guard lock(mutex);
    in_work.erase(seq);
    report();
  }
  std::vector<std::int64_t> under_way() {
    std::lock_guard lock(mutex);
    return {in_work.begin(), in_work.end()};
  }
  void report() {
    if (stats) stats->gauge("kubeopera_outbox_in_work", "Outbox deliveries under way", static_cast<double>(in_work.size()));
  }
};

void tell(relay_state& s, const outbox_row& row, const decision& d, const result<void>& outcome) {
  if (d.what == verdict::done) return s.count("kubeopera_outbox_delivered_total", "Outbox rows delivered", row);
  bool dead = d.what == verdict::dead;
  s.log->log(dead ? level::error : level::warn, dead ? "outbox row is a dead letter" : "outbox delivery failed",
             {{"id", row.id}, {"aggregate", row.aggregate}, {"topic", row.topic}, {"error", outcome.error()}});
  if (!dead) return s.count("kubeopera_outbox_retries_total", "Outbox deliveries that failed and are tried again", row);
  s.count("kubeopera_outbox_dead_total", "Outbox rows given up", row);
  if (s.options.on_dead) s.options.on_dead(row, outcome.error());
}

task<void> mark(relay_state& s, const outbox_row& row, const result<void>& outcome) {
  auto d = decide(outcome, row.attempts, s.options, s.options.random());
  outbox_mark m;
  m.what = d.what;
  m.delay = d.delay;
  if (!outcome) m.why = to_string(outcome.error());
  KUBEOPERA_CO_TRY(bool ours, co_await s.table->mark(row, s.token, m));
  if (ours) {
    tell(s, row, d, outcome);
  } else {
    s.count("kubeopera_outbox_fenced_total", "Outbox deliveries whose row another relay had taken over", row);
    s.log->warn("outbox row was taken over", {{"id", row.id}, {"aggregate", row.aggregate}, {"topic", row.topic}});
  }
  co_return result<void>();
}

task<void> call_sink(relay_state& s, const outbox_row& row) {
  std::string broken;
  try {
    auto delivery = s.sink(row);
    co_return co_await with_deadline<void>(s.options.delivery_limit, std::move(delivery));
  } catch (const std::exception& e) {
    broken = e.what();
  }
  co_return error(errc::internal, "SinkThrew", "the sink threw").with_detail(broken);
}

asio::awaitable<void> deliver(std::shared_ptr<relay_state> s, outbox_row row) {
  auto outcome = co_await call_sink(*s, row);
  // A relay that is stopping leaves the row claimed, not failed: give_up() frees it.
  if (outcome || outcome.error().code() != errc::cancelled || !co_await detail::cancelled()) {
    auto marked = co_await mark(*s, row, outcome);
    if (!marked)
      s->log->warn("outbox row could not be marked; it will be delivered again", {{"id", row.id}, {"error", marked.error()}});
  }
  s->end(row.seq);
  s->changed.notify();
}

// What every relay on the table sees alike; asked now and then, not at each change.
asio::awaitable<void> measure_depth(relay_state& s) {
  if (!s.stats) co_return;
  auto d = co_await s.table->depth();
  if (!d) co_return;  // a database that is down is told of by whoever needs it
  s.stats->gauge("kubeopera_outbox_depth", "Outbox rows that are neither delivered nor given up", static_cast<double>(d->open));
  s.stats->gauge("kubeopera_outbox_oldest_age_seconds", "Age of the oldest of them",
                 std::chrono::duration<double>(d->oldest).count());
}

// Renews the claims while deliveries are under way, and deletes old rows now and then.
asio::awaitable<void> keep_house(std::shared_ptr<relay_state> s) {
  auto next_trim = s->clk->steady() + std::chrono::seconds(30);
  auto next_look = s->clk->steady();
  while (true) {
    if (s->clk->steady() >= next_look) {
      co_await measure_depth(*s);
      next_look = s->clk->steady() + depth_interval;
    }
    auto slept = co_await s->clk->sleep(s->options.lease / 3);
    if (!slept) co_return;
    auto rows = s->under_way();
    if (!rows.empty()) {
      auto r = co_await s->table->renew(s->token, std::move(rows));
      if (!r) s->log->warn("outbox claims could not be renewed", {{"error", r.error()}});
    }
    if (s->clk->steady() < next_trim) continue;
    next_trim = s->clk->steady() + std::chrono::minutes(1);
    std::size_t deleted = 1000;
    for (int round = 0; round < 100 && deleted == 1000; ++round) {
      auto r = co_await s->table->trim(s->options.keep_done);
      if (!r) s->log->warn("old outbox rows could not be deleted", {{"error", r.error()}});
      deleted = r ? *r : 0;
    }
  }
}

asio::awaitable<void> join_all(std::vector<background>& all) {
  for (auto& b : all) {
    auto r = co_await b.join();
    (void)r.has_value();  // fails only where the waiting coroutine is cancelled; this one never is
  }
}

// Frees what was claimed and not delivered, for the next relay to take at once.
asio::awaitable<void> give_up(std::shared_ptr<relay_state> s) {
  auto freeing = s->table->free(s->token);
  auto r = co_await with_deadline<void>(std::chrono::seconds(2), std::move(freeing));
  if (!r) s->log->warn("outbox claims could not be freed; they will run out", {{"error", r.error()}});
}

class relay final : public outbox_relay {
 public:
  relay(asio::any_io_executor executor, std::shared_ptr<relay_state> s) : executor_(std::move(executor)), s_(std::move(s)) {}
  void wake() noexcept override { s_->changed.notify(); }
  task<void> run() override;

 private:
  task<duration> round(std::vector<background>& running);
  asio::any_io_executor executor_;
  std::shared_ptr<relay_state> s_;
};

// Claims as many rows as there is room for and starts their deliveries. Returns how long to wait if nothing happens.
task<duration> relay::round(std::vector<background>& running) {
  std::erase_if(running, [](const background& b) { return b.finished(); });
  int room = s_->options.batch - static_cast<int>(s_->under_way().size());
  if (room <= 0) co_return s_->options.poll;
  KUBEOPERA_CO_TRY(auto claimed, co_await s_->table->claim(s_->token, s_->options.lease, room));
  for (auto& row : claimed.rows) {
    s_->begin(row.seq);
    running.push_back(background::start(executor_, deliver(s_, std::move(row))));
  }
  duration wait = s_->options.poll;
  if (claimed.soonest) wait = std::min(wait, *claimed.soonest);
  co_return wait;
}

task<void> relay::run() {
  auto s = s_;
  std::vector<background> running;
  auto house = background::start(executor_, keep_house(s));
  while (!co_await detail::cancelled()) {
    auto ticket = s->changed.ticket();
    auto wait = co_await round(running);
    if (!wait) {
      if (wait.error().code() == errc::cancelled) break;
      s->log->warn("outbox cannot be read", {{"error", wait.error()}});
      wait = std::chrono::seconds(1);
      ticket = s->changed.ticket();
    }
    auto woken = co_await s->changed.wait_for(ticket, *wait);
    if (!woken) break;
  }
  house.stop();
  for (auto& b : running) b.stop();
  running.push_back(std::move(house));
  co_await uncancelled(join_all(running));
  co_await uncancelled(give_up(s));
  co_return error(errc::cancelled, "Cancelled", "the outbox relay was stopped");
}

}  // namespace

std::shared_ptr<outbox_relay> make_outbox_relay(asio::any_io_executor executor, std::shared_ptr<postgres::pool> pool,
                                                outbox_sink sink, relay_options options, clock& clk, logger& log, metrics* all) {
  return make_outbox_relay(std::move(executor), make_outbox_table(std::move(pool)), std::move(sink), std::move(options), clk, log,
                           all);
}

std::shared_ptr<outbox_relay> make_outbox_relay(asio::any_io_executor executor, std::shared_ptr<outbox_table> table,
                                                outbox_sink sink, relay_options options, clock& clk, logger& log, metrics* all) {
  auto s = std::make_shared<relay_state>();
  s->table = std::move(table);
  s->sink = std::move(sink);
  s->options = std::move(options);
  s->clk = &clk;
  s->log = &log;
  s->stats = all;
  return std::make_shared<relay>(std::move(executor), std::move(s));
}

}  // namespace kubeopera::inline v1::events
