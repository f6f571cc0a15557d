// Claiming, delivering and marking outbox rows.
#include <kubeopera/events/outbox.hpp>

#include <kubeopera/core/backoff.hpp>
#include <kubeopera/core/id.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::inline v1::events {

// open: neither done nor dead. The partial indexes hold open rows only, so that draining costs what is open, not what ever was.
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

namespace {

using postgres::params;
using postgres::statement;

// The first open row of each aggregate, due and not claimed by a live relay.
constexpr const char* claim_sql =
    "update outbox o set claim = $1::uuid, claimed_at = now() from ("
    "  select seq from outbox c where done_at is null and dead_at is null and next_at <= now()"
    "    and (claimed_at is null or claimed_at < now() - make_interval(secs => $2::float8))"
    "    and not exists (select 1 from outbox e where e.aggregate = c.aggregate and e.seq < c.seq and e.done_at is null and e.dead_at is null)"
    "  order by seq limit $3 for update skip locked) picked"
    " where o.seq = picked.seq returning o.seq, o.id, o.aggregate, o.topic, o.payload, o.attempts";

bool permanent(const error& e) {
  switch (e.code()) {
    case errc::invalid_argument:
    case errc::permission_denied:
    case errc::unauthenticated:
    case errc::unsupported:
    case errc::too_large:
    case errc::failed_precondition: return true;
    default: return false;
  }
}

struct shared_state {
  std::shared_ptr<postgres::pool> pool;
  outbox_sink sink;
  relay_options options;
  clock* clk;
  logger* log;
  metrics* stats;
  notifier added;
  notifier finished;
};

class relay final : public outbox_relay {
 public:
  relay(asio::any_io_executor executor, std::shared_ptr<shared_state> s) : executor_(std::move(executor)), s_(std::move(s)) {}
  void wake() noexcept override { s_->added.notify(); }
  task<void> run() override;

 private:
  task<std::size_t> round();
  task<std::vector<outbox_row>> claim(const std::string& token);
  task<void> trim();
  asio::any_io_executor executor_;
  std::shared_ptr<shared_state> s_;
};

task<std::vector<outbox_row>> relay::claim(const std::string& token) {
  auto lease = std::chrono::duration<double>(s_->options.lease).count();
  statement st(claim_sql, params{token, std::to_string(lease), s_->options.batch});
  KUBEOPERA_CO_TRY(auto r, co_await s_->pool->query(st));
  std::vector<outbox_row> out;
  for (std::size_t i = 0; i < r.size(); ++i) {
    outbox_row row;
    row.seq = r.integer(i, "seq");
    row.id = r.str(i, "id");
    row.aggregate = r.str(i, "aggregate");
    row.topic = r.str(i, "topic");
    row.attempts = static_cast<int>(r.integer(i, "attempts"));
    KUBEOPERA_CO_TRY(row.payload, json::read_object(r.text(i, "payload")));
    out.push_back(std::move(row));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.seq < b.seq; });
  co_return out;
}

// Marks what became of a row, only while the claim is still ours.
task<void> mark(shared_state& s, const outbox_row& row, const std::string& token, const result<void>& outcome) {
  if (outcome) {
    if (s.stats) s.stats->count("kubeopera_outbox_delivered_total", "Outbox rows delivered.", {{"topic", row.topic}});
    statement st("update outbox set done_at = now(), claim = null, claimed_at = null, attempts = attempts + 1 where seq = $1 and claim = $2::uuid",
                 params{row.seq, token});
    KUBEOPERA_CO_CHECK(co_await s.pool->query(st));
    co_return result<void>();
  }
  auto e = outcome.error();
  if (permanent(e)) {
    s.log->error("outbox row is a dead letter", {{"id", row.id}, {"aggregate", row.aggregate}, {"topic", row.topic}, {"error", e}});
    if (s.stats) s.stats->count("kubeopera_outbox_dead_total", "Outbox rows given up.", {{"topic", row.topic}});
    statement st("update outbox set dead_at = now(), claim = null, claimed_at = null, attempts = attempts + 1, last_error = $3 where seq = $1 and claim = $2::uuid",
                 params{row.seq, token, to_string(e)});
    KUBEOPERA_CO_CHECK(co_await s.pool->query(st));
    co_return result<void>();
  }
  auto ceiling = s.options.first_retry * (1 << std::min(row.attempts, 12));
  backoff wait(std::min(ceiling, s.options.max_retry), s.options.max_retry);
  duration delay = wait.next();
  if (e.retry_after()) delay = std::max<duration>(delay, *e.retry_after());
  auto seconds = std::chrono::duration<double>(delay).count();
  s.log->warn("outbox delivery failed", {{"id", row.id}, {"aggregate", row.aggregate}, {"topic", row.topic}, {"error", e}});
  if (s.stats) s.stats->count("kubeopera_outbox_retries_total", "Outbox deliveries that failed and are tried again.", {{"topic", row.topic}});
  statement st("update outbox set next_at = now() + make_interval(secs => $3::float8), claim = null, claimed_at = null, attempts = attempts + 1, "
               "last_error = $4 where seq = $1 and claim = $2::uuid",
               params{row.seq, token, std::to_string(seconds), to_string(e)});
  KUBEOPERA_CO_CHECK(co_await s.pool->query(st));
  co_return result<void>();
}

