// What a relay asks of the outbox's table. The relay decides when and what becomes of a row; the table keeps rows, claims and
// their order. make_outbox_table() is the one in PostgreSQL.
#pragma once

#include <kubeopera/events/outbox.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::events {

/// What becomes of a row after a delivery.
enum class verdict { done, again, dead };

struct outbox_mark {
  outbox_mark() = default;
  verdict what = verdict::done;
  duration delay{};  ///< of `again`: not before
  std::string why;   ///< of `again` and `dead`
};

struct outbox_claim {
  std::vector<outbox_row> rows;
  std::optional<duration> soonest;  ///< until a row that cannot be claimed now may be; unset: nothing waits
};

/// Rows that are neither done nor dead.
struct outbox_depth {
  std::int64_t open = 0;
  duration oldest{};  ///< age of the oldest of them
};

/// A claim is held by a token and lasts a lease; (token, row, row.attempts) names one delivery.
/// Thread-safe. Errors of all: unavailable and the like; nothing is known then about whether it was done.
class outbox_table {
 public:
  virtual ~outbox_table() = default;
  /// Claims at most `most` rows, those that are due for longest: of each aggregate its first open row, if no live claim holds it.
  virtual task<outbox_claim> claim(std::string token, duration lease, int most) = 0;
  /// Starts the lease of these rows anew, as far as the token still holds them.
  virtual task<void> renew(std::string token, std::vector<std::int64_t> rows) = 0;
  /// Ends a delivery. False: the claim is no longer this delivery's, and nothing was changed.
  virtual task<bool> mark(outbox_row row, std::string token, outbox_mark m) = 0;
  /// Frees all of the token's claims.
  virtual task<void> free(std::string token) = 0;
  /// Deletes rows that were done before that long, at most a thousand. Returns how many.
  virtual task<std::size_t> trim(std::chrono::hours keep) = 0;
  /// How much waits, and for how long.
  virtual task<outbox_depth> depth() = 0;
};

/// The table that outbox_sql and outbox_indexes_sql make.
std::shared_ptr<outbox_table> make_outbox_table(std::shared_ptr<postgres::pool> pool);

/// A relay on any table; otherwise as make_outbox_relay() on a pool.
std::shared_ptr<outbox_relay> make_outbox_relay(asio::any_io_executor executor, std::shared_ptr<outbox_table> table,
                                                outbox_sink sink, relay_options options = relay_options(),
                                                clock& clk = clock::real(), logger& log = logger::none(), metrics* all = nullptr);

}  // namespace kubeopera::inline v1::events
