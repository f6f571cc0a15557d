// One run: users, a database, a host cluster, vClusters with Flux, a fleet repository, and one to three processes that run the
// product's controllers over them; faults for a while, then fair weather; what was promised is checked at every change and at the
// end. A run is a pure function of its seed.
#pragma once

#include "server/app/controllers.hpp"
#include "tests/simulation/cluster.hpp"
#include "tests/simulation/database.hpp"
#include "tests/simulation/fleet.hpp"
#include "tests/simulation/flux.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::simulation {

struct outcome {
  std::optional<std::string> failure;
  std::uint64_t fingerprint = 0, steps = 0, faults = 0, crashes = 0, commits = 0, apps = 0;
  duration virtual_time{};
  std::deque<std::string> lines;  ///< of a recorded run
};

/// Runs one seed to its end.
outcome run_seed(std::uint64_t seed, bool recording);

}  // namespace kubeopera::simulation
