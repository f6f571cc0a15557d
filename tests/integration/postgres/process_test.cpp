// The private server itself: first start, restart, crash of its owner, crash of its own, misuse.
#include "tests/integration/postgres/kit.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kubeopera;
using namespace kubeopera::pg_test;

namespace {

result<postgres::rows> ask(const std::string& url, const std::string& sql) {
  postgres::pool_options o;
  o.url = url;
  o.size = 1;
  auto db = postgres::make_pool(threads().get_executor(), o);
  postgres::statement st(sql);
  return wait(db->query(st));
}

bool process_runs(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  auto end = text.rfind(')');
  return end != std::string::npos && text[end + 2] != 'Z' && text[end + 2] != 'X';
}

int pid_in_file(const std::string& dir) {
  std::ifstream in(dir + "/pg/data/postmaster.pid");
  int pid = 0;
  in >> pid;
  return pid;
}

}  // namespace

TEST(postgres_process, keeps_its_data_over_a_restart) {
  auto dir = fresh_directory();
  auto first = start_server(dir);
  ASSERT_TRUE(first) << to_string(first.error());
  ASSERT_TRUE(ask((*first)->url(), "CREATE TABLE kept AS SELECT 42 AS v"));
  int pid = (*first)->pid();
  EXPECT_TRUE(process_runs(pid));
  (*first)->stop();
  EXPECT_EQ((*first)->pid(), 0);
  EXPECT_FALSE(process_runs(pid));
  EXPECT_TRUE(wait((*first)->run())) << "an end that was asked for is no error";
  auto second = start_server(dir);
  ASSERT_TRUE(second) << to_string(second.error());
  auto r = ask((*second)->url(), "SELECT v, current_setting('fsync') AS f FROM kept");
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->integer(0, "v"), 42);
  EXPECT_EQ(r->text(0, "f"), "on");
  struct stat st{};
  ASSERT_EQ(::stat((dir + "/pg").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST(postgres_process, pool_survives_a_restart_of_the_server) {
  auto dir = fresh_directory();
  auto first = start_server(dir);
  ASSERT_TRUE(first);
  postgres::pool_options o;
  o.url = (*first)->url();
  o.size = 3;
  auto db = postgres::make_pool(threads().get_executor(), o);
  postgres::statement st("SELECT 1 AS v");
  ASSERT_TRUE(wait(db->query(st)));
  (*first)->stop();
  auto down = wait(db->query(st));
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().code(), errc::unavailable);
  EXPECT_TRUE(down.error().retry_after());
  auto second = start_server(dir);
  ASSERT_TRUE(second);
  EXPECT_TRUE(eventually([&] { return wait(db->query(st)).has_value(); }));
}

TEST(postgres_process, second_owner_is_refused) {
  auto dir = fresh_directory();
  auto first = start_server(dir);
  ASSERT_TRUE(first);
  auto second = start_server(dir);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "DirectoryInUse");
  EXPECT_TRUE(ask((*first)->url(), "SELECT 1"));
}

TEST(postgres_process, tells_when_the_server_dies) {
  auto dir = fresh_directory();
  auto s = start_server(dir);
  ASSERT_TRUE(s);
  auto ended = start((*s)->run());
  ::kill((*s)->pid(), SIGKILL);
  auto r = ended.get();
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason(), "PostgresEnded");
  EXPECT_EQ((*s)->pid(), 0);
  s->reset();
  auto again = start_server(dir);
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_TRUE(ask((*again)->url(), "SELECT 1"));
}

