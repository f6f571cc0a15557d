// kill -9 at any moment: what was answered is in the repository, the repository is sound, nothing is there twice.
#include "tests/integration/gitops/child.hpp"
#include "tests/integration/gitops/harness.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <fstream>
#include <random>

using namespace harness;

namespace {

constexpr const char* folder_variable = "KUBEOPERA_CRASH_FOLDER";
constexpr const char* shared_variable = "KUBEOPERA_CRASH_SHARED";
constexpr int apps = 6;

// The file where the child writes "<app> <revision>" once that revision was answered.
std::string log_of(const std::string& folder) { return folder + "/answered"; }

int lines_in(const std::string& path) {
  auto text = read_file(path);
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

std::unique_ptr<remote> open_remote(const std::string& fleet, std::shared_ptr<object_store> store) {
  return make_file_remote(fleet, std::move(store));
}

class killed : public testing::TestWithParam<bool> {};

}  // namespace

// The child: commits for ever, from where its log ends.
TEST(crash, DISABLED_child) {
  const char* folder = std::getenv(folder_variable);
  ASSERT_TRUE(folder);
  std::string fleet = std::string(folder) + "/fleet.git";
  bool shared = std::string(std::getenv(shared_variable)) == "1";
  io_threads io;
  auto store = open_store(shared ? fleet : std::string(folder) + "/store.git").value();
  committer_options o;
  o.max_attempts = 40;
  running c(io, store, open_remote(fleet, store), o);
  std::ofstream log(log_of(folder), std::ios::app);
  for (int step = lines_in(log_of(folder)) / apps;; ++step) {
    std::vector<change> all;
    for (int a = 0; a < apps; ++a) all.push_back(make_change("app-" + std::to_string(a), "r" + std::to_string(step)));
    auto answers = c.submit_all(std::move(all));
    for (std::size_t a = 0; a < answers.size(); ++a) {
      ASSERT_TRUE(answers[a]) << to_string(answers[a].error());
      log << "app-" << a << " r" << step << "\n";
    }
    log.flush();
  }
}

TEST_P(killed, at_any_moment_loses_nothing) {
  temp_folder dir;
  io_threads io;
  auto fleet = make_bare(dir, "fleet.git");
  write_file(log_of(dir.str()), "");
  std::mt19937 random(5);
  for (int round = 0; round < 12; ++round) {
    child c("crash.DISABLED_child", dir / "child.log", {{folder_variable, dir.str()}, {shared_variable, GetParam() ? "1" : "0"}});
    int wanted = lines_in(log_of(dir.str())) + apps * static_cast<int>(1 + random() % 5);
    auto reached = io.run<void>(until([&] { return lines_in(log_of(dir.str())) >= wanted; }));
    c.kill_now();
    ASSERT_TRUE(reached) << "the child does not go on in round " << round << "\n" << read_file(dir / "child.log");
    ASSERT_EQ(fsck(fleet), "") << "round " << round;
    // A log that is cut in a step is cut back to whole steps, as a database would.
    auto steps = lines_in(log_of(dir.str())) / apps;
    std::string kept;
    for (int s = 0; s < steps; ++s)
      for (int a = 0; a < apps; ++a) kept += "app-" + std::to_string(a) + " r" + std::to_string(s) + "\n";
    ASSERT_EQ(read_file(log_of(dir.str())).substr(0, kept.size()), kept);
    write_file(log_of(dir.str()), kept);
    // Everything answered is there; at most the step under way is ahead of it.
    for (int a = 0; a < apps; ++a) {
      auto text = git(fleet, "show main:" + app_directory("team", "app-" + std::to_string(a)).value() + "/deployment.yaml");
      auto revision = std::stoi(text.substr(1));
      EXPECT_GE(revision, steps - 1);
      EXPECT_LE(revision, steps);
    }
  }
  // No revision of an app was committed twice.
  auto told = git(fleet, "log --format='%(trailers:separator=%x0A)' main") + "\n";
  for (int s = 0; s < lines_in(log_of(dir.str())) / apps; ++s) {
    auto one = "Kubeopera-App: app-0\nKubeopera-Revision: r" + std::to_string(s) + "\n";
    auto at = told.find(one);
    EXPECT_NE(at, std::string::npos) << one;
    EXPECT_EQ(told.find(one, at + 1), std::string::npos) << one;
  }
}

INSTANTIATE_TEST_SUITE_P(crash, killed, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "one_directory" : "own_store"; });
