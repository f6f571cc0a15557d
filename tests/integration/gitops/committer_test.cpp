// The committer against real repositories in files: batches, restarts, faults, other writers.
#include "tests/integration/gitops/harness.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <atomic>
#include <set>

using namespace harness;

namespace {

struct place {
  temp_folder dir;
  io_threads io;
  std::string fleet = make_bare(dir, "fleet.git");

  std::shared_ptr<object_store> store(const std::string& name = "store.git") { return open_store(dir / name).value(); }
  std::unique_ptr<faulty_remote> origin(std::shared_ptr<object_store> s) {
    return std::make_unique<faulty_remote>(make_file_remote(fleet, std::move(s)));
  }
  int commits() { return std::stoi(git(fleet, "rev-list --count main")); }
  std::string show(const std::string& app, const std::string& vcluster = "team") {
    return git(fleet, "show main:" + app_directory(vcluster, app).value() + "/deployment.yaml");
  }
};

committer_options patient() {
  committer_options o;
  o.max_attempts = 60;
  return o;
}

}  // namespace

TEST(committer, first_commit_makes_the_branch_and_git_can_read_it) {
  place p;
  auto s = p.store();
  running c(p.io, s, p.origin(s));
  auto got = c.submit(make_change("web", "v1"));
  ASSERT_TRUE(got) << to_string(got.error());
  EXPECT_TRUE(got->changed);
  EXPECT_EQ(got->commit, git(p.fleet, "rev-parse main"));
  EXPECT_EQ(c->tip(), got->commit);
  EXPECT_EQ(p.show("web"), "v1");
  EXPECT_EQ(git(p.fleet, "log -1 --format='%an|%ae|%s|%(trailers:key=Kubeopera-App,valueonly)' main"),
            "kubeopera|kubeopera@localhost|Deploy web|web");
  EXPECT_EQ(fsck(p.fleet), "");
  EXPECT_EQ(fsck(s->directory()), "");
}

TEST(committer, the_same_content_makes_no_commit) {
  place p;
  auto s = p.store();
  running c(p.io, s, p.origin(s));
  auto first = c.submit(make_change("web", "v1"));
  auto again = c.submit(make_change("web", "v1"));
  ASSERT_TRUE(first && again);
  EXPECT_FALSE(again->changed);
  EXPECT_EQ(again->commit, first->commit);
  EXPECT_EQ(p.commits(), 1);
  change gone = make_change("never", "none");
  gone.files.clear();
  auto nothing_there = c.submit(gone);
  ASSERT_TRUE(nothing_there);
  EXPECT_FALSE(nothing_there->changed);
}

TEST(committer, a_change_that_asks_for_it_is_always_a_commit) {
  place p;
  auto s = p.store();
  running c(p.io, s, p.origin(s));
  auto gone = make_change("web", "none");
  gone.files.clear();
  gone.always = true;
  auto first = c.submit(gone);  // on an empty repository
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_FALSE(first->changed);
  EXPECT_EQ(first->commit, git(p.fleet, "rev-parse main"));
  auto again = c.submit(gone);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_NE(again->commit, first->commit);
  EXPECT_EQ(p.commits(), 2);
  EXPECT_EQ(git(p.fleet, "ls-tree -r main"), "");
  EXPECT_EQ(fsck(p.fleet), "");
}

TEST(committer, nothing_is_pushed_without_permission) {
  place p;
  auto s = p.store();
  std::atomic<bool> open{true};
  committer_options o;
  o.may_push = [&open]() -> result<void> {
    if (open) return {};
    return error(errc::cancelled, "NotLeading", "not any more");
  };
  running c(p.io, s, p.origin(s), o);
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  open = false;
  auto refused = c.submit(make_change("web", "v2"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "NotLeading");
  EXPECT_EQ(p.commits(), 1);
  EXPECT_EQ(p.show("web"), "v1");
}

TEST(committer, removes_a_directory_and_leaves_its_neighbours) {
  place p;
  auto s = p.store();
  running c(p.io, s, p.origin(s));
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  ASSERT_TRUE(c.submit(make_change("api", "v1")));
  auto gone = make_change("web", "none");
  gone.files.clear();
  auto got = c.submit(gone);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->changed);
  EXPECT_EQ(git(p.fleet, "ls-tree -r --name-only main"),
            app_directory("team", "api").value() + "/deployment.yaml\n" + app_directory("team", "api").value() + "/service.yaml");
}

