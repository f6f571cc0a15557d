// Ten committers, each with its own object store as ten processes would have, and plain git, on one branch.
#include "tests/integration/git_races/history.hpp"
#include "tests/integration/git_races/readers.hpp"
#include "tests/integration/gitops/world.hpp"
#include "tests/support/figures.hpp"

#include <kubeopera/gitops/fleet.hpp>

using namespace races;
using kubeopera::tests::long_run;

namespace {

committer_options patient(kind k) {
  committer_options o;
  o.max_attempts = 400;
  o.max_backoff = std::chrono::milliseconds(500);
  if (k == kind::ssh) {  // where an attempt takes long, waiting is cheaper than losing
    o.first_backoff = std::chrono::milliseconds(300);
    o.max_backoff = std::chrono::seconds(5);
  }
  return o;
}

struct race {
  int committers = 10, rounds = 3, apps = 4, humans = 2, commits_each = 2;
};

race size_of(kind k) {
  race out;
  if (k == kind::ssh) out.rounds = 1;  // a session and its two processes for every question
  if (k == kind::file) out.rounds = 8;
  if (long_run()) {
    out.rounds *= 10;
    out.commits_each *= 10;
  }
  return out;
}

// Plain git: commits files of its own and pushes, rebasing when it loses the race.
void person(const world& w, const std::string& work, const std::string& name, int commits) {
  git(".", "clone -q '" + w.git_url() + "' '" + work + "'");
  for (int i = 0; i < commits; ++i) {
    write_file(work + "/people/" + name + "/" + std::to_string(i) + ".txt", name + " was here\n");
    git(work, "add -A");
    git(work, "commit -qm '" + name + " " + std::to_string(i) + "'");
    bool pushed = false;
    for (int tries = 0; tries < 400 && !pushed; ++tries) {
      pushed = shell("git -C '" + work + "' push -q origin HEAD:main").code == 0;
      if (!pushed) git(work, "pull -q --rebase origin main");
    }
    EXPECT_TRUE(pushed) << "plain git was starved on " << w.git_url();
  }
}

// One committer's user: each round changes its own apps and one that all share.
void use(running& c, int number, const race& r, ledger& done) {
  auto own = "c" + std::to_string(number);
  for (int round = 0; round < r.rounds; ++round) {
    std::vector<change> changes;
    std::vector<std::pair<std::string, std::string>> names;
    for (int a = 0; a <= r.apps; ++a) {
      auto app = a == r.apps ? std::string("shared") : own + "-" + std::to_string(a);
      auto revision = own + "-r" + std::to_string(round) + "-" + std::to_string(a);
      names.emplace_back(app, revision);
      changes.push_back(make_change(app, revision));
    }
    auto answers = c.submit_all(std::move(changes));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ASSERT_TRUE(answers[i]) << to_string(answers[i].error());
      done.add({names[i].first, names[i].second, *answers[i]});
    }
  }
}

class racing : public testing::TestWithParam<kind> {};

}  // namespace

TEST_P(racing, ten_committers_and_plain_git_lose_and_force_nothing) {
  if (GetParam() == kind::ssh && !long_run()) GTEST_SKIP() << "takes long over SSH: ./check --long";
  world w(GetParam());
  if (!w.available()) GTEST_SKIP() << "sshd is not installed";
  auto r = size_of(GetParam());
  {
    auto first = open_store(w.dir / "first.git").value();
    running c(w.io, first, w.open(first));
    ASSERT_TRUE(c.submit(make_change("first", "v0")));
  }
  tip_watch tips(w.fleet());
  metrics counted;
  std::vector<std::unique_ptr<running>> all;
  for (int i = 0; i < r.committers; ++i) {
    auto store = open_store(w.dir / ("s" + std::to_string(i) + ".git")).value();
    all.push_back(std::make_unique<running>(w.io, store, w.open(store), patient(GetParam()), &counted));
  }
  ledger done;
  std::vector<std::thread> writers;
  for (int i = 0; i < r.humans; ++i)
    writers.emplace_back(person, std::cref(w), w.dir / ("w" + std::to_string(i)), "p" + std::to_string(i), r.commits_each);
  for (int i = 0; i < r.committers; ++i)
    writers.emplace_back(use, std::ref(*all[static_cast<std::size_t>(i)]), i, std::cref(r), std::ref(done));
  for (auto& t : writers) t.join();
  all.clear();

  auto seen = tips.seen();
  auto changes = static_cast<int>(done.all().size());
  int commits = check_history(w.fleet(), done, seen) - 1;
  EXPECT_EQ(changes, r.committers * r.rounds * (r.apps + 1));
  EXPECT_LT(commits, changes) << "there are no fewer pushes than changes";
  for (int i = 0; i < r.humans; ++i)
    for (int n = 0; n < r.commits_each; ++n)
      EXPECT_EQ(git(w.fleet(), "show main:people/p" + std::to_string(i) + "/" + std::to_string(n) + ".txt"),
                "p" + std::to_string(i) + " was here");
  EXPECT_EQ(std::stoi(git(w.fleet(), "rev-list --count main")), commits + 1 + r.humans * r.commits_each);
  check_grep(w.fleet(), done);
  check_readers(w.fleet());
  kubeopera::tests::report("git_races", name_of({GetParam(), 0}) + ": " + std::to_string(r.committers) + " committers and " +
                                            std::to_string(r.humans) + " people, " + std::to_string(changes) + " changes in " +
                                            std::to_string(commits) + " commits, " +
                                            std::to_string(counter(counted, "kubeopera_git_pushes_total")) + " pushes sent, " +
                                            std::to_string(seen.size()) + " tips seen");
}

INSTANTIATE_TEST_SUITE_P(git, racing, testing::Values(kind::file, kind::http_server, kind::ssh), name_of);

TEST(readers, go_git_reads_what_was_pushed) {
  if (!why_no_gogit().empty()) GTEST_SKIP() << why_no_gogit();
  world w(kind::file);
  auto store = open_store(w.dir / "s.git").value();
  running c(w.io, store, w.open(store));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(c.submit(make_change("web", "v" + std::to_string(i))));
  check_readers(w.fleet());
}
