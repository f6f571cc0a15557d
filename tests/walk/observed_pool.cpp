// SQL: the commit is the effect. A connection cut before it rolls the transaction back, as the server would.
#include "tests/walk/observed.hpp"

namespace kubeopera::walk {

namespace {

using postgres::rows;
using postgres::session;
using postgres::statement;

bool writes(const std::string& sql) { return !sql.starts_with("select") && !sql.starts_with("SELECT"); }

std::string label_of(const std::string& sql) {
  auto line = sql.substr(0, 60);
  for (char& c : line)
    if (c == '\n') c = ' ';
  return line;
}

error connection_cut() {
  return error(errc::unavailable, "ConnectionLost", "the connection to the database was cut")
      .with_retry_after(std::chrono::seconds(1));
}

// What a transaction has changed so far.
struct changes {
  bool any = false;
  std::string label;
  void add(const std::string& sql, std::size_t affected) {
    if (!writes(sql) || affected == 0) return;
    if (!any) label = label_of(sql);
    any = true;
  }
  void add(const std::vector<statement>& all, const std::vector<rows>& answers) {
    for (std::size_t i = 0; i < all.size(); ++i) add(all[i].sql, answers[i].affected());
  }
};

class observed_session final : public session {
 public:
  observed_session(session& inner, changes& made) : inner_(inner), made_(made) {}
  task<rows> query(const statement& st) override {
    auto r = co_await inner_.query(st);
    if (r) made_.add(st.sql, r->affected());
    co_return r;
  }
  task<std::vector<rows>> pipeline(const std::vector<statement>& all) override {
    auto r = co_await inner_.pipeline(all);
    if (r) made_.add(all, *r);
    co_return r;
  }
  task<void> script(const std::string& sql) override {
    auto r = co_await inner_.script(sql);
    if (r) made_.add(sql, 1);
    co_return r;
  }

 private:
  session& inner_;
  changes& made_;
};

class observed_pool final : public postgres::pool {
 public:
  observed_pool(std::shared_ptr<postgres::pool> inner, effects& seen) : inner_(std::move(inner)), seen_(seen) {}

  task<rows> query(const statement& st) override {
    if (!writes(st.sql)) co_return co_await inner_->query(st);
    std::vector<statement> one{st};
    if (seen_.counts_before()) {
      auto all = co_await in_transaction(one);
      if (!all) co_return all.error();
      co_return std::move(all->front());
    }
    auto r = co_await inner_->query(st);
    if (r && r->affected() > 0 && seen_.after(kind::sql, label_of(st.sql))) co_return connection_cut();
    co_return r;
  }

  task<std::vector<rows>> atomic_pipeline(const std::vector<statement>& all) override {
    if (seen_.counts_before()) co_return co_await in_transaction(all);
    auto r = co_await inner_->atomic_pipeline(all);
    if (!r) co_return r;
    changes made;
    made.add(all, *r);
    if (made.any && seen_.after(kind::sql, made.label)) co_return connection_cut();
    co_return r;
  }

  void close() override { inner_->close(); }
  postgres::pool_stats stats() const override { return inner_->stats(); }

 protected:
  task<void> run_transaction(std::function<task<void>(session&)> body) override {
    changes made;
    std::function<task<void>(session&)> watched = [&](session& s) -> task<void> {
      made = changes();
      observed_session inner(s, made);
      KUBEOPERA_CO_CHECK(co_await body(inner));
      if (made.any && seen_.before(kind::sql, made.label)) co_return connection_cut();
      co_return result<void>();
    };
    KUBEOPERA_CO_CHECK(co_await inner_->transaction_void(watched));
    if (made.any && seen_.after(kind::sql, made.label)) co_return connection_cut();
    co_return result<void>();
  }

 private:
  // The statements in a transaction that can still be taken back once it is known whether they change anything.
  task<std::vector<rows>> in_transaction(const std::vector<statement>& all) {
    std::function<task<std::vector<rows>>(session&)> body = [&](session& s) -> task<std::vector<rows>> {
      KUBEOPERA_CO_TRY(auto answers, co_await s.pipeline(all));
      changes made;
      made.add(all, answers);
      if (made.any && seen_.before(kind::sql, made.label)) co_return connection_cut();
      co_return std::move(answers);
    };
    co_return co_await inner_->transaction(body);
  }

  std::shared_ptr<postgres::pool> inner_;
  effects& seen_;
};

}  // namespace

std::shared_ptr<postgres::pool> observe(std::shared_ptr<postgres::pool> inner, effects& seen) {
  return std::make_shared<observed_pool>(std::move(inner), seen);
}

}  // namespace kubeopera::walk