TEST(committer, what_waits_goes_into_one_commit) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  auto* seen = remote.get();
  running c(p.io, s, std::move(remote));
  std::vector<change> all;
  for (int i = 0; i < 200; ++i) all.push_back(make_change("app-" + std::to_string(i), "v1"));
  std::set<std::string> commits;
  for (auto& got : c.submit_all(std::move(all))) {
    ASSERT_TRUE(got) << to_string(got.error());
    EXPECT_TRUE(got->changed);
    commits.insert(got->commit);
  }
  EXPECT_EQ(static_cast<int>(commits.size()), p.commits());
  EXPECT_EQ(seen->pushes, p.commits());
  EXPECT_LE(p.commits(), 10);
  EXPECT_EQ(git(p.fleet, "log --format='%(trailers:key=Kubeopera-App,valueonly)' main | sort -u | grep -c app-"), "200");
  EXPECT_EQ(fsck(p.fleet), "");
}

TEST(committer, everything_that_waits_for_a_push_is_the_next_push) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  auto* seen = remote.get();
  auto gate = std::make_shared<notifier>();
  auto open = std::make_shared<std::atomic<bool>>(false);
  remote->before_push = [gate, open](int) { return wait_until(gate, open); };
  running c(p.io, s, std::move(remote));
  auto first = std::async(std::launch::async, [&] { return c.submit(make_change("first", "v1")); });
  p.io.run<void>(until([seen] { return seen->pushes == 1; })).value();
  std::vector<change> all;
  for (int i = 0; i < 200; ++i) all.push_back(make_change("app-" + std::to_string(i), "v1"));
  auto rest = c.start_all(std::move(all));
  p.io.run<void>(until([&] { return c->waiting() == 200; })).value();
  *open = true;
  gate->notify();
  ASSERT_TRUE(first.get());
  for (auto& r : rest) ASSERT_TRUE(r.get());
  EXPECT_EQ(seen->pushes, 2);
  EXPECT_EQ(p.commits(), 2);
}

TEST(committer, later_changes_of_a_directory_win) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  auto* seen = remote.get();
  auto gate = std::make_shared<notifier>();
  auto open = std::make_shared<std::atomic<bool>>(false);
  remote->before_push = [gate, open](int) { return wait_until(gate, open); };
  running c(p.io, s, std::move(remote));
  std::vector<std::future<result<receipt>>> answers;
  auto submit = [&](const std::string& content, std::size_t waiting) {
    for (auto& f : c.start_all({make_change("web", content)})) answers.push_back(std::move(f));
    p.io.run<void>(until([&c, seen, waiting] { return seen->pushes == 1 && c->waiting() == waiting; })).value();
  };
  submit("v1", 0);
  submit("v2", 1);
  submit("v3", 2);
  *open = true;
  gate->notify();
  std::vector<receipt> got;
  for (auto& a : answers) got.push_back(a.get().value());
  EXPECT_NE(got[0].commit, got[1].commit);
  EXPECT_EQ(got[1].commit, got[2].commit);
  EXPECT_TRUE(got[1].changed && got[2].changed);
  EXPECT_EQ(p.show("web"), "v3");
  EXPECT_EQ(git(p.fleet, "log -1 --format='%(trailers:key=Kubeopera-Revision,valueonly,separator=%x2C)' main"), "v2,v3");
}

