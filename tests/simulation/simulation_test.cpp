// The simulation over many seeds. A seed that fails prints what broke, the end of its story and how to see it again:
//   SIM_SEED=n    only this seed, with its whole story
//   SIM_FIRST=n   the first seed of the range,  SIM_COUNT=n   how many
#include "tests/simulation/world.hpp"
#include "tests/support/figures.hpp"

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::simulation;

namespace {

std::string story(const outcome& told, std::size_t most) {
  std::string out;
  auto first = told.lines.size() > most ? told.lines.size() - most : 0;
  for (auto i = first; i < told.lines.size(); ++i) out += told.lines[i] + "\n";
  return out;
}

std::string report_of(std::uint64_t seed, const outcome& failed) {
  auto told = run_seed(seed, true);
  auto s = std::to_string(seed);
  return "seed " + s + ", step " + std::to_string(failed.steps) + ": " + *failed.failure + "\n" + story(told, 60) +
         (told.fingerprint == failed.fingerprint ? "" : "THE REPLAY WENT ANOTHER WAY\n") +
         "again, with its whole story: SIM_SEED=" + s + " build/dev/tests/simulation --gtest_filter=simulation.seeds\n";
}

}  // namespace

TEST(simulation, one_seed_is_one_run) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto a = run_seed(seed, false), b = run_seed(seed, true), c = run_seed(seed, false);
    EXPECT_EQ(a.fingerprint, b.fingerprint) << "seed " << seed;
    EXPECT_EQ(a.fingerprint, c.fingerprint) << "seed " << seed;
    EXPECT_EQ(a.steps, b.steps);
    EXPECT_NE(a.fingerprint, run_seed(seed + 1000, false).fingerprint);
  }
}

TEST(simulation, seeds) {
  auto only = tests::number_from("SIM_SEED", -1);
  if (only >= 0) {
    auto told = run_seed(static_cast<std::uint64_t>(only), true);
    std::cout << story(told, told.lines.size());
    EXPECT_FALSE(told.failure) << *told.failure;
    return;
  }
  auto first = static_cast<std::uint64_t>(tests::number_from("SIM_FIRST", 1));
  auto count = static_cast<std::uint64_t>(tests::number_from("SIM_COUNT", tests::long_run() ? 200000 : 10000));
  outcome sum;
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    auto one = run_seed(seed, false);
    sum.steps += one.steps;
    sum.faults += one.faults;
    sum.crashes += one.crashes;
    sum.commits += one.commits;
    sum.apps += one.apps;
    sum.virtual_time += one.virtual_time;
    if (!one.failure) continue;
    if (tests::number_from("SIM_CLASSES", 0)) {
      std::cout << "seed " << seed << " " << *one.failure << "\n";
      continue;
    }
    ++failures;
    ADD_FAILURE() << report_of(seed, one);
  }
  tests::report("simulation", std::to_string(count) + " seeds, " + std::to_string(sum.steps) + " steps, " +
                                  std::to_string(sum.faults) + " faults injected, " + std::to_string(sum.crashes) + " crashes, " +
                                  std::to_string(sum.apps) + " apps, " + std::to_string(sum.commits) + " commits, " +
                                  std::to_string(sum.virtual_time / std::chrono::hours(1)) + " virtual hours");
}
