// Every kind of remote: committing, fetching, refusals. Committers that race are in tests/integration/git_races.
#include "tests/integration/gitops/world.hpp"

using namespace harness;

namespace {

class every_remote : public testing::TestWithParam<kind> {};

}  // namespace

TEST_P(every_remote, commits_fetches_and_reads_back) {
  world w(GetParam());
  if (!w.available()) GTEST_SKIP() << "sshd is not installed";
  auto store = open_store(w.dir / "a.git").value();
  {
    running c(w.io, store, w.open(store));
    auto got = c.submit(make_change("web", "v1"));
    ASSERT_TRUE(got) << to_string(got.error());
    EXPECT_EQ(got->commit, git(w.fleet(), "rev-parse main"));
  }
  // A second store starts empty and fetches, then fetches thin what git added.
  auto other = open_store(w.dir / "b.git").value();
  running c(w.io, other, w.open(other));
  auto got = c.submit(make_change("api", "v1"));
  ASSERT_TRUE(got) << to_string(got.error());
  auto work = w.dir / "w";
  git(".", "clone -q '" + w.git_url() + "' '" + work + "'");
  write_file(work + "/README", "by hand\n");
  git(work, "add -A");
  git(work, "commit -qm hand");
  git(work, "push -q origin main");
  auto next = c.submit(make_change("web", "v2"));
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_EQ(git(w.fleet(), "rev-list --count main"), "4");
  EXPECT_EQ(other->read_file(next->commit, "README").value(), "by hand\n");
  EXPECT_EQ(git(w.fleet(), "show main:README"), "by hand");
  EXPECT_EQ(fsck(w.fleet()), "");
  EXPECT_EQ(fsck(other->directory()), "");
}

TEST_P(every_remote, tells_whether_a_push_would_be_let_in_and_writes_nothing) {
  world w(GetParam());
  if (!w.available()) GTEST_SKIP() << "sshd is not installed";
  auto asked_only = w.open(nullptr);
  auto answer = w.io.run<void>(asked_only->may_push());
  EXPECT_TRUE(answer) << to_string(answer.error());
  auto tip = w.io.run<std::optional<std::string>>(asked_only->tip("main"));
  ASSERT_TRUE(tip) << to_string(tip.error());
  EXPECT_FALSE(*tip);
}

TEST(may_push, a_server_that_lets_nobody_push_says_so) {
  temp_folder dir;
  git_server_options o;
  o.repository = make_bare(dir, "closed.git");
  io_threads io(1);
  auto closed = make_http_remote(http::make_local_transport(make_git_http_handler(o)), "", nullptr);
  auto answer = io.run<void>(closed->may_push());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), errc::permission_denied);
  auto nowhere = make_file_remote(dir / "nowhere.git", nullptr);
  EXPECT_FALSE(io.run<void>(nowhere->may_push()));
}

INSTANTIATE_TEST_SUITE_P(remotes, every_remote, testing::Values(kind::file, kind::http_local, kind::http_server, kind::ssh),
                         name_of);

class hooked : public testing::TestWithParam<kind> {};

TEST_P(hooked, a_refusal_comes_back_with_the_servers_words_and_hits_only_the_culprit) {
  world w(GetParam());
  if (!w.available()) GTEST_SKIP() << "sshd is not installed";
  write_hook(w.fleet(), "pre-receive",
             "while read old new ref; do git diff-tree -r --name-only --root $new | grep -q /forbidden/ && "
             "{ echo 'forbidden apps are not deployed on Friday' >&2; exit 1; }; done; exit 0");
  auto store = open_store(w.dir / "s.git").value();
  running c(w.io, store, w.open(store));
  ASSERT_TRUE(c.submit(make_change("web", "v1")));
  auto refused = c.submit(make_change("forbidden", "v1"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::permission_denied);
  EXPECT_NE(refused.error().message().find("not deployed on Friday"), std::string::npos) << refused.error().message();
  EXPECT_NE(refused.error().message().find("pre-receive hook declined"), std::string::npos);
  std::vector<change> all;
  for (int i = 0; i < 7; ++i) all.push_back(make_change(i == 4 ? "forbidden" : "app-" + std::to_string(i), "v1"));
  auto got = c.submit_all(std::move(all));
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].has_value(), i != 4) << i;
  EXPECT_EQ(git(w.fleet(), "ls-tree -r --name-only main | grep -c forbidden || true"), "0");
  EXPECT_EQ(fsck(w.fleet()), "");
}

INSTANTIATE_TEST_SUITE_P(remotes, hooked, testing::Values(kind::http_server, kind::ssh), name_of);

TEST(ssh_remote, strangers_and_unknown_hosts_are_told_apart) {
  temp_folder dir;
  io_threads io;
  auto fleet = make_bare(dir, "fleet.git");
  auto server = ssh_server::start(dir);
  if (!server) GTEST_SKIP() << "sshd is not installed";
  auto store = open_store(dir / "s.git").value();
  auto ask = [&](ssh_options o) {
    auto r = make_ssh_remote(io.executor(), o, store);
    return io.run<std::optional<std::string>>(r->tip("main"));
  };
  EXPECT_TRUE(ask(server->options(fleet)));
  auto stranger = server->options(fleet);
  stranger.identity_file = dir / "ssh/stranger";
  EXPECT_EQ(ask(stranger).error().reason(), "SshRefused");
  auto unknown = server->options(fleet);
  unknown.known_hosts_file = dir / "empty";
  write_file(unknown.known_hosts_file, "");
  EXPECT_EQ(ask(unknown).error().reason(), "SshHostKey");
  EXPECT_EQ(ask(server->options(dir / "none.git")).error().code(), errc::not_found);
  auto evil = server->options("/x'; touch '" + (dir / "pwned") + "'; echo '");
  EXPECT_FALSE(ask(evil));
  EXPECT_FALSE(std::filesystem::exists(dir / "pwned"));
  auto option = server->options(fleet);
  option.host = "-oProxyCommand=touch";
  EXPECT_EQ(ask(option).error().code(), errc::invalid_argument);
  auto absent = server->options(fleet);
  absent.program = "/nonexistent/ssh";
  EXPECT_EQ(ask(absent).error().reason(), "SpawnFailed");
}
