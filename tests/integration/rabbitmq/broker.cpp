// Starting and stopping the private broker.
#include "tests/integration/rabbitmq/broker.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <map>
#include <pwd.h>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kubeopera::rabbitmq_test {
namespace {

constexpr const char* program = "/usr/lib/rabbitmq/bin/rabbitmq-server";
constexpr const char* mapper_program = "/usr/bin/epmd";

int free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof a;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&a), size) != 0 || ::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &size) != 0)
    throw std::runtime_error("no free port");
  ::close(fd);
  return ntohs(a.sin_port);
}

pid_t launch(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
             const std::string& output) {
  std::vector<std::string> env;
  for (const auto& [k, v] : environment) env.push_back(k + "=" + v);
  std::vector<char*> argv, envp;
  for (const auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  for (const auto& e : env) envp.push_back(const_cast<char*>(e.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const passwd* user = ::geteuid() == 0 ? ::getpwnam("rabbitmq") : nullptr;
  pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  if (user && (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int in = ::open("/dev/null", O_RDONLY), out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::close_range(3, ~0U, 0);
  if (::chdir("/") == 0) ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

void kill_group(pid_t& leader) {
  if (leader <= 0) return;
  ::kill(-leader, SIGKILL);
  ::waitpid(leader, nullptr, 0);
  leader = 0;
}

}  // namespace

std::string broker::missing() {
  if (::access(program, X_OK) != 0) return "rabbitmq-server is not installed (Debian: apt install rabbitmq-server)";
  if (::access(mapper_program, X_OK) != 0) return "epmd is not installed";
  if (::geteuid() == 0 && !::getpwnam("rabbitmq")) return "there is no user rabbitmq to run the broker as";
  return {};
}

broker::broker() : port_(free_port()), distribution_port_(free_port()), mapper_port_(free_port()) {
  std::string name = "/tmp/kubeopera-mq-XXXXXX";
  if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
  dir_ = name;
  const passwd* user = ::geteuid() == 0 ? ::getpwnam("rabbitmq") : nullptr;
  if (user && ::chown(dir_.c_str(), user->pw_uid, user->pw_gid) != 0) throw std::runtime_error("cannot hand over " + dir_);
  std::map<std::string, std::string> env{{"PATH", "/usr/bin:/bin"}, {"HOME", dir_}};
  mapper_ = launch({mapper_program, "-address", "127.0.0.1", "-port", std::to_string(mapper_port_)}, env, dir_ + "/epmd.log");
}

broker::~broker() {
  stop();
  kill_group(mapper_);
  std::error_code ec;
  std::filesystem::remove_all(dir_, ec);
}

void broker::start() {
  std::map<std::string, std::string> env{
      {"PATH", "/usr/lib/rabbitmq/bin:/usr/sbin:/usr/bin:/bin"},
      {"HOME", dir_},
      {"LC_ALL", "C.UTF-8"},
      {"RABBITMQ_NODENAME", "kubeopera-test-" + std::to_string(port_) + "@localhost"},
      {"RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1"},
      {"RABBITMQ_NODE_PORT", std::to_string(port_)},
      {"RABBITMQ_DIST_PORT", std::to_string(distribution_port_)},
      {"ERL_EPMD_PORT", std::to_string(mapper_port_)},
      {"RABBITMQ_MNESIA_BASE", dir_ + "/data"},
      {"RABBITMQ_LOG_BASE", dir_ + "/log"},
      {"RABBITMQ_ENABLED_PLUGINS_FILE", dir_ + "/plugins"},
      {"RABBITMQ_CONF_ENV_FILE", dir_ + "/none"},
      {"RABBITMQ_CONFIG_FILE", dir_ + "/none"},
      {"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 1:1 +A 4"},
  };
  server_ = launch({program}, env, dir_ + "/out.log");
}

void broker::stop() { kill_group(server_); }

std::string broker::log() const {
  std::ifstream in(dir_ + "/out.log");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  return text.size() > 3000 ? text.substr(text.size() - 3000) : text;
}

}  // namespace kubeopera::rabbitmq_test
