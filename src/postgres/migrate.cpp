// Migrations: each in its own transaction, under one advisory lock a schema.
#include "src/postgres/connection.hpp"

#include <kubeopera/postgres/pool.hpp>

#include <cstdio>

namespace kubeopera::inline v1::postgres {
namespace {

// FNV-1a, 64 bits: notices an edited file; it is no protection against one made to collide.
std::string checksum(std::string_view text) {
  std::uint64_t h = 14695981039346656037u;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
  char out[20];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}

std::vector<statement> enter(const std::string& schema) {
  std::vector<statement> all;
  all.emplace_back("SELECT set_config('statement_timeout', '0', true)");
  all.emplace_back("SELECT pg_advisory_xact_lock(hashtextextended('kubeopera migrations of ' || $1, 0))", params{schema});
  return all;
}

task<void> prepare_schema(session& s, std::string schema) {
  KUBEOPERA_CO_CHECK(co_await s.pipeline(enter(schema)));
  std::string name = quote_identifier(schema);
  KUBEOPERA_CO_CHECK(
      co_await s.script("SET LOCAL client_min_messages = warning;"
                        "CREATE SCHEMA IF NOT EXISTS " +
                        name +
                        ";"
                        "CREATE TABLE IF NOT EXISTS " +
                        name +
                        ".schema_migrations ("
                        "number int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,"
                        "applied_at timestamptz NOT NULL DEFAULT now())"));
  co_return result<void>();
}

// 1 when it was applied now, 0 when it had been before.
task<int> apply(session& s, std::string schema, migration m) {
  std::string table = quote_identifier(schema) + ".schema_migrations";
  auto first = enter(schema);
  first.emplace_back("SELECT set_config('search_path', $1, true)", params{quote_identifier(schema) + ", public"});
  first.emplace_back("SELECT name, checksum FROM " + table + " WHERE number = $1", params{m.number});
  auto seen = co_await s.pipeline(first);
  if (!seen) co_return seen.error();
  const auto& row = seen->back();
  std::string sum = checksum(m.sql);
  if (!row.empty()) {
    if (row.text(0, "checksum") == sum) co_return 0;
    co_return error(errc::failed_precondition, "MigrationChanged", "the text of an applied migration has changed")
        .with_context("schema", schema)
        .with_detail("applied as " + row.str(0, "name"));
  }
  KUBEOPERA_CO_CHECK(co_await s.script(m.sql));
  statement note("INSERT INTO " + table + " (number, name, checksum) VALUES ($1, $2, $3)", params{m.number, m.name, sum});
  KUBEOPERA_CO_CHECK(co_await s.query(note));
  co_return 1;
}

}  // namespace

task<int> migrate(pool& p, const std::string& schema, const std::vector<migration>& all) {
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].number <= all[i - 1].number)
      co_return error(errc::invalid_argument, "MigrationOrder", "migration numbers must ascend: " + all[i].name);
  std::function<task<void>(session&)> prepare = [&schema](session& s) { return prepare_schema(s, schema); };
  KUBEOPERA_CO_CHECK(co_await p.transaction_void(std::move(prepare)));
  int applied = 0;
  for (const auto& m : all) {
    std::function<task<int>(session&)> step = [&schema, &m](session& s) { return apply(s, schema, m); };
    auto done = co_await p.transaction<int>(std::move(step));
    if (!done) co_return std::move(done).error().prefixed("migration " + std::to_string(m.number) + " " + m.name);
    applied += *done;
  }
  co_return applied;
}

}  // namespace kubeopera::inline v1::postgres
