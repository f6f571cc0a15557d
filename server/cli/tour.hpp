// The guided proof: deploys the example apps against a running embedded server, changes, breaks and deletes one, and shows that
// nothing is left.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/json/value.hpp>

#include <string>
#include <vector>

namespace kubeopera::inline v1::cli {

struct tour_options {
  std::string embedded_file;  ///< embedded.json of the server
  std::string apps_dir;       ///< folder of *.json create requests
  bool keep = false;          ///< leave the first app running at the end
};

struct tour_result {
  std::string live_url;  ///< of the app that is left running (or was, when not kept)
  std::string curl;      ///< a command that reaches it
  int proved = 0;        ///< statements that were shown to hold
};

/// Runs the tour; prints as it goes. Errors: the first statement that does not hold (failed_precondition, TourFailed), those of
/// the server.
task<tour_result> run_tour(asio::any_io_executor executor, tour_options options);

}  // namespace kubeopera::inline v1::cli
