// Other people's doings on the branch: it appears, disappears, is rewritten; the same directory is changed by two.
// SSH says the same as HTTP in a costlier way: races_test.cpp and faults_test.cpp go over it.
#include "tests/integration/git_races/history.hpp"
#include "tests/integration/git_races/readers.hpp"
#include "tests/integration/gitops/world.hpp"

#include <kubeopera/gitops/fleet.hpp>

using namespace races;

namespace {

committer_options patient() {
  committer_options o;
  o.max_attempts = 100;
  o.max_backoff = std::chrono::milliseconds(100);
  return o;
}

class others : public testing::TestWithParam<kind> {
 protected:
  world w{GetParam()};
  std::shared_ptr<object_store> store(const std::string& name = "s") { return open_store(w.dir / (name + ".git")).value(); }
  std::string show(const std::string& app) {
    return git(w.fleet(), "show main:" + app_directory("team", app).value() + "/deployment.yaml");
  }
};

}  // namespace

TEST_P(others, two_committers_of_one_directory_replace_each_other_and_lose_nothing) {
  auto one = store("one"), two = store("two");
  running a(w.io, one, w.open(one), patient()), b(w.io, two, w.open(two), patient());
  tip_watch tips(w.fleet());
  ledger done;
  auto use = [&done](running& c, const std::string& name) {
    for (int i = 0; i < 6; ++i) {
      auto revision = name + "-" + std::to_string(i);
      auto got = c.submit(make_change("web", revision));
      ASSERT_TRUE(got) << to_string(got.error());
      done.add({"web", revision, *got});
    }
  };
  std::thread first([&] { use(a, "one"); }), second([&] { use(b, "two"); });
  first.join();
  second.join();
  EXPECT_EQ(check_history(w.fleet(), done, tips.seen()), 12);
  check_readers(w.fleet());
}

TEST_P(others, the_first_commits_of_a_new_branch_race_too) {
  std::vector<std::unique_ptr<running>> all;
  for (int i = 0; i < 4; ++i) {
    auto s = store("s" + std::to_string(i));
    all.push_back(std::make_unique<running>(w.io, s, w.open(s), patient()));
  }
  ledger done;
  std::vector<std::thread> users;
  for (int i = 0; i < 4; ++i) {
    users.emplace_back([&, i] {
      auto app = "app-" + std::to_string(i);
      auto got = all[static_cast<std::size_t>(i)]->submit(make_change(app, "v1-" + app));
      ASSERT_TRUE(got) << to_string(got.error());
      done.add({app, "v1-" + app, *got});
    });
  }
  for (auto& u : users) u.join();
  EXPECT_EQ(check_history(w.fleet(), done, {}), 4);
  EXPECT_EQ(git(w.fleet(), "rev-list --count --max-parents=0 main"), "1") << "there are two beginnings";
}

TEST_P(others, a_branch_that_disappears_is_begun_anew_and_one_that_appears_is_built_on) {
  auto s = store();
  running c(w.io, s, w.open(s), patient());
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  git(w.fleet(), "update-ref refs/heads/aside main && git -C '" + w.fleet() + "' update-ref -d refs/heads/main");
  auto alone = c.submit(make_change("api", "v1"));
  ASSERT_TRUE(alone) << to_string(alone.error());
  EXPECT_EQ(git(w.fleet(), "rev-list --count main"), "1");
  EXPECT_EQ(show("api"), "v1");
  // Somebody puts the old branch back, and work goes on from there.
  git(w.fleet(), "update-ref refs/heads/main aside");
  auto back = c.submit(make_change("api", "v1"));
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_TRUE(back->changed);
  EXPECT_EQ(git(w.fleet(), "rev-parse main~1"), git(w.fleet(), "rev-parse aside"));
  EXPECT_EQ(show("web"), "v1");
  EXPECT_EQ(show("api"), "v1");
  check_readers(w.fleet());
}

TEST_P(others, a_branch_that_was_rewritten_is_followed_and_never_overwritten) {
  git(w.fleet(), "config receive.denyNonFastForwards false");
  auto s = store();
  running c(w.io, s, w.open(s), patient());
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  ASSERT_TRUE(c.submit(make_change("api", "v1")));
  auto work = w.dir / "w";
  git(".", "clone -q '" + w.fleet() + "' '" + work + "'");
  // The last commit is thrown away and another one put in its place.
  git(work, "reset -q --hard HEAD~1 && cd '" + work +
                "' && echo rewritten > notice.txt && git add -A && git commit -qm rewritten && "
                "git push -q --force origin HEAD:main");
  auto theirs = git(work, "rev-parse HEAD");
  auto got = c.submit(make_change("web", "v2"));
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(git(w.fleet(), "rev-parse main~1"), theirs);
  EXPECT_EQ(git(w.fleet(), "show main:notice.txt"), "rewritten");
  EXPECT_EQ(show("web"), "v2");
  // What the rewriting took away is missing, is told to be changed when it is submitted again, and is there again.
  EXPECT_NE(shell("git -C '" + w.fleet() + "' cat-file -e main:" + app_directory("team", "api").value()).code, 0);
  auto again = c.submit(make_change("api", "v1"));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(again->changed);
  EXPECT_EQ(show("api"), "v1");
  check_readers(w.fleet());
}

// The rewriting comes between the making of a commit and its push, and once more after a push whose answer was lost.
TEST_P(others, a_rewriting_under_way_of_a_push_keeps_both) {
  git(w.fleet(), "config receive.denyNonFastForwards false");
  auto s = store();
  auto remote = std::make_unique<faulty_remote>(w.open(s));
  auto work = w.dir / "w";
  auto rewrite = [&](const std::string& name) {
    git(work, "fetch -q origin && cd '" + work + "' && git reset -q --hard " + git(w.fleet(), "rev-list --max-parents=0 main") +
                  " && echo " + name + " > " + name + ".txt && git add -A && git commit -qm " + name +
                  " && git push -q --force origin HEAD:main");
  };
  std::atomic<bool> before{false}, after{false};
  remote->before_push = [&](int) {
    if (before.exchange(false)) rewrite("before");
    return answer_with({});
  };
  remote->after_push = [&](int, result<void> answer) {
    if (!answer || !after.exchange(false)) return answer_with(answer);
    rewrite("after");
    return answer_with(error(errc::unavailable, "ConnectionReset", "lost"));
  };
  running c(w.io, s, std::move(remote), patient());
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  git(".", "clone -q '" + w.fleet() + "' '" + work + "'");
  before = true;
  auto got = c.submit(make_change("web", "v2"));
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_EQ(git(w.fleet(), "show main:before.txt"), "before");
  EXPECT_EQ(show("web"), "v2");
  after = true;
  auto last = c.submit(make_change("web", "v3"));
  ASSERT_TRUE(last) << to_string(last.error());
  EXPECT_TRUE(last->changed);
  EXPECT_EQ(git(w.fleet(), "show main:after.txt"), "after");
  EXPECT_EQ(show("web"), "v3");
  EXPECT_EQ(git(w.fleet(), "rev-parse main"), last->commit);
  check_readers(w.fleet());
}

INSTANTIATE_TEST_SUITE_P(git, others, testing::Values(kind::file, kind::http_server), name_of);
