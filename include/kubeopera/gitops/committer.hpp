// The committer: turns changed directories into commits of a fleet repository, many changes a commit, and pushes them.
// It writes one pack a batch from trees computed in memory; no worktree, no index, no force.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/core/metrics.hpp>
#include <kubeopera/core/secret.hpp>
#include <kubeopera/gitops/store.hpp>
#include <kubeopera/http/transport.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::gitops {

/// Where a remote's objects are fetched from and pushed to. Thread safety: one call at a time.
class remote {
 public:
  virtual ~remote() = default;
  /// The branch's tip (40 hex), or nullopt when the branch does not exist. Errors: unavailable, unauthenticated, not_found.
  virtual task<std::optional<std::string>> tip(const std::string& branch) = 0;
  /// Brings commit `want` with all it needs into the object store; `have` is known already. Errors as above.
  virtual task<void> fetch(const std::string& want, const std::vector<std::string>& have) = 0;
  /// Sends pack and moves branch from `from` (empty: create) to `to`, only if it is still at `from`. Never forces.
  /// Success is the server's word on the ref. Errors: conflict (moved meanwhile), permission_denied (refused, with the
  /// server's words), unavailable or deadline_exceeded (unknown outcome: ask tip()).
  virtual task<void> push(const std::string& branch, const std::string& from, const std::string& to, const std::string& pack) = 0;
  /// Whether a push would be let in, as far as that can be told without one: nothing is written. The server may still refuse a
  /// branch or a commit. Errors: those of tip(); unsupported where it cannot be told.
  virtual task<void> may_push();
  /// True where the object store is the remote repository itself: nothing has to travel.
  virtual bool shares_store() const { return false; }
};

/// The whole content of one directory, replacing what was there; an empty map removes the directory.
struct change {
  change() = default;
  std::string directory;                     ///< DNS-1123 labels joined by '/'
  std::map<std::string, std::string> files;  ///< file name ([a-z0-9][a-z0-9.-]*, at most 100) to content (at most 1 MiB)
  std::string subject;                       ///< one line; "" becomes "Update <directory>"
  std::vector<std::pair<std::string, std::string>> trailers;  ///< e.g. {"Kubeopera-App", "…"}
  /// Commit also where the directory is so already: the branch moves, and no push that was under way before can land any more.
  bool always = false;
};

struct receipt {
  std::string commit;    ///< 40 hex; the tip that holds the change
  bool changed = false;  ///< false: the tree already was so, no commit was made
};

struct committer_options {
  committer_options() = default;
  std::string branch = "main";
  std::string author_name = "kubeopera";
  std::string author_email = "kubeopera@localhost";
  std::size_t max_batch = 500;
  int max_attempts = 10;
  duration push_timeout = std::chrono::seconds(30);        ///< for one question or push
  duration fetch_timeout = std::chrono::minutes(10);       ///< for the objects of a whole fleet
  duration first_backoff = std::chrono::milliseconds(25);  ///< between attempts; doubles, with full jitter
  duration max_backoff = std::chrono::seconds(2);
  /// Asked right before each push, where set; an error (not a transient one) is the answer to the batch. Must not block.
  std::function<result<void>()> may_push;
};

/// Thread-safe. Two verbs: run() once, submit() many times.
class committer {
 public:
  virtual ~committer() = default;
  /// Gathers, commits and pushes until cancelled. Everything submitted while a push is under way goes into the next batch.
  virtual task<void> run() = 0;
  /// Returns when the change is on the remote branch (or was already). Later changes of one directory win over earlier ones.
  /// Cancelling the wait does not take back a change that a batch has begun to push.
  /// Errors: invalid_argument (path, name or trailer, with pointer), permission_denied (server refused, with its words),
  /// failed_precondition (a file is where a directory should be), unavailable (after max_attempts), cancelled.
  virtual task<receipt> submit(change c) = 0;
  /// True when ancestor is descendant or one of its ancestors, as far as the local store knows (it fetches what it lacks).
  virtual task<bool> is_ancestor(const std::string& ancestor, const std::string& descendant) = 0;
  /// The branch's tip as last seen.
  virtual std::string tip() const = 0;
  /// Changes that wait for the next batch; those of the batch under way are not counted.
  virtual std::size_t waiting() const = 0;
};

// The store of a remote may be null where only tip() and may_push() are called.

/// Smart HTTP (protocol v0/v2 as the server offers) over a transport. base_path is the repository's URL path.
std::unique_ptr<remote> make_http_remote(std::shared_ptr<http::transport> transport, std::string base_path,
                                         std::shared_ptr<object_store> store, std::string username = {},
                                         secret password = secret());
/// A bare repository in a directory of this machine, by git's own rules (pack first, then the ref by lock file and
/// compare-and-swap). Its hooks do not run. Where store is that same directory nothing is copied.
std::unique_ptr<remote> make_file_remote(std::string directory, std::shared_ptr<object_store> store);
/// SSH through the ssh program and a pinned known_hosts file.
struct ssh_options {
  ssh_options() = default;
  std::string host, user, path, identity_file, known_hosts_file;
  int port = 22;
  std::string program = "ssh";
};
std::unique_ptr<remote> make_ssh_remote(asio::any_io_executor executor, ssh_options options, std::shared_ptr<object_store> store);

/// Lifetime: clk, log and m outlive the committer; run() has ended before its execution context is destroyed.
std::shared_ptr<committer> make_committer(asio::any_io_executor executor, std::shared_ptr<object_store> store,
                                          std::unique_ptr<remote> origin, committer_options options, clock& clk = clock::real(),
                                          logger& log = logger::none(), metrics* m = nullptr);

}  // namespace kubeopera::inline v1::gitops
