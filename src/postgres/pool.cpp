// The pool: who gets which connection when, and transactions on top.
#include "src/postgres/connection.hpp"
#include "src/postgres/sqlstate.hpp"

#include <kubeopera/core/backoff.hpp>
#include <kubeopera/postgres/pool.hpp>

#include <algorithm>
#include <deque>
#include <mutex>

namespace kubeopera::inline v1::postgres {

task<void> session::script(const std::string&) {
  co_return error(errc::unsupported, "NoScripts", "this session runs no scripts");
}

namespace {

constexpr int max_repeats = 3;

const statement begin_statement("BEGIN"), commit_statement("COMMIT"), rollback_statement("ROLLBACK");

double in_seconds(duration d) { return std::chrono::duration<double>(d).count(); }

bool worth_repeating(const std::string& state) { return state == "40001" || state == "40P01"; }

// A prepared statement whose table has changed since: a new connection prepares it anew.
bool stale_plan(const error& e, const std::string& state) {
  return state == "0A000" && e.detail().find("cached plan") != std::string::npos;
}

error closed_error() { return connection_error("PoolClosed", "the database is not in use any more", {}); }

class pool_impl;

// A connection on loan. Goes back when it is clean, is dropped when it is not.
class lease {
 public:
  lease(std::shared_ptr<pool_impl> owner, std::unique_ptr<connection> c) : owner_(std::move(owner)), connection_(std::move(c)) {}
  lease(lease&&) noexcept = default;
  lease& operator=(lease&&) = delete;
  ~lease();
  connection& operator*() const noexcept { return *connection_; }
  connection* operator->() const noexcept { return connection_.get(); }
  void drop() noexcept { drop_ = true; }

 private:
  std::shared_ptr<pool_impl> owner_;
  std::unique_ptr<connection> connection_;
  bool drop_ = false;
};

class pool_impl final : public pool, public std::enable_shared_from_this<pool_impl> {
 public:
  pool_impl(asio::any_io_executor executor, pool_options options, logger& log, metrics* all)
      : executor_(std::move(executor)), options_(std::move(options)), log_(log), metrics_(all) {}

  task<rows> query(const statement& st) override {
    std::vector<const statement*> all{&st};
    auto r = co_await repeat(std::move(all));
    if (!r) co_return r.error();
    co_return std::move(r->front());
  }

  task<std::vector<rows>> atomic_pipeline(const std::vector<statement>& list) override {
    std::vector<const statement*> all{&begin_statement};
    for (const auto& st : list) all.push_back(&st);
    all.push_back(&commit_statement);
    auto r = co_await repeat(std::move(all));
    if (!r) co_return r.error();
    r->pop_back();
    r->erase(r->begin());
    co_return r;
  }

  void close() override;
  pool_stats stats() const override;
  void give_back(std::unique_ptr<connection> c, bool drop) noexcept;
  task<std::vector<rows>> exchange(connection& c, std::vector<const statement*> all);

 protected:
  task<void> run_transaction(std::function<task<void>(session&)> body) override;

 private:
  struct waiter {
    notifier granted_or_closed;
    bool granted = false;  // connection set: use it; unset: make one
    std::unique_ptr<connection> conn;
  };
  struct step {
    std::unique_ptr<connection> conn;
    std::shared_ptr<waiter> wait;
  };

  task<lease> acquire();
  result<step> enter();
  task<std::unique_ptr<connection>> stand_in_line(std::shared_ptr<waiter> w);
  result<void> may_connect();
  task<std::unique_ptr<connection>> make_connection();
  void leave_line(const std::shared_ptr<waiter>& w);
  void slot_freed();
  task<std::vector<rows>> repeat(std::vector<const statement*> all);
  task<bool> attempt(std::function<task<void>(session&)>& body, std::optional<error>& failure);
  task<void> pause_before_repeat(int nth);
  void report_locked();

