// One asynchronous libpq connection: connects, runs pipelines, receives notifications. Used by one coroutine at a time.
#pragma once

#include <kubeopera/postgres/pool.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kubeopera::inline v1::postgres {

struct connection_options {
  connection_options() = default;
  std::string url;
  std::string schema;
  std::string application_name = "kubeopera";
  duration connect_timeout = std::chrono::seconds(5);
  duration statement_timeout = std::chrono::seconds(30);
};

/// "schema" as SQL spells an identifier.
std::string quote_identifier(std::string_view name);

class connection {
 public:
  /// Errors: unavailable (with retry_after), cancelled.
  static task<std::unique_ptr<connection>> open(asio::any_io_executor executor, connection_options options);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// All statements in one round trip; the first error ends it. After an error that leaves the protocol in the middle of an
  /// exchange (cancelled, deadline, lost) the connection is closed and usable() is false.
  task<std::vector<rows>> run(std::vector<const statement*> all);
  /// Several statements without parameters by the simple protocol; no time limit.
  task<void> script(const std::string& sql);

  /// Waits for a notification or until wake says so; calls on_notify for each. Errors: unavailable, cancelled.
  task<void> wait_notification(notifier& wake, std::uint64_t ticket, duration longest,
                               const std::function<void(std::string_view channel, std::string_view payload)>& on_notify);

  bool usable() const noexcept;
  /// Not inside a transaction.
  bool idle() const noexcept;
  /// Looks at the socket of an idle connection: false when the server has closed it or said something.
  bool fresh() const noexcept;
  /// SQLSTATE of the last failed statement; empty where the last run() succeeded or failed otherwise.
  const std::string& last_state() const noexcept;
  int backend_pid() const noexcept;

 private:
  struct impl;
  explicit connection(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

}  // namespace kubeopera::inline v1::postgres
