// The outbox and its relay on a real database: order, crashes, fencing, retries, dead letters.
#include "tests/integration/postgres/kit.hpp"

#include <kubeopera/events/outbox_table.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

using namespace kubeopera;
using namespace kubeopera::postgres;
using namespace kubeopera::events;
using namespace kubeopera::pg_test;

namespace {

struct delivery {
  std::string id, aggregate;
  std::int64_t n;
};

// What arrived, and what to answer.
struct receiver {
  std::mutex mutex;
  std::vector<delivery> got;
  std::set<std::string> busy;  // aggregates
  int overlaps = 0;
  std::function<task<void>(const outbox_row&, int nth)> script;

  static task<void> take(receiver& r, outbox_row row) {
    int nth = 0;
    {
      std::lock_guard lock(r.mutex);
      r.got.push_back({row.id, row.aggregate, json::get_int(row.payload, {"n"})});
      for (const auto& d : r.got) nth += d.id == row.id ? 1 : 0;
      if (!r.busy.insert(row.aggregate).second) ++r.overlaps;
    }
    result<void> out;
    if (r.script) out = co_await r.script(row, nth);
    std::lock_guard lock(r.mutex);
    r.busy.erase(row.aggregate);
    co_return out;
  }
  outbox_sink sink() {
    return [this](const outbox_row& row) { return take(*this, row); };
  }
  std::size_t count() {
    std::lock_guard lock(mutex);
    return got.size();
  }
};

asio::awaitable<void> run_relay(std::shared_ptr<outbox_relay> r) {
  auto end = co_await r->run();
  if (end || end.error().code() != errc::cancelled) throw std::logic_error("a relay ends only when it is cancelled");
}

struct running_relay {
  std::shared_ptr<outbox_relay> it;
  background body;
  explicit running_relay(std::shared_ptr<outbox_relay> r)
      : it(std::move(r)), body(background::start(threads().get_executor(), run_relay(it))) {}
  ~running_relay() {
    body.stop();
    EXPECT_TRUE(wait(body.join()));
  }
  running_relay(const running_relay&) = delete;
  running_relay& operator=(const running_relay&) = delete;
};

struct outbox_fixture : fixture {
  relay_options relay;
  explicit outbox_fixture(int connections = 6) : fixture(connections) {
    auto made = wait(migrate(*db, schema, {{1, "outbox", outbox_sql}, {2, "outbox indexes", outbox_indexes_sql}}));
    if (!made) throw std::runtime_error(to_string(made.error()));
    relay.first_retry = 2ms;
    relay.max_retry = 20ms;
  }
  void add(const std::string& aggregate, int n) {
    json::object payload;
    payload["n"] = n;
    std::vector<statement> all{enqueue(aggregate, "test", payload)};
    ASSERT_TRUE(wait(db->atomic_pipeline(all)));
  }
  void add_many(int aggregates, int each) {
    std::vector<statement> all;
    for (int n = 0; n < each; ++n)
      for (int a = 0; a < aggregates; ++a) {
        json::object payload;
        payload["n"] = n;
        all.push_back(enqueue("agg" + std::to_string(a), "test", payload));
      }
    ASSERT_TRUE(wait(db->atomic_pipeline(all)));
  }
  std::shared_ptr<outbox_relay> make(receiver& r) {
    return make_outbox_relay(threads().get_executor(), db, r.sink(), relay, clock::real(), logger::none(), &all);
  }
  std::int64_t open() { return number("SELECT count(*) AS v FROM outbox WHERE done_at IS NULL AND dead_at IS NULL"); }
};

// The first mark fails as if the database were away.
class forgetful_table final : public outbox_table {
 public:
  explicit forgetful_table(std::shared_ptr<outbox_table> inner) : inner_(std::move(inner)) {}
  task<outbox_claim> claim(std::string token, duration lease, int most) override { return inner_->claim(token, lease, most); }
  task<void> renew(std::string token, std::vector<std::int64_t> rows) override { return inner_->renew(token, rows); }
  task<bool> mark(outbox_row row, std::string token, outbox_mark m) override {
    if (failed_.exchange(true)) co_return co_await inner_->mark(row, token, m);
    co_return error(errc::unavailable, "Away", "the database is away");
  }
  task<void> free(std::string token) override { return inner_->free(token); }
  task<std::size_t> trim(std::chrono::hours keep) override { return inner_->trim(keep); }
  task<outbox_depth> depth() override { return inner_->depth(); }