  asio::any_io_executor executor_;
  pool_options options_;
  logger& log_;
  metrics* metrics_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<connection>> idle_;
  std::deque<std::shared_ptr<waiter>> line_;
  int open_ = 0;
  bool closed_ = false;
  backoff pause_{std::chrono::milliseconds(100), std::chrono::seconds(2)};
  steady_time down_until_{};
  error down_cause_;
};

lease::~lease() {
  if (connection_) owner_->give_back(std::move(connection_), drop_);
}

// The session of one transaction; BEGIN travels with its first statement.
class transaction_session final : public session {
 public:
  transaction_session(pool_impl& owner, connection& c) : owner_(owner), connection_(c) {}

  task<rows> query(const statement& st) override {
    std::vector<const statement*> all{&st};
    auto r = co_await run(std::move(all));
    if (!r) co_return r.error();
    co_return std::move(r->front());
  }
  task<std::vector<rows>> pipeline(const std::vector<statement>& list) override {
    if (list.empty()) co_return std::vector<rows>{};
    std::vector<const statement*> all;
    for (const auto& st : list) all.push_back(&st);
    co_return co_await run(std::move(all));
  }
  task<void> script(const std::string& sql) override {
    if (!begun_) {
      begun_ = true;
      std::vector<const statement*> all{&begin_statement};
      auto r = co_await owner_.exchange(connection_, std::move(all));
      if (!r) co_return note(r.error());
    }
    auto r = co_await connection_.script(sql);
    if (!r) co_return note(r.error());
    co_return r;
  }

  bool begun() const noexcept { return begun_; }
  const std::optional<error>& failure() const noexcept { return failure_; }
  bool conflicted() const noexcept { return conflicted_; }

 private:
  task<std::vector<rows>> run(std::vector<const statement*> all) {
    bool first = !std::exchange(begun_, true);
    if (first) all.insert(all.begin(), &begin_statement);
    auto r = co_await owner_.exchange(connection_, std::move(all));
    if (!r) co_return note(r.error());
    if (first) r->erase(r->begin());
    co_return r;
  }
  error note(const error& e) {
    if (!failure_) failure_ = e;
    const auto& state = connection_.last_state();
    if (worth_repeating(state) || stale_plan(e, state)) conflicted_ = true;
    return e;
  }