asio::awaitable<void> deliver(std::shared_ptr<shared_state> s, outbox_row row, std::string token) {
  result<void> outcome = error();
  try {
    auto delivery = s->sink(row);
    outcome = co_await with_deadline<void>(s->options.lease, std::move(delivery));
  } catch (const std::exception& e) {
    outcome = error(errc::internal, "SinkThrew", "the sink threw").with_detail(e.what());
  }
  if (!outcome && outcome.error().code() == errc::cancelled) co_return;  // the lease will run out
  auto marked = co_await mark(*s, row, token, outcome);
  if (!marked) s->log->warn("outbox row could not be marked; it will be delivered again", {{"id", row.id}, {"error", marked.error()}});
  s->finished.notify();
  if (outcome) s->added.notify();  // the aggregate's next row may go
}

task<std::size_t> relay::round() {
  auto token = make_uuid_v4();
  KUBEOPERA_CO_TRY(auto rows, co_await claim(token));
  std::vector<background> running;
  for (auto& row : rows) running.push_back(background::start(executor_, deliver(s_, std::move(row), token)));
  for (auto& b : running) {
    auto joined = co_await b.join();
    if (!joined) co_return joined.error();  // cancelled: the deliveries are stopped as they go out of scope
  }
  co_return running.size();
}

task<void> relay::trim() {
  auto hours = static_cast<std::int64_t>(s_->options.keep_done.count());
  statement st("delete from outbox where seq in (select seq from outbox where done_at < now() - make_interval(hours => $1::int) order by done_at limit 1000)",
               params{hours});
  KUBEOPERA_CO_CHECK(co_await s_->pool->query(st));
  co_return result<void>();
}

task<void> relay::run() {
  auto next_trim = s_->clk->steady() + std::chrono::minutes(1);
  while (true) {
    auto ticket = s_->added.ticket();
    auto done = co_await round();
    if (!done && done.error().code() == errc::cancelled) co_return done.error();
    if (!done) {
      s_->log->warn("outbox cannot be read", {{"error", done.error()}});
      KUBEOPERA_CO_CHECK(co_await s_->clk->sleep(std::chrono::seconds(1)));
      continue;
    }
    if (*done > 0) continue;
    if (s_->clk->steady() > next_trim) {
      next_trim = s_->clk->steady() + std::chrono::minutes(1);
      auto trimmed = co_await trim();
      if (!trimmed && trimmed.error().code() == errc::cancelled) co_return trimmed.error();
    }
    // A retry may be due before anyone wakes us.
    statement soonest("select extract(epoch from min(next_at) - now())::float8 as wait from outbox where done_at is null and dead_at is null and next_at > now()");
    auto due = co_await s_->pool->query(soonest);
    duration wait = s_->options.poll;
    if (due && !due->empty() && !due->is_null(0, "wait")) {
      auto seconds = std::strtod(std::string(due->text(0, "wait")).c_str(), nullptr);
      wait = std::min<duration>(wait, std::chrono::duration_cast<duration>(std::chrono::duration<double>(std::max(0.001, seconds))));
    }
    KUBEOPERA_CO_CHECK(co_await s_->added.wait_for(ticket, wait));
  }
}

}  // namespace

std::shared_ptr<outbox_relay> make_outbox_relay(asio::any_io_executor executor, std::shared_ptr<postgres::pool> pool, outbox_sink sink,
                                                relay_options options, clock& clk, logger& log, metrics* all) {
  auto s = std::make_shared<shared_state>();
  s->pool = std::move(pool);
  s->sink = std::move(sink);
  s->options = options;
  s->clk = &clk;
  s->log = &log;
  s->stats = all;
  return std::make_shared<relay>(std::move(executor), std::move(s));
}

}  // namespace kubeopera::inline v1::events
