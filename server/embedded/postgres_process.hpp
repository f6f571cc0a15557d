// A private PostgreSQL: made in a folder, reached through a socket in it, taken over after a crash, ended with us whatever way
// we end.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/result.hpp>

#include <memory>
#include <string>
#include <sys/types.h>

namespace kubeopera::inline v1::embedded {

struct postgres_options {
  postgres_options() = default;
  std::string directory;  ///< made where missing; as root its parents must be open to the user that runs PostgreSQL
  int max_connections = 60;
  std::string binaries;  ///< folder of initdb and postgres; empty: PATH, then /usr/lib/postgresql/<newest>/bin
  duration start_limit = std::chrono::seconds(60);  ///< includes recovery after a crash
  duration stop_limit = std::chrono::seconds(20);
};

/// A running server. PostgreSQL refuses to run as root: then the system user postgres runs it, or nobody. The server is the
/// child of a thread of its own that lives as long as it does, and is told to stop (a clean, fast shutdown) when this process
/// ends for whatever reason, kill -9 included. Whoever may enter the socket's directory (mode 0700) is its superuser.
class postgres_process {
 public:
  /// Makes the cluster where there is none; stops what a dead predecessor has left running; starts; waits until it is ready.
  /// Blocks for a second or two. Lifetime: log must outlive the process.
  /// Errors: failed_precondition (PostgresMissing, DirectoryClosed, DirectoryInUse: a living process owns it, WrongVersion,
  /// NoUnprivilegedUser), unavailable (CannotWrite; PostgresFailed: it did not start, the detail ends with its last words).
  static result<std::unique_ptr<postgres_process>> start(const postgres_options& options, logger& log = logger::none());
  ~postgres_process();
  postgres_process(const postgres_process&) = delete;
  postgres_process& operator=(const postgres_process&) = delete;
  /// For libpq.
  std::string url() const;
  /// The same for the server that runs, or would run, in a directory. Pure.
  static std::string url_of(const std::string& directory);
  /// 0 once it has ended.
  pid_t pid() const noexcept;
  /// Waits until the server ends. Errors: unavailable (reason PostgresEnded) when nobody asked for that; cancelled.
  task<void> run();
  /// Fast shutdown; waits for it. A server that does not stop within the limit is killed, which loses nothing committed.
  void stop() noexcept;

 private:
  struct impl;
  explicit postgres_process(std::shared_ptr<impl> p);
  std::shared_ptr<impl> impl_;
};

}  // namespace kubeopera::inline v1::embedded
