// Contenders in other languages: go-git (gogit/) and pygit2 (pygit2/). They get a commit's input on a pipe, commit, and say how
// long that took by their own clock, so that the pipe does not count.
#include "benchmarks/gitops/fleet.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fleet_bench {

namespace {

class piped : public contender {
 public:
  explicit piped(std::vector<std::string> words) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::exit(1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    if (::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) std::exit(1);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    to_ = ::fdopen(in[1], "w");
    from_ = ::fdopen(out[0], "r");
  }
  ~piped() override {
    std::fclose(to_);
    std::fclose(from_);
    ::waitpid(pid_, nullptr, 0);
  }

  // "<time> <message bytes> <files>\n<message>", then "<bytes> <path>\n<content>" for each file.
  double commit(int step, const std::vector<change>& what) override {
    auto message = message_of(what);
    std::size_t files = 0;
    for (const auto& c : what) files += c.files.size();
    std::fprintf(to_, "%lld %zu %zu\n%s", time_of_step(step), message.size(), files, message.c_str());
    for (const auto& c : what) {
      for (const auto& [name, content] : c.files) {
        std::fprintf(to_, "%zu %s/%s\n", content.size(), c.directory.c_str(), name.c_str());
        std::fwrite(content.data(), 1, content.size(), to_);
      }
    }
    std::fflush(to_);
    char tree[41] = {};
    long long nanoseconds = 0;
    if (std::fscanf(from_, "%40s %lld", tree, &nanoseconds) != 2) {
      std::fprintf(stderr, "a contender has ended\n");
      std::exit(1);
    }
    tree_ = tree;
    return static_cast<double>(nanoseconds) / 1e9;
  }
  std::string tree() override { return tree_; }

 private:
  pid_t pid_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
  std::string tree_;
};

std::string named_by(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? text : "";
}

}  // namespace

std::unique_ptr<contender> make_gogit(const std::string& repository) {
  auto program = named_by("KUBEOPERA_BENCH_GOGIT");
  if (program.empty()) return nullptr;
  return std::make_unique<piped>(std::vector<std::string>{program, repository});
}

std::unique_ptr<contender> make_pygit2(const std::string& repository) {
  auto python = named_by("KUBEOPERA_BENCH_PYGIT2");
  if (python.empty()) return nullptr;
  auto script = std::string(KUBEOPERA_BENCH_SOURCES) + "/gitops/pygit2/commit.py";
  return std::make_unique<piped>(std::vector<std::string>{python, script, repository});
}

}  // namespace fleet_bench
