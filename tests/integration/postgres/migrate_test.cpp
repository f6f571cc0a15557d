// Migrations and the LISTEN connection against a real server.
#include "tests/integration/postgres/kit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

using namespace kubeopera;
using namespace kubeopera::postgres;
using namespace kubeopera::pg_test;

namespace {

std::vector<migration> two() {
  return {
      {1, "apps", "CREATE TABLE apps (id int PRIMARY KEY, note text DEFAULT 'a;b');\nINSERT INTO apps VALUES (1); -- ; done\n"},
      {2, "function",
       "CREATE FUNCTION bump() RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE apps SET id = id + 1; RETURN 1; END $$;\n"
       "SELECT bump();"}};
}

}  // namespace

TEST(migrate, applies_each_once_in_order) {
  fixture f;
  auto n = wait(migrate(*f.db, f.schema, two()));
  ASSERT_TRUE(n) << to_string(n.error());
  EXPECT_EQ(*n, 2);
  auto again = wait(migrate(*f.db, f.schema, two()));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, 0);
  EXPECT_EQ(f.number("SELECT id AS v FROM apps"), 2);
  auto more = two();
  more.push_back({5, "more", "ALTER TABLE apps ADD COLUMN extra int"});
  auto third = wait(migrate(*f.db, f.schema, more));
  ASSERT_TRUE(third);
  EXPECT_EQ(*third, 1);
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM schema_migrations"), 3);
}

TEST(migrate, changed_text_is_refused) {
  fixture f;
  ASSERT_TRUE(wait(migrate(*f.db, f.schema, two())));
  auto changed = two();
  changed[0].sql += " ";
  auto r = wait(migrate(*f.db, f.schema, changed));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::failed_precondition);
  EXPECT_EQ(r.error().reason(), "MigrationChanged");
  EXPECT_NE(r.error().message().find("apps"), std::string::npos);
}

TEST(migrate, failed_migration_leaves_nothing_and_keeps_those_before) {
  fixture f(1);
  auto all = two();
  all.push_back({3, "broken", "CREATE TABLE half (id int); SELECT 1/0; CREATE TABLE other (id int)"});
  auto r = wait(migrate(*f.db, f.schema, all));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message(), "migration 3 broken: division by zero");
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM schema_migrations"), 2);
  EXPECT_EQ(f.number("SELECT count(*) AS v FROM pg_tables WHERE schemaname = $1 AND tablename = 'half'", {f.schema}), 0);
}

TEST(migrate, numbers_must_ascend) {
  fixture f;
  std::vector<migration> all{{2, "b", "SELECT 1"}, {2, "c", "SELECT 1"}};
  auto r = wait(migrate(*f.db, f.schema, all));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::invalid_argument);
}

TEST(migrate, several_processes_at_once) {
  std::string schema = "m_" + make_uuid_v7();
  pool_options o;
  o.url = server().url();
  o.schema = schema;
  o.size = 2;
  std::vector<std::shared_ptr<pool>> pools;
  std::vector<migration> all;
  for (int i = 1; i <= 10; ++i)
    all.push_back(
        {i, "m" + std::to_string(i), "CREATE TABLE t" + std::to_string(i) + " AS SELECT " + std::to_string(i) + " AS v"});
  std::vector<std::future<result<int>>> running;
  for (int i = 0; i < 6; ++i) {
    pools.push_back(make_pool(threads().get_executor(), o));
    running.push_back(start(migrate(*pools.back(), schema, all)));
  }
  int applied = 0;
  for (auto& r : running) {
    auto n = r.get();
    ASSERT_TRUE(n) << to_string(n.error());
    applied += *n;
  }
  EXPECT_EQ(applied, 10);
}

namespace {

struct heard {
  std::mutex mutex;
  std::vector<std::string> payloads;
  std::function<void(std::string_view)> sink() {
    return [this](std::string_view p) {
      std::lock_guard lock(mutex);
      payloads.emplace_back(p);
    };
  }
  std::size_t count(const std::string& what) {
    std::lock_guard lock(mutex);
    return static_cast<std::size_t>(std::count(payloads.begin(), payloads.end(), what));
  }
};

asio::awaitable<void> run_listener(std::shared_ptr<listener> l, std::promise<errc>& end) {
  auto r = co_await l->run();
  end.set_value(r ? errc::internal : r.error().code());
}

}  // namespace

TEST(listener, hears_notifications_and_survives_a_killed_connection) {
  fixture f;
  heard a, b;
  std::promise<errc> end;
  auto l = make_listener(threads().get_executor(), server().url());
  l->subscribe("Odd \"name\"", a.sink());
  auto running = background::start(threads().get_executor(), run_listener(l, end));
  ASSERT_TRUE(eventually([&] { return a.count("") == 1; })) << "told to read everything after the connect";
  ASSERT_TRUE(f.sql("SELECT pg_notify('Odd \"name\"', 'one')"));
  ASSERT_TRUE(eventually([&] { return a.count("one") == 1; }));

  // A second subscription while it runs.
  l->subscribe("b", b.sink());
  ASSERT_TRUE(eventually([&] { return b.count("") == 1; }));
  ASSERT_TRUE(f.sql("SELECT pg_notify('b', 'two')"));
  ASSERT_TRUE(eventually([&] { return b.count("two") == 1; }));
  EXPECT_EQ(a.count("two"), 0u);
  EXPECT_EQ(a.count(""), 1u);

  ASSERT_TRUE(f.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kubeopera listener'"));
  ASSERT_TRUE(eventually([&] { return a.count("") == 2 && b.count("") == 2; })) << "told again after the reconnect";
  ASSERT_TRUE(f.sql("SELECT pg_notify('b', 'three')"));
  EXPECT_TRUE(eventually([&] { return b.count("three") == 1; }));
  running.stop();
  EXPECT_EQ(end.get_future().get(), errc::cancelled);
}
