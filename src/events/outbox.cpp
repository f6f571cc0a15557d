// Claiming, delivering and marking outbox rows.
#include "src/events/relay_rules.hpp"

#include <kubeopera/core/id.hpp>
#include <kubeopera/core/wait.hpp>
#include <kubeopera/events/outbox.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <atomic>
#include <vector>

namespace kubeopera::inline v1::events {

// Open: neither done nor dead. The partial indexes hold open rows only, so that draining costs what is open, not what ever was.
const char* const outbox_sql = R"sql(
create table outbox (
  seq        bigserial primary key,
  id         uuid not null unique,
  aggregate  text not null,
  topic      text not null,
  payload    jsonb not null,
  created_at timestamptz not null default now(),
  attempts   int not null default 0,
  next_at    timestamptz not null default now(),
  claim      uuid,
  claimed_at timestamptz,
  done_at    timestamptz,
  dead_at    timestamptz,
  last_error text
);
create index outbox_open on outbox (seq) where done_at is null and dead_at is null;
create index outbox_open_aggregate on outbox (aggregate, seq) where done_at is null and dead_at is null;
create index outbox_done on outbox (done_at) where done_at is not null;
)sql";

postgres::statement enqueue(const std::string& aggregate, const std::string& topic, const json::object& payload) {
  return postgres::statement("insert into outbox (id, aggregate, topic, payload) values ($1, $2, $3, $4)",
                             postgres::params{make_uuid_v7(), aggregate, topic, json::write(payload)});
}

postgres::statement revive(const std::string& id) {
  return postgres::statement(
      "update outbox set dead_at = null, attempts = 0, next_at = now(), last_error = null where id = $1 and dead_at is not null",
      postgres::params{id});
}

namespace {

using postgres::params;
using postgres::rows;
using postgres::statement;

// The first open row of each aggregate, due and not claimed by a live relay. Row locks last for this statement only; what
// holds the row afterwards is the claim. attempts counts claims, so (claim, attempts) names one delivery.
constexpr const char* claim_sql =
    "update outbox o set claim = $1::uuid, claimed_at = now(), attempts = o.attempts + 1 from ("
    "  select seq from outbox c where done_at is null and dead_at is null and next_at <= now()"
    "    and (claimed_at is null or claimed_at < now() - make_interval(secs => $2::float8))"
    "    and not exists (select 1 from outbox e where e.aggregate = c.aggregate and e.seq < c.seq"
    "                    and e.done_at is null and e.dead_at is null)"
    "  order by seq limit $3 for update skip locked) picked"
    " where o.seq = picked.seq returning o.seq, o.id, o.aggregate, o.topic, o.payload, o.attempts - 1 as attempts";

// Seconds until a row that is not claimable now may be: a retry, or another relay's claim that runs out.
constexpr const char* soonest_sql =
    "select extract(epoch from min(due) - now())::float8 as wait from ("
    "  select greatest(next_at, coalesce(claimed_at + make_interval(secs => $2::float8), next_at)) as due from outbox"
    "  where done_at is null and dead_at is null and claim is distinct from $1::uuid) later where due > now()";

constexpr const char* renew_sql =
    "update outbox set claimed_at = now() where claim = $1::uuid and done_at is null and dead_at is null";

constexpr const char* trim_sql =
    "delete from outbox where seq in (select seq from outbox where done_at < now() - make_interval(hours => $1::int)"
    " order by done_at limit 1000)";

// Marks: each only while the claim is still this delivery's.
constexpr const char* done_sql =
    "update outbox set done_at = now(), claim = null, claimed_at = null, last_error = null"
    " where seq = $1 and claim = $2::uuid and attempts = $3 and done_at is null";
constexpr const char* again_sql =
    "update outbox set next_at = now() + make_interval(secs => $5::float8), claim = null, claimed_at = null, last_error = $4"
    " where seq = $1 and claim = $2::uuid and attempts = $3 and done_at is null";
constexpr const char* dead_sql =
    "update outbox set dead_at = now(), claim = null, claimed_at = null, last_error = $4"
    " where seq = $1 and claim = $2::uuid and attempts = $3 and done_at is null";

// How much is open and for how long. The planner takes the partial index of open rows.
constexpr std::chrono::seconds depth_interval{5};
constexpr const char* depth_sql =
    "select count(*) as n, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as age from outbox"
    " where done_at is null and dead_at is null";

std::string seconds(duration d) { return std::to_string(std::chrono::duration<double>(d).count()); }

struct relay_state {
  std::shared_ptr<postgres::pool> pool;
  outbox_sink sink;
  relay_options options;
  clock* clk;
  logger* log;
  metrics* stats;
  std::string token = make_uuid_v4();
  std::atomic<int> in_work{0};
  notifier changed;  // rows were added, or a delivery has ended

