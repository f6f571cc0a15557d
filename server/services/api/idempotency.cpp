// Idempotency keys: a row reserves the key, the final reply is kept for a day.
#include "server/services/api/store.hpp"

#include <kubeopera/postgres/pool.hpp>

namespace kubeopera::inline v1::api {
namespace {

using postgres::params;
using postgres::statement;

// The length keeps "a|b" of "c" apart from "a" of "b|c".
std::string scope(const web::call& c) {
  auto tenant = c.who.tenant.value_or("");
  return std::to_string(tenant.size()) + "|" + tenant + "|" + c.who.user;
}

// The first reply stays: a request that outlived its reservation cannot replace what another was told.
statement finish_statement(const web::call& c, const std::string& key, const web::saved_reply& reply) {
  return statement(
      "update idempotency set status = $3, body = $4, location = $5, etag = $6 where scope = $1 and key = $2 and status is null",
      params{scope(c), key, reply.status, reply.body, reply.location, reply.etag});
}

class database_idempotency final : public web::idempotency {
 public:
  database_idempotency(std::shared_ptr<postgres::pool> pool, std::chrono::seconds lock) : pool_(std::move(pool)), lock_(lock) {}

  task<std::optional<web::saved_reply>> begin(const web::call& c, const std::string& key,
                                              const std::string& fingerprint) override {
    // A reservation whose process died is taken over when its lock has run out.
    statement reserve(
        "insert into idempotency as i (scope, key, fingerprint, locked_until) values ($1, $2, $3, now() + make_interval(secs => "
        "$4)) "
        "on conflict (scope, key) do update set fingerprint = excluded.fingerprint, locked_until = excluded.locked_until, status "
        "= null, "
        "created_at = now() where (i.status is null and i.locked_until < now() and i.fingerprint = excluded.fingerprint) "
        "or i.created_at < now() - interval '24 hours' returning key",
        params{scope(c), key, fingerprint, static_cast<std::int64_t>(lock_.count())});
    KUBEOPERA_CO_TRY(auto mine, co_await pool_->query(reserve));
    if (!mine.empty()) co_return std::optional<web::saved_reply>();
    statement read("select fingerprint, status, body, location, etag from idempotency where scope = $1 and key = $2",
                   params{scope(c), key});
    KUBEOPERA_CO_TRY(auto r, co_await pool_->query(read));
    error running(errc::conflict, "RequestInProgress", "the first request with this Idempotency-Key is still running");
    if (r.empty()) co_return std::move(running).with_retry_after(std::chrono::seconds(1));
    if (r.text(0, "fingerprint") != fingerprint)
      co_return error(errc::invalid_argument, "IdempotencyKeyReused", "this Idempotency-Key was used for another request");
    if (r.is_null(0, "status")) co_return std::move(running).with_retry_after(std::chrono::seconds(1));
    web::saved_reply saved;
    saved.status = static_cast<int>(r.integer(0, "status"));
    saved.body = r.opt(0, "body").value_or("");
    saved.location = r.opt(0, "location").value_or("");
    saved.etag = r.opt(0, "etag").value_or("");
    co_return std::optional<web::saved_reply>(std::move(saved));
  }

  task<void> finish(const web::call& c, const std::string& key, const web::saved_reply& reply) override {
    auto st = finish_statement(c, key, reply);
    KUBEOPERA_CO_CHECK(co_await pool_->query(st));
    co_return result<void>();
  }

  task<void> abandon(const web::call& c, const std::string& key) override {
    statement st("delete from idempotency where scope = $1 and key = $2 and status is null", params{scope(c), key});
    KUBEOPERA_CO_CHECK(co_await pool_->query(st));
    co_return result<void>();
  }

 private:
  std::shared_ptr<postgres::pool> pool_;
  std::chrono::seconds lock_;
};

}  // namespace

std::optional<postgres::statement> remember_reply(const web::call& c, const web::saved_reply& reply) {
  if (c.idempotency_key.empty()) return std::nullopt;
  return finish_statement(c, c.idempotency_key, reply);
}

std::shared_ptr<web::idempotency> make_idempotency(std::shared_ptr<postgres::pool> pool, std::chrono::seconds lock) {
  return std::make_shared<database_idempotency>(std::move(pool), lock);
}

}  // namespace kubeopera::inline v1::api
