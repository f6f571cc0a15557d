// `kubeopera embedded`: the whole product in one process on a private PostgreSQL and simulated clusters.
#pragma once

#include <kubeopera/core/result.hpp>

#include <functional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::app {

struct surroundings;

struct embedded_options {
  std::string data_dir;  ///< made where missing
  int port = 0;          ///< of the API; 0: the one of the last start where it is free, else any
  std::string log_level = "info";
  /// Where set: the last word on the parts and on the roles that run among them.
  std::function<void(surroundings&, std::vector<std::string>& roles)> adjust;
};

/// Runs until SIGINT or SIGTERM. Writes DIR/embedded.json once everything is ready and removes it at the end.
/// Errors: failed_precondition (PostgresMissing, DirectoryClosed, AlreadyRunning), those of the parts.
result<void> run_embedded(const embedded_options& options);

}  // namespace kubeopera::inline v1::app