TEST(committer, bad_changes_are_refused_and_a_file_in_the_way_fails_alone) {
  place p;
  git(".", "clone -q '" + p.fleet + "' '" + (p.dir / "w") + "'");
  write_file(p.dir / "w/clusters/blocked", "a file\n");
  git(p.dir / "w",
      "checkout -q -b main && cd '" + (p.dir / "w") + "' && git add -A && git commit -qm base && git push -q origin main");
  auto s = p.store();
  running c(p.io, s, p.origin(s));
  auto bad = make_change("web", "x");
  bad.files["../x"] = "";
  auto refused = c.submit(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::invalid_argument);
  auto got = c.submit_all({make_change("a", "v1", "blocked"), make_change("b", "v1", "open")});
  EXPECT_EQ(got[0].error().code(), errc::failed_precondition);
  ASSERT_TRUE(got[1]);
  EXPECT_TRUE(got[1]->changed);
  EXPECT_EQ(git(p.fleet, "show main:clusters/blocked"), "a file");
}

TEST(committer, restart_goes_on_without_a_clone) {
  place p;
  {
    auto s = p.store();
    running c(p.io, s, p.origin(s));
    ASSERT_TRUE(c.submit(make_change("web", "v1")));
  }
  auto s = p.store();
  auto remote = p.origin(s);
  auto* seen = remote.get();
  running c(p.io, s, std::move(remote));
  ASSERT_TRUE(c.submit(make_change("web", "v2")));
  EXPECT_EQ(seen->fetches, 0);
  EXPECT_EQ(p.commits(), 2);
}

TEST(committer, store_and_remote_may_be_one_directory) {
  place p;
  auto s = open_store(p.fleet).value();
  running c(p.io, s, make_file_remote(p.fleet, s));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(c.submit(make_change("web", "v" + std::to_string(i))));
  EXPECT_EQ(p.commits(), 5);
  EXPECT_EQ(git(p.fleet, "for-each-ref --format='%(refname)'"), "refs/heads/main");
  EXPECT_EQ(fsck(p.fleet), "");
  EXPECT_EQ(git(".", "clone -q '" + p.fleet + "' '" + (p.dir / "clone") + "'"), "");
}

TEST(committer, an_answer_lost_after_the_push_is_found_out) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  auto* seen = remote.get();
  remote->after_push = [](int call, result<void> answer) {
    return answer_with(call % 2 == 0 && answer ? result<void>(error(errc::unavailable, "ConnectionReset", "lost")) : answer);
  };
  running c(p.io, s, std::move(remote), patient());
  for (int i = 0; i < 4; ++i) {
    auto got = c.submit(make_change("web", "v" + std::to_string(i)));
    ASSERT_TRUE(got) << to_string(got.error());
    EXPECT_TRUE(got->changed);
    EXPECT_EQ(got->commit, git(p.fleet, "rev-parse main"));
  }
  EXPECT_EQ(p.commits(), 4);
  EXPECT_EQ(seen->pushes, 4);
}

TEST(committer, a_push_lost_on_the_way_is_sent_again_as_the_same_commit) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  remote->before_push = [](int call) {
    return answer_with(call == 0 ? result<void>(error(errc::deadline_exceeded, "DeadlineExceeded", "lost")) : result<void>());
  };
  running c(p.io, s, std::move(remote), patient());
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  EXPECT_EQ(p.commits(), 1);
  EXPECT_EQ(git(s->directory(), "rev-list --all --count"), "1");
}

TEST(committer, an_answer_lost_while_others_push_on_top) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  auto work = p.dir / "w";
  remote->after_push = [&](int call, result<void> answer) {
    if (call > 0) return answer_with(answer);
    git(".", "clone -q '" + p.fleet + "' '" + work + "'");
    write_file(work + "/human.txt", "hi\n");
    git(work, "add -A && cd '" + work + "' && git commit -qm human && git push -q origin main");
    return answer_with(error(errc::unavailable, "ConnectionReset", "lost"));
  };
  running c(p.io, s, std::move(remote), patient());
  auto got = c.submit(make_change("web", "v1"));
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->changed);
  EXPECT_EQ(got->commit, git(p.fleet, "rev-parse main~1"));
  EXPECT_EQ(p.commits(), 2);
}

