// The harness of the integration tests.
#include "tests/integration/gitops/harness.hpp"

#include <kubeopera/gitops/fleet.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/server.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

namespace harness {

io_threads::io_threads(int n) : guard_(asio::make_work_guard(io_)) {
  for (int i = 0; i < n; ++i) threads_.emplace_back([this] { io_.run(); });
}

io_threads::~io_threads() {
  guard_.reset();
  io_.stop();
  for (auto& t : threads_) t.join();
}

std::string make_bare(const temp_folder& dir, const std::string& name) {
  auto path = dir / name;
  git(".", "init -q --bare -b main '" + path + "'");
  return path;
}

void write_hook(const std::string& repository, const std::string& name, const std::string& script) {
  auto path = repository + "/hooks/" + name;
  write_file(path, "#!/bin/sh\n" + script + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

namespace {

asio::awaitable<void> run_committer(std::shared_ptr<committer> c) {
  auto ended = co_await c->run();
  if (ended.error().code() != errc::cancelled) ADD_FAILURE() << to_string(ended.error());
}

asio::awaitable<void> submit_into(std::shared_ptr<committer> c, change what, std::shared_ptr<std::promise<result<receipt>>> out) {
  out->set_value(co_await c->submit(std::move(what)));
}

}  // namespace

running::running(io_threads& io, std::shared_ptr<object_store> store, std::unique_ptr<remote> origin, committer_options options,
                 metrics* m)
    : io_(io),
      committer_(make_committer(io.executor(), std::move(store), std::move(origin), std::move(options), clock::real(),
                                logger::none(), m)),
      body_(background::start(io.executor(), run_committer(committer_))) {}

running::~running() { stop(); }

void running::stop() {
  body_.stop();
  (void)io_.run<void>(body_.join());
}

std::vector<std::future<result<receipt>>> running::start_all(std::vector<change> all) {
  std::vector<std::future<result<receipt>>> waiting;
  for (auto& c : all) {
    auto promise = std::make_shared<std::promise<result<receipt>>>();
    waiting.push_back(promise->get_future());
    spawn(io_.executor(), submit_into(committer_, std::move(c), promise));
  }
  return waiting;
}

std::vector<result<receipt>> running::submit_all(std::vector<change> all) {
  std::vector<result<receipt>> out;
  for (auto& w : start_all(std::move(all))) out.push_back(w.get());
  return out;
}

task<void> wait_until(std::shared_ptr<notifier> gate, std::shared_ptr<std::atomic<bool>> flag) {
  while (true) {
    auto seen = gate->ticket();
    if (*flag) co_return result<void>();
    KUBEOPERA_CO_CHECK(co_await gate->wait(seen));
  }
}

task<void> until(std::function<bool()> condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      co_return error(errc::deadline_exceeded, "DeadlineExceeded", "the condition never held");
    KUBEOPERA_CO_CHECK(co_await sleep_for(std::chrono::milliseconds(1)));
  }
  co_return result<void>();
}

change make_change(const std::string& app, const std::string& content, const std::string& vcluster) {
  change c;
  c.directory = app_directory(vcluster, app).value();
  c.files["deployment.yaml"] = content;
  c.files["service.yaml"] = "service of " + app + "\n";
  c.subject = "Deploy " + app;
  c.trailers = {{"Kubeopera-App", app}, {"Kubeopera-Revision", content}};
  return c;
}

struct http_git::state {
  std::unique_ptr<http::server> server;
  background body;
};

namespace {

asio::awaitable<void> run_server(http::server* s) {
  auto ended = co_await s->run();
  if (ended.error().code() != errc::cancelled) ADD_FAILURE() << to_string(ended.error());
}

}  // namespace

http_git::http_git(io_threads& io, git_server_options options) : http_git(io, make_git_http_handler(std::move(options))) {}

http_git::http_git(io_threads& io, http::handler handler) : io_(io), state_(std::make_unique<state>()) {
  http::server_options server;
  server.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(std::size_t(1) << 30, true); };
  server.drain_timeout = std::chrono::milliseconds(100);
  state_->server = http::server::listen(io.executor(), server, std::move(handler)).value();
  state_->body = background::start(io.executor(), run_server(state_->server.get()));
}

http_git::~http_git() {
  state_->body.stop();
  (void)io_.run<void>(state_->body.join());
}

int http_git::port() const { return state_->server->port(); }

std::string http_git::url() const { return "http://127.0.0.1:" + std::to_string(port()); }

std::shared_ptr<http::transport> http_git::client() {
  return http::make_client(io_.executor(), http::client_options(url())).value();
}

namespace {

// A port that was free a moment ago.
int free_port() {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

bool accepts(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  bool ok = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return ok;
}

}  // namespace

std::unique_ptr<ssh_server> ssh_server::start(const temp_folder& dir) {
  const std::string program = "/usr/sbin/sshd";
  if (!std::filesystem::exists(program)) return nullptr;
  auto out = std::make_unique<ssh_server>();
  out->folder_ = dir / "ssh";
  std::filesystem::create_directories(out->folder_);
  std::filesystem::permissions(out->folder_, std::filesystem::perms::owner_all);
  auto in = [&](const std::string& name) { return out->folder_ + "/" + name; };
  for (auto key : {"host", "user", "stranger"}) shell("ssh-keygen -q -t ed25519 -N '' -f '" + in(key) + "'");
  write_file(in("authorized"), read_file(in("user.pub")));
  out->user_ = ::getpwuid(::getuid())->pw_name;
  if (::getuid() == 0) std::filesystem::create_directories("/run/sshd");
  for (int tries = 0; tries < 5; ++tries) {
    out->port_ = free_port();
    write_file(in("config"), "ListenAddress 127.0.0.1\nPort " + std::to_string(out->port_) + "\nHostKey " + in("host") +
                                 "\nAuthorizedKeysFile " + in("authorized") +
                                 "\nPidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nMaxStartups 100\n"
                                 "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nLogLevel QUIET\n");
    write_file(in("known"), "[127.0.0.1]:" + std::to_string(out->port_) + " " + read_file(in("host.pub")));
    std::vector<std::string> words = {program, "-D", "-e", "-f", in("config")};
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    if (::posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv.data(), environ) != 0) return nullptr;
    out->pid_ = pid;
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until) {
      if (accepts(out->port_)) return out;
      int status = 0;
      if (::waitpid(pid, &status, WNOHANG) == pid) break;
      std::this_thread::yield();
    }
    out->pid_ = -1;
  }
  ADD_FAILURE() << "sshd does not start";
  return nullptr;
}

