// `kubeopera serve`: chosen roles against a real host cluster, a real fleet repository and a given database.
#pragma once

#include <kubeopera/core/result.hpp>

#include <string>
#include <vector>

namespace kubeopera::inline v1::app {

struct serve_options {
  std::vector<std::string> roles;
};

/// Runs until SIGINT or SIGTERM. Errors: invalid_argument (settings), those of the parts.
result<void> run_serve(const serve_options& options);
/// Applies every migration to DATABASE_URL.
result<void> run_migrate();

}  // namespace kubeopera::inline v1::app
