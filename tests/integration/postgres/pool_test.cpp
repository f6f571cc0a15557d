// Queries, pipelines, transactions and the pool against a real server, with connections killed under way.
#include "tests/integration/postgres/kit.hpp"

#include <kubeopera/core/wait.hpp>

#include <gtest/gtest.h>

#include <atomic>

using namespace kubeopera;
using namespace kubeopera::postgres;
using namespace kubeopera::pg_test;

TEST(pool, reads_all_kinds_of_columns) {
  fixture f;
  auto t = system_time(std::chrono::microseconds(1'764'540'365'123'456));
  auto r = f.sql(
      "SELECT $1::text AS t, $2::bigint AS i, $3::bool AS b, $4::timestamptz AS at, $5::text AS n, "
      "array_length($6::text[], 1) AS len, ($6::text[])[2] AS second",
      {"o'neill \xE2\x82\xAC", std::int64_t{9'000'000'000}, true, t, std::nullopt,
       std::vector<std::string>{"a", "b\"\\,{}", ""}});
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->text(0, "t"), "o'neill \xE2\x82\xAC");
  EXPECT_EQ(r->integer(0, "i"), 9'000'000'000);
  EXPECT_TRUE(r->boolean(0, "b"));
  EXPECT_EQ(r->time(0, "at"), t);
  EXPECT_TRUE(r->is_null(0, "n"));
  EXPECT_EQ(r->opt(0, "n"), std::nullopt);
  EXPECT_EQ(r->integer(0, "len"), 3);
  EXPECT_EQ(r->text(0, "second"), "b\"\\,{}");
  EXPECT_THROW(r->text(0, "nope"), std::out_of_range);
  EXPECT_THROW(r->text(1, "t"), std::out_of_range);
  EXPECT_THROW(r->integer(0, "t"), std::out_of_range);
}

TEST(pool, session_settings_and_search_path) {
  fixture f;
  auto r = f.sql("SELECT current_schema() AS s, current_setting('application_name') AS a, current_setting('timezone') AS z");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->text(0, "s"), f.schema);
  EXPECT_EQ(r->text(0, "a"), "kubeopera");
  EXPECT_EQ(r->text(0, "z"), "UTC");
}

TEST(pool, errors_carry_code_and_constraint) {
  fixture f;
  ASSERT_TRUE(f.sql("CREATE TABLE a (id int PRIMARY KEY, n int CONSTRAINT positive CHECK (n > 0))"));
  auto one = f.sql("INSERT INTO a VALUES (1, 1)");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->affected(), 1u);
  auto twice = f.sql("INSERT INTO a VALUES (1, 1)");
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), errc::already_exists);
  EXPECT_EQ(twice.error().reason(), "a_pkey");
  auto check = f.sql("INSERT INTO a VALUES (2, 0)");
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().code(), errc::failed_precondition);
  EXPECT_EQ(check.error().reason(), "positive");
  auto syntax = f.sql("SELEKT 1");
  ASSERT_FALSE(syntax);
  EXPECT_EQ(syntax.error().code(), errc::internal);
  auto value = f.sql("SELECT $1::uuid", {"zzz"});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code(), errc::invalid_argument);
  // The same connections go on to work.
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM a"), 1);
  EXPECT_EQ(f.db->stats().open, 1);
}

TEST(pool, deferred_constraint_fails_at_the_commit) {
  fixture f(1);
  ASSERT_TRUE(f.sql("CREATE TABLE p (id int PRIMARY KEY)"));
  ASSERT_TRUE(f.sql("CREATE TABLE c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)"));
  auto single = f.sql("INSERT INTO c VALUES (7)");
  ASSERT_FALSE(single);
  EXPECT_EQ(single.error().code(), errc::failed_precondition) << to_string(single.error());
  std::vector<statement> both{{"INSERT INTO c VALUES (8)"}};
  auto piped = wait(f.db->atomic_pipeline(both));
  ASSERT_FALSE(piped);
  EXPECT_EQ(piped.error().reason(), "c_p_fkey");
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM c"), 0);
}

