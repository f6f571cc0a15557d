// Every kind of remote, with other committers and plain git at work on the same branch.
#include "tests/integration/gitops/harness.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <set>
#include <thread>

using namespace harness;

namespace {

enum class kind { file, http_local, http_server, ssh };

// A fleet repository and a way to reach it.
class world {
 public:
  explicit world(kind k) : kind_(k), fleet_(make_bare(dir, "fleet.git")) {
    git(fleet_, "config receive.denyNonFastForwards true");
    git_server_options o;
    o.repository = fleet_;
    o.allow_push = true;
    if (k == kind::http_server) http_ = std::make_unique<http_git>(io, o);
    if (k == kind::http_local) local_ = http::make_local_transport(make_git_http_handler(o));
    if (k == kind::ssh) ssh_ = ssh_server::start(dir);
  }
  bool available() const { return kind_ != kind::ssh || ssh_; }
  const std::string& fleet() const { return fleet_; }

  std::unique_ptr<remote> open(std::shared_ptr<object_store> store) {
    switch (kind_) {
      case kind::file:
        return make_file_remote(fleet_, store);
      case kind::http_local:
        return make_http_remote(local_, "", store);
      case kind::http_server:
        return make_http_remote(http_->client(), "/", store);
      case kind::ssh:
        return make_ssh_remote(io.executor(), ssh_->options(fleet_), store);
    }
    return nullptr;
  }
  // Where plain git pushes to: over HTTP where there is a server.
  std::string git_url() const { return http_ ? http_->url() : fleet_; }

  temp_folder dir;
  io_threads io{2};

 private:
  kind kind_;
  std::string fleet_;
  std::unique_ptr<http_git> http_;
  std::shared_ptr<http::transport> local_;
  std::unique_ptr<ssh_server> ssh_;
};

class every_remote : public testing::TestWithParam<kind> {};

std::string name_of(const testing::TestParamInfo<kind>& info) {
  switch (info.param) {
    case kind::file:
      return "file";
    case kind::http_local:
      return "http_local";
    case kind::http_server:
      return "http_server";
    case kind::ssh:
      return "ssh";
  }
  return "";
}

committer_options patient() {
  committer_options o;
  o.max_attempts = 200;
  o.max_backoff = std::chrono::milliseconds(500);
  return o;
}

// Plain git: commits files of its own and pushes, rebasing when it loses the race.
void human(const world& w, const std::string& work, int commits) {
  for (int i = 0; i < commits; ++i) {
    write_file(work + "/humans/" + std::to_string(i) + ".txt", "hand made\n");
    git(work, "add -A");
    git(work, "commit -qm 'human " + std::to_string(i) + "'");
    bool pushed = false;
    for (int tries = 0; tries < 200 && !pushed; ++tries) {
      pushed = shell("git -C '" + work + "' push -q origin HEAD:main").code == 0;
      if (!pushed) git(work, "pull -q --rebase origin main");
    }
    EXPECT_TRUE(pushed) << "plain git was starved on " << w.git_url();
  }
}

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

TEST_P(every_remote, ten_committers_and_plain_git_lose_nothing) {
  world w(GetParam());
  if (!w.available()) GTEST_SKIP() << "sshd is not installed";
  const int committers = GetParam() == kind::ssh ? 4 : 10, rounds = 3, apps = 5, humans = 4;
  {
    auto first = open_store(w.dir / "first.git").value();
    running c(w.io, first, w.open(first));
    ASSERT_TRUE(c.submit(make_change("first", "v0")));
  }
  write_hook(w.fleet(), "post-receive", "cat >> '" + (w.dir / "updates") + "'");
  git(".", "clone -q '" + w.git_url() + "' '" + (w.dir / "w") + "'");
  metrics counted;
  std::vector<std::unique_ptr<running>> all;
  for (int i = 0; i < committers; ++i) {
    auto store = open_store(w.dir / ("s" + std::to_string(i) + ".git")).value();
    all.push_back(std::make_unique<running>(w.io, store, w.open(store), patient(), &counted));
  }
  std::thread person(human, std::cref(w), w.dir / "w", humans);
  std::vector<std::thread> users;
  std::mutex mutex;
  std::set<std::string> commits;
  for (int i = 0; i < committers; ++i) {
    users.emplace_back([&, i] {
      for (int r = 0; r < rounds; ++r) {
        std::vector<change> changes;
        for (int a = 0; a < apps; ++a)
          changes.push_back(make_change("app-" + std::to_string(i) + "-" + std::to_string(a), "v" + std::to_string(r)));
        for (auto& got : all[static_cast<std::size_t>(i)]->submit_all(std::move(changes))) {
          ASSERT_TRUE(got) << to_string(got.error());
          EXPECT_TRUE(got->changed);
          std::lock_guard lock(mutex);
          commits.insert(got->commit);
        }
      }
    });
  }
  for (auto& u : users) u.join();
  person.join();
  all.clear();
  // Nothing lost: each revision of each app is in the history once, and the last content is there.
  auto log = git(w.fleet(), "log --format='%(trailers:separator=%x0A)' main");
  for (int i = 0; i < committers; ++i) {
    for (int a = 0; a < apps; ++a) {
      auto app = "app-" + std::to_string(i) + "-" + std::to_string(a);
      EXPECT_EQ(git(w.fleet(), "show main:" + app_directory("team", app).value() + "/deployment.yaml"), "v2");
      for (int r = 0; r < rounds; ++r) {
        auto told = "Kubeopera-App: " + app + "\nKubeopera-Revision: v" + std::to_string(r) + "\n";
        auto at = (log + "\n").find(told);
        EXPECT_NE(at, std::string::npos) << told;
        EXPECT_EQ((log + "\n").find(told, at + 1), std::string::npos) << "twice: " << told;
      }
    }
  }
  for (int i = 0; i < humans; ++i) EXPECT_EQ(git(w.fleet(), "show main:humans/" + std::to_string(i) + ".txt"), "hand made");
  // Nothing forced: every commit that was ever answered is in the history; the history is one line.
  for (const auto& id : commits) EXPECT_EQ(git(w.fleet(), "merge-base --is-ancestor " + id + " main"), "");
  EXPECT_EQ(git(w.fleet(), "rev-list --count --min-parents=2 main"), "0");
  int total = std::stoi(git(w.fleet(), "rev-list --count main"));
  EXPECT_EQ(total, static_cast<int>(commits.size()) + humans + 1);
  EXPECT_LT(static_cast<int>(commits.size()), committers * rounds * apps);  // fewer pushes than changes
  EXPECT_EQ(fsck(w.fleet()), "");
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