 private:
  std::shared_ptr<outbox_table> inner_;
  std::atomic<bool> failed_{false};
};

// Numbers of one aggregate in the order of first arrival.
void expect_order(receiver& r, std::size_t aggregates, int each) {
  std::map<std::string, std::int64_t> next;
  std::set<std::string> seen;
  for (const auto& d : r.got) {
    if (!seen.insert(d.id).second) continue;
    EXPECT_EQ(d.n, next[d.aggregate]) << d.aggregate;
    ++next[d.aggregate];
  }
  EXPECT_EQ(next.size(), aggregates);
  for (const auto& [name, n] : next) EXPECT_EQ(n, each) << name;
}

}  // namespace

TEST(outbox, rolled_back_cause_sends_nothing_and_a_committed_one_does) {
  outbox_fixture f;
  receiver r;
  auto failed = wait(f.db->transaction_void([](session& s) -> task<void> {
    auto st = enqueue("a", "test", {});
    KUBEOPERA_CO_CHECK(co_await s.query(st));
    co_return error(errc::conflict, "No", "no");
  }));
  ASSERT_FALSE(failed);
  f.add("a", 1);
  running_relay relay(f.make(r));
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  ASSERT_EQ(r.count(), 1u);
  EXPECT_TRUE(is_uuid(r.got[0].id));
}

TEST(outbox, wake_delivers_at_once) {
  outbox_fixture f;
  f.relay.poll = 1h;
  receiver r;
  running_relay relay(f.make(r));
  for (int i = 0; i < 20; ++i) {
    f.add("a", i);
    relay.it->wake();
    ASSERT_TRUE(eventually([&] { return r.count() == static_cast<std::size_t>(i) + 1; }));
  }
  expect_order(r, 1, 20);
}

TEST(outbox, order_per_aggregate_with_two_relays_and_failures) {
  outbox_fixture f;
  receiver r;
  std::atomic<int> turn{0};
  r.script = [&turn](const outbox_row&, int) -> task<void> {
    if (++turn % 3 == 0) co_return error(errc::unavailable, "Flaky", "flaky");
    co_return result<void>();
  };
  f.add_many(10, 20);
  {
    running_relay one(f.make(r)), two(f.make(r));
    ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  }
  EXPECT_EQ(r.overlaps, 0);
  EXPECT_GT(r.got.size(), 200u);
  expect_order(r, 10, 20);
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM outbox WHERE done_at IS NOT NULL AND claim IS NULL AND last_error IS NULL"), 200);
}

TEST(outbox, failing_row_holds_up_its_aggregate_only) {
  outbox_fixture f;
  receiver r;
  std::atomic<bool> healed{false};
  r.script = [&healed](const outbox_row& row, int) -> task<void> {
    if (row.aggregate == "bad" && !healed) co_return error(errc::unavailable, "Down", "down");
    co_return result<void>();
  };
  f.add("bad", 0);
  f.add("bad", 1);
  for (int i = 0; i < 10; ++i) f.add("good", i);
  running_relay relay(f.make(r));
  ASSERT_TRUE(eventually([&] { return f.open() == 2; }));
  EXPECT_GE(f.number("SELECT attempts AS v FROM outbox WHERE aggregate = 'bad' ORDER BY seq LIMIT 1"), 1);
  EXPECT_EQ(f.number("SELECT attempts AS v FROM outbox WHERE aggregate = 'bad' ORDER BY seq DESC LIMIT 1"), 0);
  healed = true;
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  EXPECT_EQ(r.overlaps, 0);
}

