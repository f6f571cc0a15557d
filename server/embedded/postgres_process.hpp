// A private PostgreSQL: made in a folder, reached through a socket in it, ended with us whatever way we end.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include <kubeopera/core/log.hpp>
#include <kubeopera/core/result.hpp>

namespace kubeopera::inline v1::embedded {

struct postgres_options {
  postgres_options() = default;
  std::string directory;        ///< made where missing; as root it and its parents must be open to the user that runs PostgreSQL
  int max_connections = 60;
  std::string binaries;         ///< folder of initdb and postgres; empty: PATH, then /usr/lib/postgresql/<newest>/bin
};

/// PostgreSQL refuses to run as root: then the user postgres runs it, or nobody. Started from a thread that lives as long as the
/// process: the kernel ends the server when that thread ends, so that a killed product leaves nothing behind.
class postgres_process {
 public:
  /// Makes the database where there is none, ends what a killed predecessor may have left running, starts, waits until it is ready.
  /// Blocks for a second or two. Errors: failed_precondition (PostgresMissing, DirectoryClosed, PathTooLong), unavailable (it did
  /// not start; the message ends with its last words).
  static result<std::unique_ptr<postgres_process>> start(const postgres_options& options, logger& log = logger::none());
  ~postgres_process();
  postgres_process(const postgres_process&) = delete;
  postgres_process& operator=(const postgres_process&) = delete;
  /// For libpq.
  std::string url() const;
  pid_t pid() const noexcept { return pid_; }
  /// Fast shutdown; waits for it.
  void stop() noexcept;

 private:
  postgres_process(std::string socket_dir, pid_t pid) : socket_dir_(std::move(socket_dir)), pid_(pid) {}
  std::string socket_dir_;
  pid_t pid_ = 0;
};

}  // namespace kubeopera::inline v1::embedded