// The owner is a process of its own (this program, told to own a server by an argument) that is killed with kill -9.
TEST(postgres_process, killed_owner_leaves_no_server_behind) {
  auto dir = fresh_directory();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  std::string fd = std::to_string(ready[1]);
  pid_t owner = ::fork();
  if (owner == 0) {
    ::setenv("KUBEOPERA_TEST_OWN", dir.c_str(), 1);
    ::setenv("KUBEOPERA_TEST_READY", fd.c_str(), 1);
    ::execl("/proc/self/exe", "owner", "--gtest_filter=postgres_process.DISABLED_owner", "--gtest_also_run_disabled_tests",
            nullptr);
    ::_exit(127);
  }
  ::close(ready[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  int pid = pid_in_file(dir);
  ASSERT_GT(pid, 1);
  EXPECT_TRUE(process_runs(pid));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  // Taken over at once, whether or not the orphan has ended by then.
  auto next = start_server(dir);
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_FALSE(process_runs(pid));
  auto r = ask((*next)->url(), "SELECT v FROM made_by_owner");
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->integer(0, "v"), 7);
}

TEST(postgres_process, DISABLED_owner) {
  const char* dir = ::getenv("KUBEOPERA_TEST_OWN");
  const char* fd = ::getenv("KUBEOPERA_TEST_READY");
  ASSERT_TRUE(dir && fd) << "run by killed_owner_leaves_no_server_behind";
  auto s = start_server(dir);
  ASSERT_TRUE(s) << to_string(s.error());
  ASSERT_TRUE(ask((*s)->url(), "CREATE TABLE made_by_owner AS SELECT 7 AS v"));
  ASSERT_EQ(::write(std::atoi(fd), "x", 1), 1);
  for (;;) ::pause();
}

TEST(postgres_process, stale_pid_file_of_another_process_does_not_matter) {
  auto dir = fresh_directory();
  {
    auto s = start_server(dir);
    ASSERT_TRUE(s);
  }
  // The number belongs to a living process that is no PostgreSQL, as after a reboot.
  std::ofstream(dir + "/pg/data/postmaster.pid") << ::getppid() << "\n" << dir << "/pg/data\n1\n5432\n/tmp\n\n\n";
  auto s = start_server(dir);
  ASSERT_TRUE(s) << to_string(s.error());
  EXPECT_TRUE(ask((*s)->url(), "SELECT 1"));
}

TEST(postgres_process, half_made_cluster_is_made_again) {
  auto dir = fresh_directory();
  std::filesystem::create_directories(dir + "/pg/data.new/base");
  auto s = start_server(dir);
  ASSERT_TRUE(s) << to_string(s.error());
  EXPECT_TRUE(ask((*s)->url(), "SELECT 1"));
}

TEST(postgres_process, long_paths_get_a_short_socket) {
  auto dir = fresh_directory() + "/" + std::string(120, 'd');
  std::filesystem::create_directories(dir);
  auto s = start_server(dir);
  ASSERT_TRUE(s) << to_string(s.error());
  EXPECT_TRUE(ask((*s)->url(), "SELECT 1"));
}

TEST(postgres_process, closed_parent_directory_is_named) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root changes the user that the server runs as";
  auto dir = fresh_directory();
  std::filesystem::create_directories(dir + "/closed");
  ::chmod((dir + "/closed").c_str(), 0700);
  auto s = start_server(dir + "/closed");
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().reason(), "DirectoryClosed");
  EXPECT_NE(s.error().message().find(dir + "/closed"), std::string::npos) << s.error().message();
}

TEST(postgres_process, missing_binaries_are_said) {
  embedded::postgres_options o;
  o.directory = fresh_directory() + "/pg";
  o.binaries = "/nonexistent";
  auto s = embedded::postgres_process::start(o);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().reason(), "PostgresMissing");
}

TEST(postgres_process, cluster_that_cannot_start_gives_its_log) {
  auto dir = fresh_directory();
  {
    auto s = start_server(dir);
    ASSERT_TRUE(s);
  }
  std::ofstream(dir + "/pg/data/postgresql.conf", std::ios::app) << "\nno_such_setting = 1\n";
  auto s = start_server(dir);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().reason(), "PostgresFailed");
  EXPECT_NE(s.error().detail().find("no_such_setting"), std::string::npos) << s.error().detail();
}