TEST(outbox, slow_delivery_does_not_hold_up_others) {
  outbox_fixture f;
  receiver r;
  notifier go;
  auto ticket = go.ticket();
  r.script = [&go, ticket](const outbox_row& row, int) -> task<void> {
    if (row.aggregate == "slow") co_return co_await go.wait(ticket);
    co_return result<void>();
  };
  f.add("slow", 0);
  running_relay relay(f.make(r));
  ASSERT_TRUE(eventually([&] { return r.count() == 1; }));
  for (int i = 0; i < 30; ++i) f.add("fast", i);
  relay.it->wake();
  ASSERT_TRUE(eventually([&] { return f.open() == 1; }));
  go.notify();
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
}

TEST(outbox, long_delivery_keeps_its_lease) {
  outbox_fixture f;
  f.relay.lease = 300ms;
  f.relay.poll = 20ms;
  receiver r;
  r.script = [](const outbox_row&, int) -> task<void> { co_return co_await sleep_for(1500ms); };
  f.add("a", 0);
  running_relay one(f.make(r)), two(f.make(r));
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  EXPECT_EQ(r.count(), 1u) << "five leases long, and nobody took it over";
}

TEST(outbox, a_row_that_could_not_be_marked_comes_again_though_the_relay_is_busy) {
  outbox_fixture f;
  f.relay.lease = 300ms;
  f.relay.poll = 20ms;
  receiver r;
  std::atomic<bool> let_go{false};
  r.script = [&](const outbox_row& row, int) -> task<void> {
    while (row.aggregate == "slow" && !let_go) KUBEOPERA_CO_CHECK(co_await sleep_for(5ms));
    co_return result<void>();
  };
  f.add("slow", 0);
  f.add("quick", 0);
  auto table = std::make_shared<forgetful_table>(make_outbox_table(f.db));
  running_relay one(make_outbox_relay(threads().get_executor(), table, r.sink(), f.relay));
  EXPECT_TRUE(eventually([&] { return f.open() == 1; })) << "the claims of what is under way are renewed, no others";
  EXPECT_EQ(r.count(), 3u);
  let_go = true;
  EXPECT_TRUE(eventually([&] { return f.open() == 0; }));
}

TEST(outbox, dead_letters_keep_their_cause_and_can_be_revived) {
  outbox_fixture f;
  receiver r;
  std::atomic<int> told{0};
  f.relay.on_dead = [&told](const outbox_row&, const error& e) {
    if (e.reason() == "Poison") ++told;
  };
  r.script = [](const outbox_row& row, int nth) -> task<void> {
    if (json::get_int(row.payload, {"n"}) == 0 && nth == 1) co_return error(errc::invalid_argument, "Poison", "cannot be");
    co_return result<void>();
  };
  f.add("a", 0);
  f.add("a", 1);
  running_relay relay(f.make(r));
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  auto dead = f.sql("SELECT id, last_error FROM outbox WHERE dead_at IS NOT NULL");
  ASSERT_TRUE(dead);
  ASSERT_EQ(dead->size(), 1u);
  EXPECT_NE(dead->text(0, "last_error").find("Poison"), std::string_view::npos);
  EXPECT_EQ(told, 1);
  EXPECT_NE(f.all.expose().find("kubeopera_outbox_dead_total{topic=\"test\"} 1"), std::string::npos);
  auto again = wait(f.db->query(revive(dead->str(0, "id"))));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->affected(), 1u);
  relay.it->wake();
  ASSERT_TRUE(eventually([&] { return f.number("SELECT count(*) AS v FROM outbox WHERE done_at IS NOT NULL") == 2; }));
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM outbox WHERE dead_at IS NOT NULL"), 0);
}

TEST(outbox, exception_of_the_sink_is_tried_again) {
  outbox_fixture f;
  receiver r;
  r.script = [](const outbox_row&, int nth) -> task<void> {
    if (nth == 1) throw std::runtime_error("broken");
    co_return result<void>();
  };
  f.add("a", 0);
  running_relay relay(f.make(r));
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  EXPECT_EQ(r.count(), 2u);
}