TEST(pool, atomic_pipeline_is_all_or_nothing) {
  fixture f(1);
  ASSERT_TRUE(f.sql("CREATE TABLE a (id int PRIMARY KEY)"));
  std::vector<statement> good{
      {"INSERT INTO a VALUES ($1)", {1}}, {"INSERT INTO a VALUES ($1)", {2}}, {"SELECT count(*) AS v FROM a"}};
  auto r = wait(f.db->atomic_pipeline(good));
  ASSERT_TRUE(r) << to_string(r.error());
  ASSERT_EQ(r->size(), 3u);
  EXPECT_EQ((*r)[2].integer(0, "v"), 2);
  std::vector<statement> bad{
      {"INSERT INTO a VALUES ($1)", {3}}, {"INSERT INTO a VALUES ($1)", {1}}, {"INSERT INTO a VALUES ($1)", {4}}};
  auto failed = wait(f.db->atomic_pipeline(bad));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason(), "a_pkey");
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM a"), 2);
  EXPECT_EQ(f.db->stats().open, 1);
}

TEST(pool, failed_prepare_is_not_remembered) {
  fixture f(1);
  for (int i = 0; i < 2; ++i) {
    auto r = f.sql("SELECT v FROM later");
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::internal);
  }
  ASSERT_TRUE(f.sql("CREATE TABLE later AS SELECT 5 AS v"));
  EXPECT_EQ(f.number("SELECT v FROM later"), 5);
}

TEST(pool, changed_table_makes_new_plans) {
  fixture f(1);
  ASSERT_TRUE(f.sql("CREATE TABLE a AS SELECT 1 AS v"));
  EXPECT_EQ(f.number("SELECT * FROM a"), 1);
  ASSERT_TRUE(f.sql("ALTER TABLE a ADD COLUMN w text"));
  EXPECT_EQ(f.number("SELECT * FROM a"), 1);
}

TEST(pool, long_pipeline_with_large_values_does_not_lock_up) {
  fixture f(1);
  ASSERT_TRUE(f.sql("CREATE TABLE a (id int, t text)"));
  std::string big(20'000, 'x');
  std::vector<statement> all;
  for (int i = 0; i < 2000; ++i) all.emplace_back("INSERT INTO a VALUES ($1, $2) RETURNING t", params{i, big});
  auto r = wait(f.db->atomic_pipeline(all));
  ASSERT_TRUE(r) << to_string(r.error());
  ASSERT_EQ(r->size(), 2000u);
  EXPECT_EQ(r->back().text(0, "t").size(), big.size());
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM a"), 2000);
}

namespace {

task<int> move_money(session& s, int& runs) {
  ++runs;
  statement take("UPDATE acc SET n = n - 1 WHERE id = 1"), give("UPDATE acc SET n = n + 1 WHERE id = 2 RETURNING n AS v");
  KUBEOPERA_CO_CHECK(co_await s.query(take));
  auto r = co_await s.query(give);
  if (!r) co_return r.error();
  co_return static_cast<int>(r->integer(0, "v"));
}

task<void> insert_then_fail(session& s) {
  statement st("INSERT INTO acc VALUES (9, 9)");
  KUBEOPERA_CO_CHECK(co_await s.query(st));
  co_return error(errc::conflict, "Mine", "the caller's own conflict");
}

task<void> swallow_failure(session& s) {
  statement bad("INSERT INTO acc VALUES (1, 1)"), good("INSERT INTO acc VALUES (10, 10)");
  auto r = co_await s.query(bad);
  if (r) co_return error(errc::internal, "Test", "expected a violation");
  co_return result<void>();
}

task<int> serial_increment(session& s, std::atomic<int>& runs) {
  ++runs;
  statement level("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), read("SELECT n FROM acc WHERE id = 1");
  KUBEOPERA_CO_CHECK(co_await s.query(level));
  auto r = co_await s.query(read);
  if (!r) co_return r.error();
  statement write("UPDATE acc SET n = $1 WHERE id = 1", {r->integer(0, "n") + 1});
  KUBEOPERA_CO_CHECK(co_await s.query(write));
  co_return 1;
}

void make_accounts(fixture& f) {
  ASSERT_TRUE(f.sql("CREATE TABLE acc (id int PRIMARY KEY, n int NOT NULL)"));
  ASSERT_TRUE(f.sql("INSERT INTO acc VALUES (1, 100), (2, 0)"));
}

}  // namespace

TEST(transaction, commits_a_value_and_rolls_back_an_error) {
  fixture f(1);
  make_accounts(f);
  int runs = 0;
  auto r = wait(f.db->transaction<int>([&runs](session& s) { return move_money(s, runs); }));
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(*r, 1);
  auto failed = wait(f.db->transaction_void(insert_then_fail));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason(), "Mine");
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM acc WHERE id = 9"), 0);
  auto swallowed = wait(f.db->transaction_void(swallow_failure));
  ASSERT_FALSE(swallowed) << "a transaction whose statement failed cannot commit";
  EXPECT_EQ(swallowed.error().reason(), "acc_pkey");
  EXPECT_EQ(f.db->stats().open, 1);
  EXPECT_EQ(f.db->stats().idle, 1);
}

TEST(transaction, repeats_on_serialization_failure) {
  fixture f(4);
  make_accounts(f);
  std::atomic<int> runs{0};
  int done = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::future<result<int>>> all;
    for (int i = 0; i < 2; ++i)
      all.push_back(start(f.db->transaction<int>([&runs](session& s) { return serial_increment(s, runs); })));
    for (auto& r : all) {
      auto v = r.get();
      if (v)
        ++done;
      else
        EXPECT_EQ(v.error().code(), errc::conflict);
    }
  }
  EXPECT_EQ(f.number("SELECT n AS v FROM acc WHERE id = 1"), 100 + done) << "each reported commit counts once";
  EXPECT_GE(done, 18);
}

