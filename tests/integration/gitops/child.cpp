// Starting and killing a process of this program.
#include "tests/integration/gitops/child.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

namespace harness {

child::child(const std::string& test, const std::string& log,
             const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> words = {"/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=" + test};
  std::vector<std::string> variables = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (auto& w : words) argv.push_back(w.data());
  for (auto& v : variables) envp.push_back(v.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&quiet, 1, 2);
  if (::posix_spawn(&pid_, "/proc/self/exe", &quiet, nullptr, argv.data(), envp.data()) != 0)
    ADD_FAILURE() << "the child cannot be started";
  posix_spawn_file_actions_destroy(&quiet);
}

child::~child() {
  if (waited_ || pid_ <= 0) return;
  strike();
  ::waitpid(pid_, nullptr, 0);
}

void child::strike() const {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

void child::wait_killed() {
  int status = 0;
  waited_ = ::waitpid(pid_, &status, 0) == pid_;
  EXPECT_TRUE(waited_ && WIFSIGNALED(status)) << "the child ended by itself: see its log";
}

}  // namespace harness
