// kill -9 of a process whose committer is in the middle of a push over HTTP, and its restart: nothing lost, nothing doubled.
#include "tests/integration/git_races/faulty_server.hpp"
#include "tests/integration/git_races/history.hpp"
#include "tests/integration/git_races/readers.hpp"
#include "tests/integration/gitops/child.hpp"
#include "tests/support/figures.hpp"

#include <kubeopera/http/client.hpp>

#include <fstream>
#include <optional>
#include <random>

using namespace races;

namespace {

constexpr const char* folder_variable = "KUBEOPERA_KILL_FOLDER";
constexpr const char* url_variable = "KUBEOPERA_KILL_URL";
constexpr int apps = 4;

// One line "<step>" once all of a step was answered.
std::string log_of(const std::string& folder) { return folder + "/answered"; }

int steps_answered(const std::string& folder) {
  auto text = read_file(log_of(folder));
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

std::string app_name(int a) { return "app-" + std::to_string(a); }
std::string revision_of(int a, int step) { return "a" + std::to_string(a) + "-s" + std::to_string(step); }

enum class moment { request_seen, pushed_and_not_told };

}  // namespace

// The child: a step is a change of every app. It goes on where its log ends.
TEST(kill, DISABLED_child) {
  const char* folder = std::getenv(folder_variable);
  ASSERT_TRUE(folder);
  io_threads io;
  auto store = open_store(std::string(folder) + "/store.git").value();
  auto client = http::make_client(io.executor(), http::client_options(std::getenv(url_variable))).value();
  running c(io, store, make_http_remote(client, "/", store));
  std::ofstream log(log_of(folder), std::ios::app);
  for (int step = steps_answered(folder);; ++step) {
    std::vector<change> all;
    for (int a = 0; a < apps; ++a) all.push_back(make_change(app_name(a), revision_of(a, step)));
    for (auto& got : c.submit_all(std::move(all))) ASSERT_TRUE(got) << to_string(got.error());
    log << step << std::endl;
  }
}

TEST(kill, in_the_middle_of_pushes_over_http_doubles_nothing) {
  temp_folder dir;
  io_threads io;
  auto fleet = make_bare(dir, "fleet.git");
  write_file(log_of(dir.str()), "");
  std::mt19937 random(11);
  std::atomic<const child*> victim{nullptr};
  std::atomic<int> pushes_left{0};
  std::atomic<moment> when{moment::request_seen};
  std::optional<faulty_server> server(std::in_place, io, fleet, [&](phase p, int) {
    if (p != phase::push || --pushes_left != 0) return fault::none;
    if (when == moment::pushed_and_not_told) return fault::mute_answer;
    victim.load()->strike();
    return fault::none;
  });
  tip_watch tips(fleet);
  const int rounds = kubeopera::tests::long_run() ? 100 : 5;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    when = round % 2 ? moment::request_seen : moment::pushed_and_not_told;
    auto before = shell("git -C '" + fleet + "' rev-parse -q --verify main").text;
    // victim is set before the child can have sent anything that counts.
    pushes_left = -1;
    child c("kill.DISABLED_child", dir / "child.log", {{folder_variable, dir.str()}, {url_variable, server->url()}});
    victim = &c;
    pushes_left = 1 + static_cast<int>(random() % 6);
    auto reached = io.run<void>(until([&] { return pushes_left <= 0; }));
    ASSERT_TRUE(reached) << "the child does not go on\n" << read_file(dir / "child.log");
    if (when == moment::pushed_and_not_told) {
      auto answered = steps_answered(dir.str());
      auto ahead = [&] { return read_history(fleet).size() > static_cast<std::size_t>(answered); };
      ASSERT_TRUE(io.run<void>(until(ahead))) << "the push was not done, tip was " << before;
      c.strike();
    }
    c.wait_killed();
  }
  server.reset();  // what the last child had sent is done or is not
  auto steps = steps_answered(dir.str());
  ledger done;
  auto history = read_history(fleet);
  for (const auto& commit : history)
    for (const auto& [app, revision] : commit.changes) {
      receipt r;
      r.commit = commit.id;
      r.changed = true;
      done.add({app, revision, r});
    }
  check_history(fleet, done, tips.seen());
  std::set<std::pair<std::string, std::string>> told;
  for (const auto& a : done.all()) told.insert({a.app, a.revision});
  for (int step = 0; step < steps; ++step)
    for (int a = 0; a < apps; ++a)
      EXPECT_TRUE(told.contains({app_name(a), revision_of(a, step)})) << "answered and lost: " << revision_of(a, step);
  EXPECT_EQ(told.size(), done.all().size()) << "a change is there twice";
  EXPECT_GE(steps, rounds / 2);
  check_readers(fleet);
  EXPECT_EQ(fsck(dir / "store.git"), "");
  kubeopera::tests::report("git_kills", std::to_string(rounds) + " kills in the middle of pushes over HTTP, " +
                                            std::to_string(history.size()) + " commits, nothing lost or doubled");
}
