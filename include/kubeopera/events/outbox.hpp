// The transactional outbox: what must happen elsewhere is a row in the same transaction as its cause, and a relay makes it happen
// at least once, in order for each aggregate. A paused relay that wakes cannot undo what another took over: claims carry a token.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>
#include <kubeopera/json/value.hpp>
#include <kubeopera/postgres/pool.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kubeopera::inline v1::events {

/// The outbox's table, for two migrations of the service that owns the schema, in this order.
extern const char* const outbox_sql;
extern const char* const outbox_indexes_sql;

/// The statement that adds a row; put it into the transaction of its cause.
/// @param aggregate rows of one aggregate are delivered in order, one at a time
/// @param topic     what the sink tells rows apart by
postgres::statement enqueue(const std::string& aggregate, const std::string& topic, const json::object& payload);

/// Puts a dead letter back in line, as if it were new. Affects no row where there is no such dead letter.
postgres::statement revive(const std::string& id);

struct outbox_row {
  std::int64_t seq = 0;
  std::string id;  ///< uuid; the same on every delivery of this row
  std::string aggregate, topic;
  json::object payload;
  int attempts = 0;  ///< deliveries begun before this one
};

/// Delivers one row. Success ends it. An error that is transient() (or conflict, or internal) is tried again with growing delays;
/// any other one makes the row a dead letter, kept with its cause; it no longer holds up its aggregate.
using outbox_sink = std::function<task<void>(const outbox_row& row)>;

struct relay_options {
  relay_options() = default;
  int batch = 64;                                         ///< deliveries under way at once, each of another aggregate
  duration lease = std::chrono::seconds(10);              ///< renewed while the relay lives; then its rows are another's to take
  duration delivery_limit = std::chrono::minutes(2);      ///< longest time for one delivery
  duration poll = std::chrono::seconds(2);                ///< safety net for a missed wake()
  duration first_retry = std::chrono::milliseconds(100);  ///< doubles, with jitter
  duration max_retry = std::chrono::seconds(30);
  std::chrono::hours keep_done{24};                              ///< then done rows are deleted, a thousand at a time
  std::function<void(const outbox_row&, const error&)> on_dead;  ///< told of each dead letter after it has been stored
  std::function<std::uint64_t()> random = random_u64;            ///< source of jitter (injected in tests)
};

/// Thread-safe. Any number of relays may work on one table: a row is delivered by one at a time, later rows of its aggregate
/// wait for it, and a relay that lost its lease can change nothing any more. A crash between delivery and mark makes the row
/// come again with the same id. Costs what is open, however many rows are done.
/// Metrics: kubeopera_outbox_delivered_total, _retries_total, _dead_total, _fenced_total (label topic), kubeopera_outbox_in_work,
/// and every few seconds kubeopera_outbox_depth and kubeopera_outbox_oldest_age_seconds of the whole table.
class outbox_relay {
 public:
  virtual ~outbox_relay() = default;
  /// Claims and delivers until cancelled, then cancels and awaits what is under way; a database that is down is waited for.
  /// Errors: cancelled.
  virtual task<void> run() = 0;
  /// Says that rows were added: call it after the commit. Never blocks. Across processes: subscribe it to a
  /// postgres::listener, and let the writer's side send one NOTIFY a batch.
  virtual void wake() noexcept = 0;
};

/// Lifetime: clk, log and all must outlive the relay.
std::shared_ptr<outbox_relay> make_outbox_relay(asio::any_io_executor executor, std::shared_ptr<postgres::pool> pool,
                                                outbox_sink sink, relay_options options = relay_options(),
                                                clock& clk = clock::real(), logger& log = logger::none(), metrics* all = nullptr);

/// Wakes the relays of other processes: writers do not NOTIFY in their transactions, they call signal() after the commit, and
/// all signals that come while one NOTIFY is under way become one more. A relay hears it by
///   listener->subscribe(channel, [=](std::string_view word) { if (!signal->own(word)) relay->wake(); });
/// Thread-safe.
class outbox_signal {
 public:
  virtual ~outbox_signal() = default;
  /// Never blocks.
  virtual void signal() noexcept = 0;
  /// Whether a NOTIFY with this payload is of this object: the relay beside it knows already.
  virtual bool own(std::string_view payload) const noexcept = 0;
  /// Sends until cancelled; a signal that cannot be sent is logged and left to the relays' periodic look. Errors: cancelled.
  virtual task<void> run() = 0;
};

/// Lifetime: log must outlive it.
std::shared_ptr<outbox_signal> make_outbox_signal(std::shared_ptr<postgres::pool> pool, std::string channel,
                                                  logger& log = logger::none());

}  // namespace kubeopera::inline v1::events
