// Candidates in processes of their own.
#include "candidate.hpp"

#include "backend.hpp"

#include <kubeopera/core/wait.hpp>
#include <kubeopera/kube/lease.hpp>

#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <poll.h>
#include <signal.h>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kubeopera::conformance {
namespace {

using namespace std::chrono_literals;

void say(const std::string& line) { std::cout << line << std::endl; }

struct work {
  std::shared_ptr<kube::client> api;
  std::string ns;
};

// A write that checks the fence, slow enough to be frozen within.
asio::awaitable<void> write_once(work w, std::int64_t fence) {
  kube::object_key key{w.ns, "ledger"};
  auto now = co_await w.api->get(kube::types::config_maps(), key);
  if (!now) co_return say("failed " + to_string(now.error()));
  auto& data = json::ensure_object(*now, "data");
  if (std::atoll(std::string(json::get_string(data, {"fence"})).c_str()) > fence)
    co_return say("refused " + std::to_string(fence));
  (void)co_await sleep_for(200ms);
  data["fence"] = std::to_string(fence);
  data["count"] = std::to_string(std::atoll(std::string(json::get_string(data, {"count"})).c_str()) + 1);
  auto stored = co_await w.api->replace(kube::types::config_maps(), *now);
  if (stored) co_return say("wrote " + std::to_string(fence));
  say((stored.error().code() == errc::conflict ? "refused " : "failed ") + std::to_string(fence));
}

asio::awaitable<void> lead(work w, std::int64_t fence) {
  say("leads " + std::to_string(fence));
  do {
    auto write = write_once(w, fence);
    co_await uncancelled(std::move(write));
  } while (co_await sleep_for(1ms));
  say("lost " + std::to_string(fence));
}

task<void> compete(std::shared_ptr<kube::client> api, std::string ns, std::string identity) {
  kube::lease_options o;
  o.ns = ns;
  o.name = "leader";
  o.identity = identity;
  o.lease_duration = lease_time;
  o.renew_deadline = 2s;
  o.retry_period = 200ms;
  auto elector = kube::leader_elector::make(api, o);
  if (!elector) co_return elector.error();
  work w{api, ns};
  kube::leader_body body = [w](std::int64_t fence) { return lead(w, fence); };
  co_return co_await (*elector)->run(body);
}

}  // namespace

int run_candidate(const std::string& kubeconfig_file, const std::string& ns, const std::string& identity) {
  std::ifstream in(kubeconfig_file);
  std::ostringstream text;
  text << in.rdbuf();
  auto access = access_of(text.str());
  if (!access) return std::cerr << to_string(access.error()) << "\n", 2;
  asio::io_context io;
  auto api = kube::make_client(io.get_executor(), *access);
  if (!api) return std::cerr << to_string(api.error()) << "\n", 2;
  auto run = [](std::shared_ptr<kube::client> a, std::string n, std::string id) -> asio::awaitable<void> {
    auto ended = co_await compete(a, n, id);
    say("ended " + (ended ? std::string() : to_string(ended.error())));
  };
  spawn(io.get_executor(), run(*api, ns, identity));
  io.run();
  return 0;
}

candidate::candidate(const std::string& kubeconfig_file, const std::string& ns, const std::string& identity) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const char* arguments[] = {"conformance_cluster", "--candidate", kubeconfig_file.c_str(), ns.c_str(),
                             identity.c_str(),      nullptr};
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv("/proc/self/exe", const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  ::close(ends[1]);
  out_ = ends[0];
  if (pid_ < 0) throw std::runtime_error("no process");
}

candidate::~candidate() {
  kill();
  ::close(out_);
}

void candidate::freeze() const { ::kill(pid_, SIGSTOP); }
void candidate::thaw() const { ::kill(pid_, SIGCONT); }

void candidate::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool candidate::read_more(std::chrono::milliseconds limit) {
  pollfd p{out_, POLLIN, 0};
  if (::poll(&p, 1, static_cast<int>(limit.count())) <= 0) return false;
  char buffer[4096];
  ssize_t n = ::read(out_, buffer, sizeof buffer);
  if (n > 0) said_.append(buffer, static_cast<std::size_t>(n));
  return n > 0;
}

std::string candidate::next(const std::string& word, std::chrono::seconds limit) {
  auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    for (auto end = said_.find('\n', from_); end != std::string::npos; end = said_.find('\n', from_)) {
      auto line = said_.substr(from_, end - from_);
      from_ = end + 1;
      if (line.starts_with(word + " ")) return line.substr(word.size() + 1);
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0 || !read_more(left)) return {};
  }
}

}  // namespace kubeopera::conformance