// The relay's process dies after the sink has done its work and before the row is marked: its pool goes away under it.
TEST(outbox, crash_between_delivery_and_mark_delivers_again_with_the_same_id) {
  outbox_fixture f;
  f.relay.lease = 200ms;
  f.relay.poll = 20ms;
  receiver r;
  auto doomed_pool = make_pool(threads().get_executor(), f.options);
  r.script = [doomed_pool](const outbox_row&, int nth) -> task<void> {
    if (nth == 1) doomed_pool->close();
    co_return result<void>();
  };
  f.add("a", 0);
  f.add("a", 1);
  {
    running_relay doomed(make_outbox_relay(threads().get_executor(), doomed_pool, r.sink(), f.relay));
    ASSERT_TRUE(eventually([&] { return r.count() == 1; }));
  }
  EXPECT_EQ(f.open(), 2);
  r.script = nullptr;
  running_relay next(f.make(r));
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  ASSERT_EQ(r.count(), 3u);
  EXPECT_EQ(r.got[0].id, r.got[1].id);
  expect_order(r, 1, 2);
}

// A relay that was paused for longer than its lease comes back and reports a failure: the row's new owner has finished it.
TEST(outbox, paused_relay_is_fenced) {
  outbox_fixture f;
  f.relay.lease = 10s;
  receiver paused, other;
  notifier go;
  auto ticket = go.ticket();
  paused.script = [&go, ticket](const outbox_row&, int) -> task<void> {
    KUBEOPERA_CO_CHECK(co_await go.wait(ticket));
    co_return error(errc::invalid_argument, "Late", "would make it a dead letter");
  };
  f.add("a", 0);
  running_relay first(f.make(paused));
  ASSERT_TRUE(eventually([&] { return paused.count() == 1; }));
  ASSERT_TRUE(f.sql("UPDATE outbox SET claimed_at = now() - interval '1 hour'"));
  running_relay second(f.make(other));
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  EXPECT_EQ(other.count(), 1u);
  go.notify();
  ASSERT_TRUE(
      eventually([&] { return f.all.expose().find("kubeopera_outbox_fenced_total{topic=\"test\"} 1") != std::string::npos; }));
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM outbox WHERE dead_at IS NULL AND done_at IS NOT NULL"), 1);
}

TEST(outbox, stopped_relay_frees_its_rows_at_once) {
  outbox_fixture f;
  f.relay.lease = 1h;
  f.relay.poll = 20ms;
  receiver r;
  r.script = [](const outbox_row&, int nth) -> task<void> {
    if (nth == 1) co_return co_await sleep_for(1h);
    co_return result<void>();
  };
  f.add("a", 0);
  {
    running_relay first(f.make(r));
    ASSERT_TRUE(eventually([&] { return r.count() == 1; }));
  }
  running_relay second(f.make(r));
  EXPECT_TRUE(eventually([&] { return f.open() == 0; }));
}

