// Serves bare repositories over Git's smart HTTP protocol (versions 0 to 2) from an http::handler.
// The protocol itself is spoken by the git program; this is the plumbing, the access check and the limits.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/http/transport.hpp>

#include <cstddef>
#include <functional>
#include <string>

namespace kubeopera::inline v1::gitops {

enum class git_access { read, write };

struct git_server_options {
  git_server_options() = default;
  /// One repository, served at prefix ("/git/fleet.git" + "/info/refs"). Exactly one of repository and root is set.
  std::string repository;
  /// A folder of repositories: "<prefix>/<name>.git/info/refs", name being a DNS-1123 label.
  std::string root;
  std::string prefix;       ///< URL path before the repository's own part; "" for none
  bool allow_push = false;  ///< false: git-receive-pack is answered 403
  /// Asked for each request, before anything is read; an error is answered 401 (unauthenticated), 403 or 404 (not_found).
  std::function<result<void>(const http::request&, git_access)> authorize;
  std::string git_program = "git";
  std::size_t max_processes = 8;                         ///< more wait their turn
  duration max_wait = std::chrono::seconds(30);          ///< then 503 with Retry-After
  std::size_t max_request_bytes = std::size_t(1) << 30;  ///< of a body, after decompression
};

/// The handler keeps its own state and may be copied; it is called on the server's executor.
/// Only smart HTTP is spoken: anything else is 404, or 405 for a wrong method.
http::handler make_git_http_handler(git_server_options options, logger& log = logger::none());

}  // namespace kubeopera::inline v1::gitops