  pool_impl& owner_;
  connection& connection_;
  bool begun_ = false, conflicted_ = false;
  std::optional<error> failure_;
};

void pool_impl::report_locked() {
  if (!metrics_) return;
  std::string_view name = options_.schema;
  metrics_->gauge("kubeopera_postgres_connections", "Connections of the pool", open_, {{"pool", name}, {"state", "open"}});
  metrics_->gauge("kubeopera_postgres_connections", "Connections of the pool", static_cast<double>(idle_.size()),
                  {{"pool", name}, {"state", "idle"}});
  metrics_->gauge("kubeopera_postgres_waiting", "Callers that wait for a connection", static_cast<double>(line_.size()),
                  {{"pool", name}});
}

result<pool_impl::step> pool_impl::enter() {
  std::lock_guard lock(mutex_);
  step s;
  if (closed_) return closed_error();
  while (line_.empty() && !idle_.empty()) {
    s.conn = std::move(idle_.back());
    idle_.pop_back();
    if (s.conn->fresh()) {
      report_locked();
      return s;
    }
    s.conn.reset();
    --open_;
  }
  if (open_ < options_.size) {
    ++open_;
  } else {
    s.wait = std::make_shared<waiter>();
    line_.push_back(s.wait);
  }
  report_locked();
  return s;
}

task<lease> pool_impl::acquire() {
  auto self = shared_from_this();
  auto began = std::chrono::steady_clock::now();
  auto s = enter();
  if (!s) co_return s.error();
  auto conn = std::move(s->conn);
  if (s->wait) {
    KUBEOPERA_CO_TRY(conn, co_await stand_in_line(s->wait));
  }
  if (!conn) {
    KUBEOPERA_CO_CHECK(may_connect());
    KUBEOPERA_CO_TRY(conn, co_await make_connection());
  }
  if (metrics_)
    metrics_->observe("kubeopera_postgres_acquire_seconds", "Time to get a connection",
                      in_seconds(std::chrono::steady_clock::now() - began), {{"pool", options_.schema}});
  co_return lease(self, std::move(conn));
}

void pool_impl::leave_line(const std::shared_ptr<waiter>& w) {
  std::unique_ptr<connection> unused;
  {
    std::lock_guard lock(mutex_);
    if (!w->granted) {
      std::erase(line_, w);
      report_locked();
      return;
    }
    unused = std::move(w->conn);
  }
  if (unused)
    give_back(std::move(unused), false);
  else
    slot_freed();
}

task<std::unique_ptr<connection>> pool_impl::stand_in_line(std::shared_ptr<waiter> w) {
  auto limit = std::chrono::steady_clock::now() + options_.acquire_timeout;
  while (true) {
    auto ticket = w->granted_or_closed.ticket();
    {
      std::lock_guard lock(mutex_);
      if (w->granted) co_return std::move(w->conn);
      if (closed_) co_return closed_error();
    }
    auto left = limit - std::chrono::steady_clock::now();
    if (left <= duration::zero()) {
      leave_line(w);
      co_return connection_error("PoolExhausted", "no database connection became free in time", {});
    }
    auto r = co_await w->granted_or_closed.wait_for(ticket, left);
    if (!r) {
      leave_line(w);
      co_return r.error();
    }
  }
}

// Gives the caller's slot up while the pause after a failed connect lasts.
result<void> pool_impl::may_connect() {
  std::optional<error> cause;
  {
    std::lock_guard lock(mutex_);
    if (std::chrono::steady_clock::now() < down_until_) cause = down_cause_;
  }
  if (!cause) return {};
  slot_freed();
  return *cause;
}

// The caller holds one slot of open_; it is given up when no connection can be made.
task<std::unique_ptr<connection>> pool_impl::make_connection() {
  connection_options o;
  o.url = options_.url;
  o.schema = options_.schema;
  o.application_name = options_.application_name;
  o.connect_timeout = options_.connect_timeout;
  o.statement_timeout = options_.statement_timeout;
  auto c = co_await connection::open(executor_, std::move(o));
  if (metrics_)
    metrics_->count("kubeopera_postgres_connects_total", "Connections made or tried",
                    {{"pool", options_.schema}, {"result", c ? "ok" : "error"}});
  {
    std::lock_guard lock(mutex_);
    if (c) {
      pause_.reset();
      down_until_ = {};
    } else if (c.error().code() == errc::unavailable) {
      down_until_ = std::chrono::steady_clock::now() + pause_.next();
      down_cause_ = c.error();
    }
  }
  if (!c) {
    log_.warn("no database connection", {{"pool", options_.schema}, {"error", c.error()}});
    slot_freed();
    co_return c.error();
  }
  co_return std::move(*c);
}

// A slot of open_ is free: the first in line may make a connection in it.
void pool_impl::slot_freed() {
  std::shared_ptr<waiter> next;
  {
    std::lock_guard lock(mutex_);
    if (line_.empty() || closed_) {
      --open_;
    } else {
      next = line_.front();
      line_.pop_front();
      next->granted = true;
    }
    report_locked();
  }
  if (next) next->granted_or_closed.notify();
}

void pool_impl::give_back(std::unique_ptr<connection> c, bool drop) noexcept {
  if (drop || !c->usable() || !c->idle()) {
    c.reset();
    return slot_freed();
  }
  std::shared_ptr<waiter> next;
  {
    std::lock_guard lock(mutex_);
    if (closed_) {
      --open_;
    } else if (line_.empty()) {
      idle_.push_back(std::move(c));
    } else {
      next = line_.front();
      line_.pop_front();
      next->granted = true;
      next->conn = std::move(c);
    }
    report_locked();
  }
  if (next) next->granted_or_closed.notify();
}

void pool_impl::close() {
  std::vector<std::unique_ptr<connection>> idle;
  std::deque<std::shared_ptr<waiter>> line;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    idle.swap(idle_);
    line.swap(line_);
    open_ -= static_cast<int>(idle.size());
    report_locked();
  }
  for (auto& w : line) w->granted_or_closed.notify();
}

pool_stats pool_impl::stats() const {
  std::lock_guard lock(mutex_);
  pool_stats s;
  s.open = open_;
  s.idle = static_cast<int>(idle_.size());
  s.waiting = static_cast<int>(line_.size());
  return s;
}

task<std::vector<rows>> pool_impl::exchange(connection& c, std::vector<const statement*> all) {
  auto began = std::chrono::steady_clock::now();
  auto r = co_await c.run(std::move(all));
  if (metrics_) {
    metrics_->observe("kubeopera_postgres_exchange_seconds", "Time of a round trip",
                      in_seconds(std::chrono::steady_clock::now() - began), {{"pool", options_.schema}});
    if (!r)
      metrics_->count("kubeopera_postgres_errors_total", "Failed round trips",
                      {{"pool", options_.schema}, {"code", to_string(r.error().code())}});
  }
  co_return r;
}

task<void> pool_impl::pause_before_repeat(int nth) {
  if (metrics_)
    metrics_->count("kubeopera_postgres_retries_total", "Transactions repeated after a conflict", {{"pool", options_.schema}});
  backoff b(std::chrono::milliseconds(4 << nth), std::chrono::milliseconds(100));
  co_return co_await sleep_for(b.next());
}

// One round trip that is a transaction of its own.
task<std::vector<rows>> pool_impl::repeat(std::vector<const statement*> all) {
  for (int nth = 0;; ++nth) {
    std::optional<result<std::vector<rows>>> r;
    bool again;
    {
      auto c = co_await acquire();
      if (!c) co_return c.error();
      r.emplace(co_await exchange(**c, all));
      if (*r) co_return std::move(*r);
      const std::string state = (*c)->last_state();
      bool stale = stale_plan(r->error(), state);
      if (stale) c->drop();
      again = nth < max_repeats && (stale || worth_repeating(state));
      if ((*c)->usable() && !(*c)->idle()) {
        std::vector<const statement*> undo{&rollback_statement};
        auto undone = co_await exchange(**c, std::move(undo));
        if (!undone) c->drop();
      }
    }
    if (!again) co_return r->error();
    KUBEOPERA_CO_CHECK(co_await pause_before_repeat(nth));
  }
}

// One run of a transaction. True when it should be repeated.
task<bool> pool_impl::attempt(std::function<task<void>(session&)>& body, std::optional<error>& failure) {
  auto c = co_await acquire();
  if (!c) co_return c.error();
  transaction_session s(*this, **c);
  auto r = co_await body(s);
  if (r && s.failure()) r = *s.failure();  // body went on after a failed statement: there is nothing to commit
  if (r && s.begun()) {
    std::vector<const statement*> last{&commit_statement};
    auto committed = co_await exchange(**c, std::move(last));
    if (!committed) {
      r = committed.error();
      if ((*c)->last_state().empty() && r.error().code() == errc::unavailable)
        r = connection_error("CommitUnknown", "it is not known whether the transaction was committed", r.error().detail());
    }
    if (!committed && worth_repeating((*c)->last_state())) {
      failure = r.error();
      co_return true;
    }
  }
  if (r) co_return false;
  failure = r.error();
  if (s.conflicted() && !worth_repeating((*c)->last_state())) c->drop();
  if ((*c)->usable() && !(*c)->idle()) {
    std::vector<const statement*> undo{&rollback_statement};
    auto undone = co_await exchange(**c, std::move(undo));
    if (!undone) c->drop();
  }
  co_return s.conflicted();
}

task<void> pool_impl::run_transaction(std::function<task<void>(session&)> body) {
  for (int nth = 0;; ++nth) {
    std::optional<error> failure;
    auto again = co_await attempt(body, failure);
    if (!again) co_return again.error();
    if (!failure) co_return result<void>();
    if (!*again || nth == max_repeats) co_return *failure;
    KUBEOPERA_CO_CHECK(co_await pause_before_repeat(nth));
  }
}

}  // namespace

std::shared_ptr<pool> make_pool(asio::any_io_executor executor, pool_options options, logger& log, metrics* all) {
  return std::make_shared<pool_impl>(std::move(executor), std::move(options), log, all);
}

}  // namespace kubeopera::inline v1::postgres