ssh_server::~ssh_server() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

ssh_options ssh_server::options(const std::string& repository) const {
  ssh_options out;
  out.host = "127.0.0.1";
  out.port = port_;
  out.user = user_;
  out.path = repository;
  out.identity_file = folder_ + "/user";
  out.known_hosts_file = folder_ + "/known";
  return out;
}

ssh_options ssh_server::options_through(const std::string& repository, int port) const {
  auto out = options(repository);
  out.port = port;
  out.known_hosts_file = folder_ + "/known-" + std::to_string(port);
  write_file(out.known_hosts_file, "[127.0.0.1]:" + std::to_string(port) + " " + read_file(folder_ + "/host.pub"));
  return out;
}

task<std::optional<std::string>> faulty_remote::tip(const std::string& branch) {
  int call = tips++;
  if (before_tip) {
    KUBEOPERA_CO_CHECK(co_await before_tip(call));
  }
  co_return co_await inner_->tip(branch);
}

task<void> faulty_remote::fetch(const std::string& want, const std::vector<std::string>& have) {
  ++fetches;
  co_return co_await inner_->fetch(want, have);
}

task<void> faulty_remote::push(const std::string& branch, const std::string& from, const std::string& to,
                               const std::string& pack) {
  int call = pushes++;
  if (before_push) {
    KUBEOPERA_CO_CHECK(co_await before_push(call));
  }
  pushed_bytes += pack.size();
  auto answer = co_await inner_->push(branch, from, to, pack);
  if (after_push) co_return co_await after_push(call, std::move(answer));
  co_return answer;
}

}  // namespace harness