  void count(const char* name, const char* help, const outbox_row& row) {
    if (stats) stats->count(name, help, {{"topic", row.topic}});
  }
  void report_in_work(int n) {
    if (stats) stats->gauge("kubeopera_outbox_in_work", "Outbox deliveries under way", n);
  }
};

result<std::vector<outbox_row>> read_rows(const rows& r) {
  std::vector<outbox_row> out;
  for (std::size_t i = 0; i < r.size(); ++i) {
    outbox_row row;
    row.seq = r.integer(i, "seq");
    row.id = r.str(i, "id");
    row.aggregate = r.str(i, "aggregate");
    row.topic = r.str(i, "topic");
    row.attempts = static_cast<int>(r.integer(i, "attempts"));
    json::limits lim;
    lim.max_bytes = 16 << 20;
    KUBEOPERA_TRY(row.payload, json::read_object(r.text(i, "payload"), lim));
    out.push_back(std::move(row));
  }
  return out;
}

statement mark_statement(const relay_state& s, const outbox_row& row, const decision& d, const result<void>& outcome) {
  params args{row.seq, s.token, row.attempts + 1};
  if (d.what == verdict::done) return statement(done_sql, std::move(args));
  args.emplace_back(to_string(outcome.error()));
  if (d.what == verdict::dead) return statement(dead_sql, std::move(args));
  args.emplace_back(seconds(d.delay));
  return statement(again_sql, std::move(args));
}

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
  auto d = decide(outcome, row.attempts, s.options, random_u64());
  auto st = mark_statement(s, row, d, outcome);
  auto r = co_await s.pool->query(st);
  if (!r) co_return r.error();
  if (r->affected() == 1) {
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
  s->report_in_work(--s->in_work);
  s->changed.notify();
}

// What every relay on the table sees alike; asked now and then, not at each change.
asio::awaitable<void> measure_depth(relay_state& s) {
  if (!s.stats) co_return;
  statement st(depth_sql);
  auto r = co_await s.pool->query(st);
  if (!r) co_return;  // a database that is down is told of by whoever needs it
  s.stats->gauge("kubeopera_outbox_depth", "Outbox rows that are neither delivered nor given up",
                 static_cast<double>(r->integer(0, "n")));
  s.stats->gauge("kubeopera_outbox_oldest_age_seconds", "Age of the oldest of them",
                 std::strtod(r->str(0, "age").c_str(), nullptr));
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
    auto slept = co_await sleep_for(s->options.lease / 3);
    if (!slept) co_return;
    if (s->in_work > 0) {
      statement st(renew_sql, params{s->token});
      auto r = co_await s->pool->query(st);
      if (!r) s->log->warn("outbox claims could not be renewed", {{"error", r.error()}});
    }
    if (s->clk->steady() < next_trim) continue;
    next_trim = s->clk->steady() + std::chrono::minutes(1);
    std::size_t deleted = 1000;
    for (int round = 0; round < 100 && deleted == 1000; ++round) {
      statement st(trim_sql, params{static_cast<std::int64_t>(s->options.keep_done.count())});
      auto r = co_await s->pool->query(st);
      if (!r) s->log->warn("old outbox rows could not be deleted", {{"error", r.error()}});
      deleted = r ? r->affected() : 0;
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
  statement st("update outbox set claim = null, claimed_at = null where claim = $1::uuid and done_at is null and dead_at is null",
               params{s->token});
  auto freeing = s->pool->query(st);
  auto r = co_await with_deadline<rows>(std::chrono::seconds(2), std::move(freeing));
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
  int room = s_->options.batch - s_->in_work;
  if (room <= 0) co_return s_->options.poll;
  std::vector<statement> both;
  both.emplace_back(claim_sql, params{s_->token, seconds(s_->options.lease), room});
  both.emplace_back(soonest_sql, params{s_->token, seconds(s_->options.lease)});
  auto r = co_await s_->pool->atomic_pipeline(both);
  if (!r) co_return r.error();
  auto claimed = read_rows(r->front());
  if (!claimed) co_return claimed.error();
  for (auto& row : *claimed) {
    s_->report_in_work(++s_->in_work);
    running.push_back(background::start(executor_, deliver(s_, std::move(row))));
  }
  duration wait = s_->options.poll;
  const auto& soonest = r->back();
  if (!soonest.empty() && !soonest.is_null(0, "wait")) {
    std::chrono::duration<double> in(std::max(0.002, std::strtod(soonest.str(0, "wait").c_str(), nullptr)));
    if (in < wait) wait = std::chrono::duration_cast<duration>(in);
  }
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
  auto s = std::make_shared<relay_state>();
  s->pool = std::move(pool);
  s->sink = std::move(sink);
  s->options = std::move(options);
  s->clk = &clk;
  s->log = &log;
  s->stats = all;
  return std::make_shared<relay>(std::move(executor), std::move(s));
}

}  // namespace kubeopera::inline v1::events
