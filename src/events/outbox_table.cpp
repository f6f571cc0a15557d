// The outbox's table in PostgreSQL: its SQL, and nothing else.
#include <kubeopera/core/id.hpp>
#include <kubeopera/events/outbox_table.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <cstdlib>

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

// A planner that expects next to no open row, as the statistics of a quiet table tell it, finds every small index equally good,
// and the wrong one costs a burst its square. So a query can use one index only: the other's condition is not among its own.
const char* const outbox_indexes_sql = R"sql(
drop index outbox_open;
drop index outbox_open_aggregate;
create index outbox_due on outbox (next_at, seq) where done_at is null and dead_at is null and topic <> '';
create index outbox_heads on outbox (aggregate, seq) where done_at is null and dead_at is null and aggregate <> '';
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
    "  select seq from outbox c where done_at is null and dead_at is null and topic <> '' and next_at <= now()"
    "    and (claimed_at is null or claimed_at < now() - make_interval(secs => $2::float8))"
    "    and seq = (select e.seq from outbox e where e.aggregate = c.aggregate and e.aggregate <> ''"
    "               and e.done_at is null and e.dead_at is null order by e.seq limit 1)"
    "  order by next_at, seq limit $3 for update skip locked) picked"
    " where o.seq = picked.seq returning o.seq, o.id, o.aggregate, o.topic, o.payload, o.attempts - 1 as attempts";

// Seconds until a row that is not claimable now may be: a retry, or another relay's claim that runs out. It looks at the first
// rows only: where more than that are due there is work at hand, or all stand behind one that waits, which the next poll finds.
constexpr const char* soonest_sql =
    "select extract(epoch from min(due) - now())::float8 as wait from ("
    "  select greatest(next_at, coalesce(claimed_at + make_interval(secs => $2::float8), next_at)) as due, claim from outbox"
    "  where done_at is null and dead_at is null and topic <> '' order by next_at, seq limit 256) first"
    " where due > now() and claim is distinct from $1::uuid";

constexpr const char* renew_sql =
    "update outbox set claimed_at = now() where claim = $1::uuid and seq = any($2::bigint[])"
    " and done_at is null and dead_at is null";

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

// The planner takes the partial index of open rows.
constexpr const char* depth_sql =
    "select count(*) as n, coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as age from outbox"
    " where done_at is null and dead_at is null and topic <> ''";

constexpr const char* free_sql =
    "update outbox set claim = null, claimed_at = null where claim = $1::uuid and done_at is null and dead_at is null and topic "
    "<> ''";

std::string seconds(duration d) { return std::to_string(std::chrono::duration<double>(d).count()); }

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

statement mark_statement(const outbox_row& row, const std::string& token, const outbox_mark& m) {
  params args{row.seq, token, row.attempts + 1};
  if (m.what == verdict::done) return statement(done_sql, std::move(args));
  args.emplace_back(m.why);
  if (m.what == verdict::dead) return statement(dead_sql, std::move(args));
  args.emplace_back(seconds(m.delay));
  return statement(again_sql, std::move(args));
}

class sql_table final : public outbox_table {
 public:
  explicit sql_table(std::shared_ptr<postgres::pool> pool) : pool_(std::move(pool)) {}

  task<outbox_claim> claim(std::string token, duration lease, int most) override {
    std::vector<statement> both;
    both.emplace_back(claim_sql, params{token, seconds(lease), most});
    both.emplace_back(soonest_sql, params{token, seconds(lease)});
    KUBEOPERA_CO_TRY(auto r, co_await pool_->atomic_pipeline(both));
    outbox_claim out;
    KUBEOPERA_CO_TRY(out.rows, read_rows(r.front()));
    const auto& soonest = r.back();
    if (!soonest.empty() && !soonest.is_null(0, "wait")) {
      std::chrono::duration<double> in(std::max(0.002, std::strtod(soonest.str(0, "wait").c_str(), nullptr)));
      out.soonest = std::chrono::duration_cast<duration>(in);
    }
    co_return out;
  }

  task<void> renew(std::string token, std::vector<std::int64_t> rows) override {
    std::vector<std::string> numbers;
    for (auto seq : rows) numbers.push_back(std::to_string(seq));
    co_return co_await run(statement(renew_sql, params{token, numbers}));
  }

  task<bool> mark(outbox_row row, std::string token, outbox_mark m) override {
    auto st = mark_statement(row, token, m);
    KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
    co_return r.affected() == 1;
  }

  task<void> free(std::string token) override { co_return co_await run(statement(free_sql, params{token})); }

  task<std::size_t> trim(std::chrono::hours keep) override {
    statement st(trim_sql, params{static_cast<std::int64_t>(keep.count())});
    KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
    co_return r.affected();
  }

  task<outbox_depth> depth() override {
    statement st(depth_sql);
    KUBEOPERA_CO_TRY(auto r, co_await pool_->query(st));
    outbox_depth out;
    out.open = r.integer(0, "n");
    std::chrono::duration<double> age(std::strtod(r.str(0, "age").c_str(), nullptr));
    out.oldest = std::chrono::duration_cast<duration>(age);
    co_return out;
  }

 private:
  task<void> run(statement st) {
    KUBEOPERA_CO_CHECK(co_await pool_->query(st));
    co_return result<void>();
  }
  std::shared_ptr<postgres::pool> pool_;
};

}  // namespace

std::shared_ptr<outbox_table> make_outbox_table(std::shared_ptr<postgres::pool> pool) {
  return std::make_shared<sql_table>(std::move(pool));
}

}  // namespace kubeopera::inline v1::events
