// The push's state machine, step by step, and what goes into a batch.
#include "src/gitops/batch.hpp"
#include "src/gitops/commit.hpp"
#include "src/gitops/push_flow.hpp"
#include "src/gitops/validate.hpp"
#include "tests/unit/gitops/git_tool.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::gitops;
using namespace kubeopera::gitops::detail;
using step = push_flow::step;
using kind = push_flow::outcome_kind;

namespace {

const error moved(errc::conflict, "BranchMoved", "moved");
const error lost(errc::deadline_exceeded, "DeadlineExceeded", "no answer");
const error down(errc::unavailable, "ConnectFailed", "refused");
const error refused(errc::permission_denied, "PushRefused", "hook declined");

change make_change(const std::string& directory, const std::string& content = "x") {
  change c;
  c.directory = directory;
  c.files["a.yaml"] = content;
  c.subject = "Deploy " + directory;
  c.trailers = {{"Kubeopera-App", directory}, {"Kubeopera-Revision", "3"}};
  return c;
}

}  // namespace

TEST(push_flow, happy_path_asks_nothing_when_the_tip_is_known) {
  push_flow f(3, true);
  EXPECT_EQ(f.next(), step::build);
  f.built(true);
  EXPECT_EQ(f.next(), step::push);
  f.pushed({});
  EXPECT_EQ(f.next(), step::done);
  EXPECT_EQ(f.outcome(), kind::pushed);
}

TEST(push_flow, nothing_to_do_is_believed_only_of_a_fresh_tip) {
  push_flow f(3, true);
  f.built(false);
  EXPECT_EQ(f.next(), step::refresh);
  f.refreshed(false);
  f.built(false);
  EXPECT_EQ(f.next(), step::done);
  EXPECT_EQ(f.outcome(), kind::unchanged);
}

TEST(push_flow, conflict_rebuilds_on_the_new_tip) {
  push_flow f(3, true);
  f.built(true);
  f.pushed(moved);
  EXPECT_EQ(f.next(), step::pause);
  f.paused();
  EXPECT_EQ(f.next(), step::refresh);
  f.refreshed(false);
  EXPECT_EQ(f.next(), step::build);
}

TEST(push_flow, lost_answer_is_looked_up_before_anything_is_sent_again) {
  push_flow f(3, true);
  f.built(true);
  f.pushed(lost);
  EXPECT_EQ(f.next(), step::pause);
  f.paused();
  f.refreshed(down);  // the question fails too
  EXPECT_EQ(f.next(), step::pause);
  f.paused();
  f.refreshed(true);
  EXPECT_EQ(f.next(), step::done);
  EXPECT_EQ(f.outcome(), kind::found);
}

TEST(push_flow, a_last_look_after_the_last_attempt) {
  for (bool there : {true, false}) {
    push_flow f(1, true);
    f.built(true);
    f.pushed(lost);
    ASSERT_EQ(f.next(), step::refresh);
    f.refreshed(there);
    EXPECT_EQ(f.next(), there ? step::done : step::failed);
    if (!there) {
      EXPECT_EQ(f.failure().code(), errc::deadline_exceeded);
    }
  }
}

TEST(push_flow, attempts_are_bounded) {
  push_flow f(4, false);
  int pushes = 0;
  while (f.next() != step::failed) {
    switch (f.next()) {
      case step::refresh:
        f.refreshed(false);
        break;
      case step::build:
        f.built(true);
        break;
      case step::push:
        ++pushes, f.pushed(moved);
        break;
      default:
        f.paused();
        break;
    }
  }
  EXPECT_EQ(pushes, 4);
  EXPECT_EQ(f.failure().reason(), "Contention");
  EXPECT_EQ(f.failure().code(), errc::unavailable);
}

// The first answer is lost, the second says no: what was sent first may be there all the same.
TEST(push_flow, no_answer_is_final_while_an_earlier_push_is_in_doubt) {
  for (const auto& second : {refused, moved}) {
    for (bool there : {true, false}) {
      push_flow f(2, true);
      f.built(true);
      f.pushed(lost);
      f.paused();
      f.refreshed(false);
      f.built(true);
      f.pushed(second);
      ASSERT_EQ(f.next(), step::refresh);
      f.refreshed(there);
      EXPECT_EQ(f.next(), there ? step::done : step::failed);
      if (!there) {
        EXPECT_EQ(f.failure().reason(), second.code() == errc::conflict ? "Contention" : "PushRefused");
      }
    }
  }
}