TEST(outbox, database_connections_killed_under_way) {
  outbox_fixture f;
  f.relay.lease = 300ms;
  f.relay.poll = 20ms;
  auto options = f.options;
  options.application_name = "relay of " + f.schema.substr(0, 40);
  auto mortal = make_pool(threads().get_executor(), options);
  receiver r;
  f.add_many(5, 40);
  running_relay relay(make_outbox_relay(threads().get_executor(), mortal, r.sink(), f.relay));
  for (int i = 0; i < 10; ++i) {
    auto before = r.count();
    ASSERT_TRUE(
        f.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", {options.application_name}));
    ASSERT_TRUE(eventually([&] { return r.count() > before || f.open() == 0; }));
  }
  ASSERT_TRUE(eventually([&] { return f.open() == 0; }));
  EXPECT_EQ(r.overlaps, 0);
  expect_order(r, 5, 40);
}

TEST(outbox, draining_reads_only_what_is_open) {
  outbox_fixture f;
  ASSERT_TRUE(f.sql(
      "INSERT INTO outbox (id, aggregate, topic, payload, done_at) SELECT gen_random_uuid(), 'old' || (n % 1000), 'test', '{}', "
      "now() FROM generate_series(1, 100000) n"));
  f.add_many(5, 5);
  ASSERT_TRUE(f.sql("ANALYZE outbox"));
  receiver r;
  auto scans = [&f] {
    return f.number("SELECT coalesce(seq_scan, 0) AS v FROM pg_stat_user_tables WHERE relname = 'outbox' AND schemaname = $1",
                    {f.schema});
  };
  auto open_index = [&f] {
    return f.number("SELECT idx_scan AS v FROM pg_stat_user_indexes WHERE indexrelname = 'outbox_due' AND schemaname = $1",
                    {f.schema});
  };
  auto before = scans();
  {
    running_relay relay(f.make(r));
    ASSERT_TRUE(eventually([&] { return r.count() == 25; }));
    ASSERT_TRUE(eventually([&] { return open_index() > 0; }));
  }
  // Draining 25 rows takes more than 25 statements. Scans of making the table and its indexes may be counted late: a handful.
  EXPECT_LT(scans() - before, 10) << "no scan over all rows";
  expect_order(r, 5, 5);
}

// What the statistics do not know of must not make the planner go over all open rows for each of them.
TEST(outbox, a_burst_into_a_quiet_table_is_not_read_again_for_every_row) {
  outbox_fixture f(1);  // so that the counting is of the connection that claims
  ASSERT_TRUE(f.sql(
      "INSERT INTO outbox (id, aggregate, topic, payload, done_at) SELECT gen_random_uuid(), 'old' || n, 'test', '{}', now() "
      "FROM generate_series(1, 20000) n"));
  ASSERT_TRUE(f.sql("ANALYZE outbox"));
  ASSERT_TRUE(
      f.sql("INSERT INTO outbox (id, aggregate, topic, payload) SELECT gen_random_uuid(), 'new' || n, 'test', '{}' "
            "FROM generate_series(1, 2000) n"));
  auto entries_read = [&f] {
    EXPECT_TRUE(f.sql("SELECT pg_stat_force_next_flush()"));
    return f.number(
        "SELECT sum(idx_tup_read)::bigint AS v FROM pg_stat_user_indexes WHERE relname = 'outbox' AND schemaname = $1",
        {f.schema});
  };
  auto before = entries_read();
  auto table = make_outbox_table(f.db);
  auto claimed = wait(table->claim(make_uuid_v4(), 10s, 64));
  ASSERT_TRUE(claimed) << to_string(claimed.error());
  EXPECT_EQ(claimed->rows.size(), 64u);
  auto read = entries_read() - before;
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 2000) << "64 rows, their aggregates' first rows, and the first rows that may be due next";
}

namespace {

asio::awaitable<void> run_listener(std::shared_ptr<listener> l) {
  auto r = co_await l->run();
  if (r || r.error().code() != errc::cancelled) throw std::logic_error("a listener ends only when it is cancelled");
}

asio::awaitable<void> run_signal(std::shared_ptr<outbox_signal> s) {
  auto r = co_await s->run();
  if (r || r.error().code() != errc::cancelled) throw std::logic_error("a signal ends only when it is cancelled");
}

}  // namespace

TEST(outbox, relay_of_another_process_is_woken_by_few_notifications) {
  outbox_fixture f;
  f.relay.poll = 1h;
  receiver r;
  running_relay relay(f.make(r));
  std::atomic<int> heard{0};
  auto ears = make_listener(threads().get_executor(), server().url());
  auto channel = "outbox_" + f.schema;
  ears->subscribe(channel, [&heard, it = relay.it](std::string_view) {
    ++heard;
    it->wake();
  });
  auto listening = background::start(threads().get_executor(), run_listener(ears));
  ASSERT_TRUE(eventually([&] { return heard == 1; })) << "once for the connect";
  auto signal = make_outbox_signal(f.db, channel);
  auto signalling = background::start(threads().get_executor(), run_signal(signal));
  f.add("a", 0);
  signal->signal();
  ASSERT_TRUE(eventually([&] { return r.count() == 1; }));
  auto before = heard.load();
  f.add("a", 1);
  for (int i = 0; i < 10'000; ++i) signal->signal();
  ASSERT_TRUE(eventually([&] { return r.count() == 2; }));
  EXPECT_LT(heard - before, 1000);
  signalling.stop();
  listening.stop();
  EXPECT_TRUE(wait(signalling.join()));
  EXPECT_TRUE(wait(listening.join()));
}