TEST(committer, gives_up_after_bounded_attempts_and_recovers) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  auto down = std::make_shared<std::atomic<bool>>(true);
  remote->before_tip = [down](int) {
    return answer_with(*down ? result<void>(error(errc::unavailable, "ConnectFailed", "refused")) : result<void>());
  };
  auto* seen = remote.get();
  committer_options o;
  o.max_attempts = 4;
  o.max_backoff = std::chrono::milliseconds(30);
  running c(p.io, s, std::move(remote), o);
  auto got = c.submit(make_change("web", "v1"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), errc::unavailable);
  EXPECT_LE(seen->tips, 1 + 4);
  *down = false;
  EXPECT_TRUE(c.submit(make_change("web", "v1")));
}

TEST(committer, stopping_answers_who_waits) {
  place p;
  auto s = p.store();
  auto remote = p.origin(s);
  auto entered = std::make_shared<std::promise<void>>();
  auto in = entered->get_future();
  remote->before_push = [entered](int) -> task<void> {
    entered->set_value();
    return sleep_for(std::chrono::hours(1));
  };
  running c(p.io, s, std::move(remote));
  auto first = std::async(std::launch::async, [&] { return c.submit(make_change("web", "v1")); });
  in.wait();
  c.stop();
  EXPECT_EQ(first.get().error().code(), errc::cancelled);
  EXPECT_FALSE(shell("git -C '" + p.fleet + "' rev-parse -q --verify main").code == 0);
}

TEST(committer, ancestry_fetches_what_it_lacks) {
  place p;
  auto s = p.store();
  running c(p.io, s, p.origin(s));
  auto first = c.submit(make_change("web", "v1"));
  ASSERT_TRUE(first);
  auto work = p.dir / "w";
  git(".", "clone -q '" + p.fleet + "' '" + work + "'");
  write_file(work + "/human.txt", "hi\n");
  git(work, "add -A && cd '" + work + "' && git commit -qm human && git push -q origin main");
  auto human = git(work, "rev-parse HEAD");
  EXPECT_TRUE(p.io.run<bool>(c->is_ancestor(first->commit, human)).value());
  EXPECT_FALSE(p.io.run<bool>(c->is_ancestor(human, first->commit)).value());
  EXPECT_EQ(p.io.run<bool>(c->is_ancestor(std::string(40, 'a'), human)).error().code(), errc::not_found);
  auto next = c.submit(make_change("web", "v2"));
  ASSERT_TRUE(next);
  EXPECT_EQ(git(p.fleet, "rev-parse main~1"), human);
  EXPECT_EQ(git(p.fleet, "show main:human.txt"), "hi");
}

TEST(committer, a_branch_set_back_by_its_owner_is_followed) {
  place p;
  auto s = p.store();
  running c(p.io, s, p.origin(s));
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  auto first = git(p.fleet, "rev-parse main");
  ASSERT_TRUE(c.submit(make_change("web", "v2")));
  git(p.fleet, "update-ref refs/heads/main " + first);
  auto got = c.submit(make_change("web", "v2"));
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->changed);
  EXPECT_EQ(git(p.fleet, "rev-parse main~1"), first);
  EXPECT_EQ(p.show("web"), "v2");
}

TEST(committer, many_packs_are_merged_while_it_works) {
  place p;
  auto s = open_store(p.fleet).value();
  running c(p.io, s, make_file_remote(p.fleet, s));
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(c.submit(make_change("web-" + std::to_string(i % 7), "v" + std::to_string(i))));
  ASSERT_TRUE(s->compact(64, duration::zero()));
  int packs = std::stoi(shell("ls '" + p.fleet + "/objects/pack' | grep -c pack$").text);
  EXPECT_LT(packs, 100);
  EXPECT_EQ(p.commits(), 150);
  EXPECT_EQ(fsck(p.fleet), "");
}