namespace {

task<void> lock_both(session& s, int first, int second, std::shared_ptr<std::atomic<int>> arrived, std::atomic<int>& runs) {
  ++runs;
  statement a("UPDATE acc SET n = n + 1 WHERE id = $1", {first}), b("UPDATE acc SET n = n + 1 WHERE id = $1", {second});
  KUBEOPERA_CO_CHECK(co_await s.query(a));
  ++*arrived;
  while (*arrived < 2) KUBEOPERA_CO_CHECK(co_await sleep_for(std::chrono::milliseconds(1)));
  KUBEOPERA_CO_CHECK(co_await s.query(b));
  co_return result<void>();
}

}  // namespace

TEST(transaction, repeats_the_victim_of_a_deadlock) {
  fixture f(2);
  make_accounts(f);
  auto arrived = std::make_shared<std::atomic<int>>(0);
  std::atomic<int> runs{0};
  auto a = start(f.db->transaction_void([&](session& s) { return lock_both(s, 1, 2, arrived, runs); }));
  auto b = start(f.db->transaction_void([&](session& s) { return lock_both(s, 2, 1, arrived, runs); }));
  auto ra = a.get(), rb = b.get();
  EXPECT_TRUE(ra) << to_string(ra.error());
  EXPECT_TRUE(rb) << to_string(rb.error());
  EXPECT_GE(runs, 3);
  EXPECT_EQ(f.number("SELECT sum(n) AS v FROM acc"), 104);
}

TEST(transaction, exception_of_the_body_drops_the_connection) {
  fixture f(1);
  make_accounts(f);
  auto bad = [](std::shared_ptr<pool> db) -> task<bool> {
    bool caught = false;
    try {
      std::function<task<void>(session&)> body = [](session& s) -> task<void> {
        statement st("INSERT INTO acc VALUES (5, 5)");
        KUBEOPERA_CO_CHECK(co_await s.query(st));
        throw std::logic_error("broken");
      };
      (void)co_await db->transaction_void(std::move(body));
    } catch (const std::logic_error&) {
      caught = true;
    }
    co_return caught;
  };
  auto caught = wait(bad(f.db));
  ASSERT_TRUE(caught);
  EXPECT_TRUE(*caught);
  EXPECT_EQ(f.db->stats().open, 0);
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM acc WHERE id = 5"), 0);
}

namespace {

std::int64_t sleepers(fixture& f) {
  return f.number(
      "SELECT count(*) AS v FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%' || $1 || '%' "
      "AND pid <> pg_backend_pid()",
      {"/* " + f.schema + " */ SELECT pg_sleep"});
}

std::string long_query(fixture& f) { return "/* " + f.schema + " */ SELECT pg_sleep(3600)"; }

asio::awaitable<void> run_query(std::shared_ptr<pool> db, std::string sql, std::promise<error>& out) {
  statement st(std::move(sql));
  auto r = co_await db->query(st);
  out.set_value(r ? error() : r.error());
}

}  // namespace

