// `kubeopera embedded`: the whole product in one process on a private PostgreSQL and simulated clusters.
#pragma once

#include <kubeopera/core/result.hpp>

#include <string>

namespace kubeopera::inline v1::app {

struct embedded_options {
  std::string data_dir;  ///< made where missing
  int port = 0;          ///< of the API; 0: the one of the last start where it is free, else any
  std::string log_level = "info";
};

/// Runs until SIGINT or SIGTERM. Writes DIR/embedded.json once everything is ready and removes it at the end.
/// Errors: failed_precondition (PostgresMissing, DirectoryClosed, AlreadyRunning), those of the parts.
result<void> run_embedded(const embedded_options& options);

}  // namespace kubeopera::inline v1::app
