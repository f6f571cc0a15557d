// PostgreSQL: a pool of asynchronous connections, transactions, pipelined statements.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::postgres {

/// A parameter in text form; nullopt is NULL. Implicit from the usual types.
class param {
 public:
  param(std::nullopt_t) {}
  param(std::string text) : text_(std::move(text)) {}
  param(std::string_view text) : text_(std::string(text)) {}
  param(const char* text) : text_(std::string(text)) {}
  param(bool v) : text_(v ? "t" : "f") {}
  param(int v) : text_(std::to_string(v)) {}
  param(std::int64_t v) : text_(std::to_string(v)) {}
  param(system_time t) : text_(format_rfc3339_micros(t)) {}
  param(const std::optional<std::string>& t) : text_(t) {}
  /// A text[] parameter.
  param(const std::vector<std::string>& array);
  const std::optional<std::string>& text() const noexcept { return text_; }

 private:
  std::optional<std::string> text_;
};

using params = std::vector<param>;

/// The rows of one statement, read by column name. Values are PostgreSQL's text form.
class rows {
 public:
  rows();
  rows(rows&&) noexcept;
  rows& operator=(rows&&) noexcept;
  ~rows();
  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  /// Rows touched by an INSERT, UPDATE or DELETE.
  std::size_t affected() const noexcept;
  /// Column access; throws std::out_of_range for a column that the statement does not have.
  bool is_null(std::size_t row, std::string_view column) const;
  std::string_view text(std::size_t row, std::string_view column) const;
  std::string str(std::size_t row, std::string_view column) const { return std::string(text(row, column)); }
  std::optional<std::string> opt(std::size_t row, std::string_view column) const;
  std::int64_t integer(std::size_t row, std::string_view column) const;
  bool boolean(std::size_t row, std::string_view column) const;
  /// A timestamptz column.
  system_time time(std::size_t row, std::string_view column) const;

  struct impl;
  explicit rows(std::unique_ptr<impl> p);

 private:
  std::unique_ptr<impl> impl_;
};

/// One statement with its parameters. Statements are prepared on first use of their text.
struct statement {
  statement(std::string s, params p = {}) : sql(std::move(s)), args(std::move(p)) {}
  std::string sql;
  params args;
};

/// A session inside one transaction (or one leased connection). Not thread-safe.
class session {
 public:
  virtual ~session() = default;
  /// Errors by SQLSTATE: 23505 already_exists (reason = constraint name), 23503/23514 failed_precondition (reason =
  /// constraint name), 40001/40P01 conflict (transient), 57P0x/08xxx unavailable, 22xxx invalid_argument, else internal.
  virtual task<rows> query(const statement& st) = 0;
  /// All in one round trip, in order; the first error ends it.
  virtual task<std::vector<rows>> pipeline(const std::vector<statement>& all) = 0;
  /// SQL text of any number of statements without parameters (a migration), inside this transaction. No time limit.
  virtual task<void> script(const std::string& sql);
};

struct pool_options {
  pool_options() = default;
  std::string url;     ///< postgres:// URL or keyword string
  std::string schema;  ///< becomes search_path; made by migrate()
  int size = 8;
  duration connect_timeout = std::chrono::seconds(5);
  duration acquire_timeout = std::chrono::seconds(10);
  duration statement_timeout = std::chrono::seconds(30);
  std::string application_name = "kubeopera";
};

/// What a pool is doing.
struct pool_stats {
  int open = 0;     ///< connections, those being made included
  int idle = 0;     ///< of these, free to use
  int waiting = 0;  ///< callers in the queue
};

/// Thread-safe.
class pool {
 public:
  virtual ~pool() = default;
  /// One statement in a transaction of its own.
  virtual task<rows> query(const statement& st) = 0;
  /// BEGIN, all statements, COMMIT in one round trip.
  virtual task<std::vector<rows>> atomic_pipeline(const std::vector<statement>& all) = 0;
  /// body in one transaction: commits when it returns a value, rolls back when it returns an error. Repeats body up to three
  /// times on conflict (40001, 40P01). Errors: those of body, unavailable (no connection within the time).
  template <class T>
  task<T> transaction(std::function<task<T>(session&)> body) {
    std::optional<T> out;
    std::function<task<void>(session&)> wrapped = [&out, &body](session& s) { return store<T>(out, body, s); };
    auto done = co_await run_transaction(std::move(wrapped));
    if (!done) co_return done.error();
    co_return std::move(*out);
  }
  task<void> transaction_void(std::function<task<void>(session&)> body) { return run_transaction(std::move(body)); }
  /// Closes idle connections; later calls fail as unavailable.
  virtual void close() = 0;
  virtual pool_stats stats() const { return {}; }

 protected:
  virtual task<void> run_transaction(std::function<task<void>(session&)> body) = 0;

 private:
  template <class T>
  static task<void> store(std::optional<T>& out, const std::function<task<T>(session&)>& body, session& s) {
    auto r = co_await body(s);
    if (!r) co_return r.error();
    out.emplace(std::move(*r));
    co_return result<void>();
  }
};

/// Connects lazily; callers that find all connections busy wait in order. A failed connect makes callers fail at once
/// (unavailable, retry_after 2 s) until a growing pause of at most 2 s is over. A statement under way when its caller is
/// cancelled ends with its connection: the server notices within a second.
/// Metrics (label pool = schema): kubeopera_postgres_connections{state=open|idle}, kubeopera_postgres_waiting,
/// kubeopera_postgres_acquire_seconds, kubeopera_postgres_exchange_seconds, kubeopera_postgres_connects_total{result},
/// kubeopera_postgres_errors_total{code}, kubeopera_postgres_retries_total.
/// Lifetime: executor's context, log and all must outlive the pool.
std::shared_ptr<pool> make_pool(asio::any_io_executor executor, pool_options options, logger& log = logger::none(),
                                metrics* all = nullptr);

/// One numbered migration.
struct migration {
  int number;
  std::string name;
  std::string sql;
};
/// Applies, in order and each in its transaction under an advisory lock, what the schema's table schema_migrations lacks.
/// Several processes may do it at once. Returns how many it applied.
/// Errors: failed_precondition (reason MigrationChanged: an applied migration's text changed, by checksum),
/// invalid_argument (numbers not ascending), those of the statements (prefixed with the migration's name).
task<int> migrate(pool& p, const std::string& schema, const std::vector<migration>& all);

/// One LISTEN connection for a process. run() reconnects for ever; after each (re)connect and on every notification of
/// channel, on_notify is called (payload empty after a reconnect: read everything again). Thread-safe subscribe.
class listener {
 public:
  virtual ~listener() = default;
  /// on_notify runs on run()'s strand and must not block.
  virtual void subscribe(std::string channel, std::function<void(std::string_view payload)> on_notify) = 0;
  /// Errors: cancelled.
  virtual task<void> run() = 0;
};
std::shared_ptr<listener> make_listener(asio::any_io_executor executor, std::string url, logger& log = logger::none());

}  // namespace kubeopera::inline v1::postgres