TEST(pool, cancelled_query_ends_on_the_server_and_its_connection_is_not_reused) {
  fixture f(2), watch(1);
  watch.schema = f.schema;
  std::promise<error> out;
  auto running = background::start(threads().get_executor(), run_query(f.db, long_query(f), out));
  ASSERT_TRUE(eventually([&] { return sleepers(watch) == 1; }));
  running.stop();
  auto e = out.get_future().get();
  EXPECT_EQ(e.code(), errc::cancelled);
  EXPECT_TRUE(eventually([&] { return sleepers(watch) == 0; })) << "the server goes on with a query that nobody waits for";
  EXPECT_TRUE(eventually([&] { return f.db->stats().open <= 1; }));
  EXPECT_EQ(f.number("SELECT 1 AS v"), 1);
}

TEST(pool, deadline_ends_the_query) {
  fixture f(1);
  statement st(long_query(f));
  auto r = wait(with_deadline<rows>(50ms, f.db->query(st)));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::deadline_exceeded);
  EXPECT_EQ(f.number("SELECT 1 AS v"), 1);
}

TEST(pool, statement_timeout_of_the_server) {
  fixture f;
  auto o = f.options;
  o.statement_timeout = 50ms;
  auto db = make_pool(threads().get_executor(), o);
  statement st("SELECT pg_sleep(3600)"), ok("SELECT 1 AS v");
  auto r = wait(db->query(st));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::deadline_exceeded);
  EXPECT_EQ(r.error().reason(), "StatementTimeout");
  EXPECT_TRUE(wait(db->query(ok)));
  EXPECT_EQ(db->stats().open, 1);
}

TEST(pool, connection_killed_in_the_middle_of_a_query) {
  fixture f(1), other(1);
  statement st(long_query(f));
  auto running = start(f.db->query(st));
  other.schema = f.schema;
  ASSERT_TRUE(eventually([&] { return sleepers(other) == 1; }));
  ASSERT_TRUE(
      other.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%' || $1 || '%' "
                "AND pid <> pg_backend_pid()",
                {f.schema + " */ SELECT pg_sleep"}));
  auto r = running.get();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::unavailable);
  EXPECT_TRUE(r.error().retry_after());
  EXPECT_EQ(f.number("SELECT 1 AS v"), 1);
}

TEST(pool, connection_killed_while_idle_is_not_noticed_by_callers) {
  fixture f(1), other(1);
  auto pid = f.number("SELECT pg_backend_pid() AS v");
  ASSERT_TRUE(other.sql("SELECT pg_terminate_backend($1::int)", {pid}));
  ASSERT_TRUE(
      eventually([&] { return other.number("SELECT count(*) AS v FROM pg_stat_activity WHERE pid = $1::int", {pid}) == 0; }));
  EXPECT_NE(f.number("SELECT pg_backend_pid() AS v"), pid);
}

TEST(pool, exhausted_pool_makes_callers_wait_in_order_then_refuses) {
  fixture f;
  auto o = f.options;
  o.size = 1;
  o.acquire_timeout = 300ms;
  auto db = make_pool(threads().get_executor(), o);
  notifier release;
  auto ticket = release.ticket();
  auto holder = start(db->transaction_void([&release, ticket](session& s) -> task<void> {
    statement st("SELECT 1");
    KUBEOPERA_CO_CHECK(co_await s.query(st));
    co_return co_await release.wait(ticket);
  }));
  ASSERT_TRUE(eventually([&] { return db->stats().open == 1 && db->stats().idle == 0; }));
  statement one("SELECT 1 AS v");
  auto refused = wait(db->query(one));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::unavailable);
  EXPECT_EQ(refused.error().reason(), "PoolExhausted");
  EXPECT_EQ(db->stats().waiting, 0);

  o.acquire_timeout = 30s;
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::future<result<void>>> waiting;
  auto patient = make_pool(threads().get_executor(), o);
  notifier go;
  auto first = go.ticket();
  auto held = start(patient->transaction_void([&go, first](session& s) -> task<void> {
    statement st("SELECT 1");
    KUBEOPERA_CO_CHECK(co_await s.query(st));
    co_return co_await go.wait(first);
  }));
  ASSERT_TRUE(eventually([&] { return patient->stats().open == 1; }));
  for (int i = 0; i < 10; ++i) {
    waiting.push_back(start(patient->transaction_void([&, i](session&) -> task<void> {
      std::lock_guard lock(mutex);
      order.push_back(i);
      co_return result<void>();
    })));
    ASSERT_TRUE(eventually([&] { return patient->stats().waiting == i + 1; }));
  }
  go.notify();
  for (auto& w : waiting) EXPECT_TRUE(w.get());
  EXPECT_TRUE(held.get());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  release.notify();
  EXPECT_TRUE(holder.get());
}