TEST(push_flow, a_question_that_fails_after_the_last_attempt_keeps_the_pushs_own_error) {
  push_flow f(1, true);
  f.built(true);
  f.pushed(lost);
  f.refreshed(error(errc::permission_denied, "GitForbidden", "no"));
  ASSERT_EQ(f.next(), step::failed);
  EXPECT_EQ(f.failure().code(), errc::deadline_exceeded);
}

TEST(push_flow, waits_as_long_as_the_server_asks) {
  push_flow f(5, true);
  f.built(true);
  f.pushed(error(errc::unavailable, "GitServer", "busy").with_retry_after(std::chrono::seconds(7)));
  ASSERT_EQ(f.next(), step::pause);
  EXPECT_EQ(f.asked_to_wait(), std::chrono::seconds(7));
  f.paused();
  f.refreshed(down);
  ASSERT_EQ(f.next(), step::pause);
  EXPECT_EQ(f.asked_to_wait(), std::chrono::seconds(0));
}

TEST(push_flow, a_refusal_is_final) {
  push_flow f(4, true);
  f.built(true);
  f.pushed(refused);
  EXPECT_EQ(f.next(), step::failed);
  EXPECT_EQ(f.failure().code(), errc::permission_denied);
  push_flow g(4, false);
  g.refreshed(error(errc::unauthenticated, "x", "y"));
  EXPECT_EQ(g.next(), step::failed);
}

TEST(batch, stops_before_a_nested_directory) {
  std::deque<std::shared_ptr<pending_change>> queue;
  for (auto d : {"a/b", "c", "a/b", "a/bc", "a/b/d", "e"}) queue.push_back(std::make_shared<pending_change>(make_change(d)));
  EXPECT_EQ(take_batch(queue, 100).size(), 4u);
  EXPECT_EQ(take_batch(queue, 100).size(), 2u);
  for (auto d : {"a/b/c", "a"}) queue.push_back(std::make_shared<pending_change>(make_change(d)));
  EXPECT_EQ(take_batch(queue, 100).size(), 1u);
  EXPECT_EQ(take_batch(queue, 100).size(), 1u);
  for (int i = 0; i < 5; ++i) queue.push_back(std::make_shared<pending_change>(make_change("x" + std::to_string(i))));
  EXPECT_EQ(take_batch(queue, 3).size(), 3u);
  queue.clear();
  for (int i = 0; i < 40; ++i)
    queue.push_back(std::make_shared<pending_change>(make_change("x" + std::to_string(i), std::string(1 << 20, 'x'))));
  EXPECT_EQ(take_batch(queue, 100).size(), 16u);
}

TEST(batch, the_last_change_of_a_directory_wins_and_both_are_told) {
  git_tool::temp_folder dir;
  auto store = open_store(dir / "s.git");
  ASSERT_TRUE(store);
  batch_builder builder(*store, "k", "k@k");
  pending_list batch;
  for (auto content : {"first", "second"}) batch.push_back(std::make_shared<pending_change>(make_change("c/app", content)));
  auto built = builder.build(batch, "", 1700000000);
  ASSERT_TRUE(built) << to_string(built.error());
  ASSERT_TRUE(built->differs);
  ASSERT_TRUE((*store)->add_indexed_pack(built->pack.pack, built->pack.index));
  EXPECT_EQ((*store)->read_file(built->commit.hex(), "c/app/a.yaml").value(), "second");
  EXPECT_EQ(built->changed, (std::vector<bool>{true, true}));
  auto again = builder.build(batch, built->commit.hex(), 1700000001);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->differs);
}

