// Draining the outbox beside millions of rows that are done: what is paid for must be what is open.
// Usage: bench_outbox FOLDER [DONE_ROWS [OPEN_ROWS]]. FOLDER (outside of /root) takes a private PostgreSQL and is left behind.
#include "server/embedded/postgres_process.hpp"

#include <kubeopera/events/outbox.hpp>

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace kubeopera::inline v1 {
namespace {

using steady = std::chrono::steady_clock;

struct bench {
  std::shared_ptr<postgres::pool> pool;
  std::atomic<long> delivered{0};
  notifier changed;
};

double seconds_since(steady::time_point t) { return std::chrono::duration<double>(steady::now() - t).count(); }

task<void> exec(bench& b, std::string sql) {
  postgres::statement st(std::move(sql));
  KUBEOPERA_CO_CHECK(co_await b.pool->query(st));
  co_return result<void>();
}

// Done rows, filled without the indexes that would have to be read back for every row, and settled on disk before anything is
// timed.
task<void> fill_done(bench& b, long rows) {
  if (rows == 0) co_return result<void>();
  KUBEOPERA_CO_CHECK(co_await exec(b, "alter table outbox drop constraint outbox_id_key"));
  KUBEOPERA_CO_CHECK(co_await exec(b, "drop index outbox_done"));
  KUBEOPERA_CO_CHECK(co_await exec(
      b,
      "insert into outbox (id, aggregate, topic, payload, attempts, done_at) select gen_random_uuid(), 'app-' || i, 'app', "
      "'{\"resource\":\"app\"}', 1, now() from generate_series(1, " +
          std::to_string(rows) + ") i"));
  KUBEOPERA_CO_CHECK(co_await exec(b, "alter table outbox add constraint outbox_id_key unique (id)"));
  KUBEOPERA_CO_CHECK(co_await exec(b, "create index outbox_done on outbox (done_at) where done_at is not null"));
  KUBEOPERA_CO_CHECK(co_await exec(b, "vacuum analyze outbox"));
  co_return co_await exec(b, "checkpoint");
}

task<void> fill_open(bench& b, long rows) {
  return exec(
      b,
      "insert into outbox (id, aggregate, topic, payload) select (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)"
      "::bigint), 12, '0') || '7000' || '8' || substr(md5(i::text), 1, 15))::uuid, 'open-' || i, 'app', "
      "'{\"resource\":\"app\"}' from generate_series(1, " +
          std::to_string(rows) + ") i");
}

asio::awaitable<void> run_relay(std::shared_ptr<events::outbox_relay> relay) { static_cast<void>(co_await relay->run()); }

task<double> drain(asio::any_io_executor executor, bench& b, long rows) {
  b.delivered = 0;
  auto* seen = &b;
  events::outbox_sink sink = [seen](const events::outbox_row&) -> task<void> {
    ++seen->delivered;
    seen->changed.notify();
    co_return result<void>();
  };
  auto relay = events::make_outbox_relay(executor, b.pool, sink);
  auto start = steady::now();
  auto running = background::start(executor, run_relay(relay));
  while (b.delivered < rows) {
    auto ticket = b.changed.ticket();
    if (b.delivered >= rows) break;
    KUBEOPERA_CO_CHECK(co_await b.changed.wait(ticket));
  }
  auto took = seconds_since(start);
  running.stop();
  static_cast<void>(co_await running.join());
  co_return took;
}

// Both sides in turn; the best of three rounds each.
task<void> measure(asio::any_io_executor executor, bench& b, long done, long open) {
  std::vector<postgres::migration> table{{1, "outbox", events::outbox_sql}, {2, "outbox indexes", events::outbox_indexes_sql}};
  KUBEOPERA_CO_CHECK(co_await postgres::migrate(*b.pool, "bench", table));
  for (long filled : {0L, done}) {
    KUBEOPERA_CO_CHECK(co_await exec(b, "truncate outbox"));
    KUBEOPERA_CO_CHECK(co_await fill_done(b, filled));
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      KUBEOPERA_CO_CHECK(co_await fill_open(b, open));
      KUBEOPERA_CO_TRY(auto took, co_await drain(executor, b, open));
      best = std::min(best, took);
    }
    std::printf("{\"done_rows\":%ld,\"open_rows\":%ld,\"seconds\":%.3f,\"rows_per_second\":%.0f}\n", filled, open, best,
                static_cast<double>(open) / best);
    std::fflush(stdout);
  }
  co_return result<void>();
}

asio::awaitable<void> run(asio::io_context& io, bench& b, long done, long open, int& code) {
  auto r = co_await measure(io.get_executor(), b, done, open);
  if (!r) std::fprintf(stderr, "%s\n", to_string(r.error()).c_str());
  code = r ? 0 : 1;
  b.pool->close();
  io.stop();
}

int main_of(const std::string& folder, long done, long open) {
  embedded::postgres_options pg;
  pg.directory = folder;
  auto server = embedded::postgres_process::start(pg);
  if (!server) {
    std::fprintf(stderr, "%s\n", to_string(server.error()).c_str());
    return 1;
  }
  asio::io_context io;
  bench b;
  postgres::pool_options o;
  o.url = (*server)->url();
  o.schema = "bench";
  o.statement_timeout = std::chrono::hours(1);  // the filling
  b.pool = postgres::make_pool(io.get_executor(), o);
  int code = 1;
  spawn(io.get_executor(), run(io, b, done, open, code));
  io.run();
  return code;
}

}  // namespace
}  // namespace kubeopera::inline v1

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_outbox FOLDER [DONE_ROWS [OPEN_ROWS]]\n");
    return 2;
  }
  return kubeopera::main_of(argv[1], argc > 2 ? std::atol(argv[2]) : 10'000'000, argc > 3 ? std::atol(argv[3]) : 20'000);
}