TEST(pool, cancelled_waiter_leaves_the_line) {
  fixture f(1);
  notifier go;
  auto first = go.ticket();
  auto held = start(f.db->transaction_void([&go, first](session& s) -> task<void> {
    statement st("SELECT 1");
    KUBEOPERA_CO_CHECK(co_await s.query(st));
    co_return co_await go.wait(first);
  }));
  ASSERT_TRUE(eventually([&] { return f.db->stats().idle == 0; }));
  std::promise<error> out;
  auto waiter = background::start(threads().get_executor(), run_query(f.db, "SELECT 1", out));
  ASSERT_TRUE(eventually([&] { return f.db->stats().waiting == 1; }));
  waiter.stop();
  EXPECT_EQ(out.get_future().get().code(), errc::cancelled);
  EXPECT_EQ(f.db->stats().waiting, 0);
  go.notify();
  EXPECT_TRUE(held.get());
  EXPECT_EQ(f.number("SELECT 1 AS v"), 1);
}

TEST(pool, many_callers_share_few_connections) {
  fixture f(4);
  ASSERT_TRUE(f.sql("CREATE TABLE hits (id bigserial, n int)"));
  std::vector<std::future<result<rows>>> all;
  for (int i = 0; i < 500; ++i) {
    statement st("INSERT INTO hits (n) VALUES ($1)", {i});
    all.push_back(start([](std::shared_ptr<pool> db, statement s) -> task<rows> { co_return co_await db->query(s); }(f.db, st)));
  }
  for (auto& r : all) {
    auto v = r.get();
    EXPECT_TRUE(v) << to_string(v.error());
  }
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM hits"), 500);
  EXPECT_LE(f.db->stats().open, 4);
  auto text = f.all.expose();
  EXPECT_NE(text.find("kubeopera_postgres_connections{pool=\"" + f.schema + "\",state=\"open\"}"), std::string::npos);
  EXPECT_NE(text.find("kubeopera_postgres_connects_total{pool=\"" + f.schema + "\",result=\"ok\"}"), std::string::npos);
}

// Cancels at many points of time; whatever happens the pool stays whole and answers do not get mixed up.
TEST(pool, cancellation_at_any_point_leaves_a_clean_pool) {
  fixture f(3);
  for (int i = 0; i < 200; ++i) {
    statement st("SELECT $1::int AS v, pg_sleep(0.0005)", {i});
    auto limit = std::chrono::microseconds(20 * i);
    auto r = wait(with_deadline<rows>(limit, f.db->query(st)));
    if (r)
      EXPECT_EQ(r->integer(0, "v"), i);
    else
      EXPECT_EQ(r.error().code(), errc::deadline_exceeded) << to_string(r.error());
    EXPECT_EQ(f.number("SELECT $1::int AS v", {-i}), -i);
  }
  EXPECT_EQ(f.db->stats().waiting, 0);
  EXPECT_EQ(f.db->stats().open, f.db->stats().idle);
}

TEST(pool, closed_pool_refuses) {
  fixture f(1);
  EXPECT_EQ(f.number("SELECT 1 AS v"), 1);
  f.db->close();
  auto r = f.sql("SELECT 1");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason(), "PoolClosed");
  EXPECT_EQ(f.db->stats().open, 0);
}

TEST(pool, unreachable_server_is_unavailable_and_fails_fast) {
  fixture f;
  pool_options o;
  o.url = "postgresql:///x?host=/nonexistent";
  auto db = make_pool(threads().get_executor(), o);
  statement st("SELECT 1");
  for (int i = 0; i < 20; ++i) {
    auto r = wait(db->query(st));
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::unavailable);
    EXPECT_EQ(r.error().retry_after(), 2s);
  }
  EXPECT_EQ(db->stats().open, 0);
  o.url = "postgresql://127.0.0.1:1/x";
  auto tcp = make_pool(threads().get_executor(), o);
  auto r = wait(tcp->query(st));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason(), "DatabaseUnreachable");
  o.url = "nonsense://";
  auto bad = make_pool(threads().get_executor(), o);
  auto n = wait(bad->query(st));
  ASSERT_FALSE(n);
  EXPECT_EQ(n.error().code(), errc::invalid_argument) << to_string(n.error());
}