TEST(message, trailers_are_readable_by_git) {
  git_tool::temp_folder dir;
  auto a = make_change("c/a"), b = make_change("c/b");
  const change* both[] = {&a, &b};
  git_tool::write_file(dir / "m", compose_message(both));
  EXPECT_EQ(git_tool::git(dir.str(), "interpret-trailers --parse m"),
            "Kubeopera-App: c/a\nKubeopera-Revision: 3\nKubeopera-App: c/b\nKubeopera-Revision: 3");
  EXPECT_TRUE(compose_message(both).starts_with("Deploy c/a and 1 more\n\n- Deploy c/a\n- Deploy c/b\n\nKubeopera-App: c/a\n"));
  const change* one[] = {&a};
  EXPECT_EQ(compose_message(one), "Deploy c/a\n\nKubeopera-App: c/a\nKubeopera-Revision: 3\n");
  a.subject.clear();
  a.trailers.clear();
  EXPECT_EQ(compose_message(one), "Update c/a\n");
}

TEST(commit_object, round_trip_and_damage) {
  commit_parts parts;
  parts.name = "A <x>\n";
  parts.email = "a@b";
  parts.time = 1700000000;
  parts.parent = oid();
  parts.message = "Subject\n\nBody\n";
  auto bytes = format_commit(parts);
  auto back = parse_commit(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->author_name, "A x");
  EXPECT_EQ(back->time, 1700000000);
  EXPECT_EQ(back->message, "Subject\n\nBody\n");
  EXPECT_EQ(back->parents.size(), 1u);
  for (std::size_t n = 0; n < 100; ++n) EXPECT_FALSE(parse_commit(std::string_view(bytes).substr(0, n))) << n;
}

TEST(validate, each_fault_has_its_pointer) {
  EXPECT_TRUE(validate_change(make_change("clusters/v/a0/app")));
  auto pointers = [](const change& c) {
    auto r = validate_change(c);
    std::string out;
    if (r) return out;
    error e = r.error();
    for (const auto& v : e.violations()) out += v.pointer + " ";
    return out;
  };
  for (auto bad : {"", "/a", "a/", "a//b", "a/../b", "a/B", "a/-b", "a/b.c", "a/.git", "a/b\nc", "a\\b"}) {
    EXPECT_TRUE(pointers(make_change(bad)).starts_with("/directory ")) << bad;
  }
  std::string deep = "a";
  for (int i = 1; i < 16; ++i) deep += "/a";
  EXPECT_TRUE(validate_change(make_change(deep)));
  EXPECT_TRUE(pointers(make_change(deep + "/a")).starts_with("/directory "));
  for (auto bad : {"", ".git", ".gitmodules", "A.yaml", "-rf", "a/b", "a..b", "a.", "C:", "a\tb", "a_b"}) {
    auto c = make_change("a");
    c.files.clear();
    c.files[bad] = "x";
    EXPECT_NE(pointers(c).find("/files/"), std::string::npos) << bad;
  }
  auto c = make_change("a");
  c.files.clear();
  c.files[std::string(101, 'a')] = "x";
  EXPECT_NE(pointers(c), "");
  c.files.clear();
  c.files["a"] = std::string((1 << 20) + 1, 'x');
  EXPECT_EQ(pointers(c), "/files/a ");
  c = make_change("a");
  c.subject = "two\nlines";
  c.trailers = {{"Bad Key", "v"}, {"Good", "two\nlines"}, {"Good", ""}};
  EXPECT_EQ(pointers(c), "/subject /trailers/0/0 /trailers/1/1 /trailers/2/1 ");
}

TEST(validate, branches) {
  for (auto good : {"main", "release/1.0", "a_b-c"}) EXPECT_TRUE(validate_branch(good)) << good;
  for (auto bad : {"", "-x", "HEAD", "a..b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a b", "a~1", "a:b", "a.", "a@{b}"})
    EXPECT_FALSE(validate_branch(bad)) << bad;
}

TEST(fleet, app_directories_are_sharded) {
  // printf web | sha256sum begins with 37
  auto got = app_directory("team-a", "web");
  ASSERT_TRUE(got);
  auto expected = git_tool::shell("printf web | sha256sum | cut -c1-2").text.substr(0, 2);
  EXPECT_EQ(*got, "clusters/team-a/" + expected + "/web");
  EXPECT_EQ(app_directory("A", "web").error().violations().at(0).pointer, "/vcluster");
  EXPECT_EQ(app_directory("a", "web/x").error().violations().at(0).pointer, "/app");
}
