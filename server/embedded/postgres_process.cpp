#include "server/embedded/postgres_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace kubeopera::inline v1::embedded {
namespace {

namespace fs = std::filesystem;

struct account {
  uid_t uid;
  gid_t gid;
  bool change = false;  ///< we are root and must become this one
};

error unusable(const char* reason, std::string message) { return {errc::failed_precondition, reason, std::move(message)}; }

result<account> choose_account() {
  if (::geteuid() != 0) return account{::geteuid(), ::getegid(), false};
  for (const char* name : {"postgres", "nobody"})
    if (auto* pw = ::getpwnam(name)) return account{pw->pw_uid, pw->pw_gid, true};
  return unusable("NoUnprivilegedUser", "PostgreSQL does not run as root, and there is no user postgres or nobody");
}

result<fs::path> find_binaries(const std::string& given) {
  auto good = [](const fs::path& dir) { return fs::exists(dir / "initdb") && fs::exists(dir / "postgres"); };
  std::vector<fs::path> places;
  if (!given.empty()) places.emplace_back(given);
  std::error_code ec;
  std::vector<fs::path> versions;
  for (const auto& d : fs::directory_iterator("/usr/lib/postgresql", ec)) versions.push_back(d.path() / "bin");
  std::sort(versions.rbegin(), versions.rend());
  places.insert(places.end(), versions.begin(), versions.end());
  std::stringstream path(::getenv("PATH") ? ::getenv("PATH") : "");
  for (std::string dir; std::getline(path, dir, ':');) places.emplace_back(dir);
  for (const auto& p : places)
    if (good(p)) return p;
  return unusable("PostgresMissing", "PostgreSQL's programs initdb and postgres were not found; install the package postgresql-15");
}

// Everyone on the way must be let through when another user runs the server.
result<void> check_open(const fs::path& dir, const account& who) {
  if (!who.change) return {};
  for (auto p = dir.parent_path(); p != p.root_path(); p = p.parent_path()) {
    struct stat st {};
    if (::stat(p.c_str(), &st) != 0) continue;
    bool open = st.st_uid == who.uid ? st.st_mode & S_IXUSR : st.st_gid == who.gid ? st.st_mode & S_IXGRP : st.st_mode & S_IXOTH;
    if (!open) return unusable("DirectoryClosed", p.string() + " is closed to the user that runs PostgreSQL; choose another --data-dir, for instance under /var/tmp");
  }
  return {};
}

// In the child, between fork and exec: only calls that are safe there.
[[noreturn]] void become(const account& who, const std::vector<const char*>& argv, int log_fd, pid_t parent, bool die_with_parent) {
  ::setsid();
  ::dup2(log_fd, STDOUT_FILENO);
  ::dup2(log_fd, STDERR_FILENO);
  int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  for (int fd = 3; fd < 256; ++fd) ::close(fd);
  if (who.change && (::setgroups(0, nullptr) != 0 || ::setgid(who.gid) != 0 || ::setuid(who.uid) != 0)) ::_exit(126);
  if (die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGINT);  // after the change of user, which clears it
    if (::getppid() != parent) ::_exit(125);
  }
  ::execv(argv[0], const_cast<char* const*>(argv.data()));
  ::_exit(127);
}

result<pid_t> launch(const account& who, const std::vector<std::string>& command, const fs::path& log_file, bool die_with_parent) {
  std::vector<const char*> argv;
  for (const auto& a : command) argv.push_back(a.c_str());
  argv.push_back(nullptr);
  int fd = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd < 0) return error(errc::unavailable, "CannotWrite", "cannot write " + log_file.string());
  auto parent = ::getpid();
  auto pid = ::fork();
  if (pid == 0) become(who, argv, fd, parent, die_with_parent);
  ::close(fd);
  if (pid < 0) return error(errc::unavailable, "CannotFork", std::strerror(errno));
  return pid;
}

std::string last_words(const fs::path& log_file) {
  std::ifstream in(log_file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::string out;
  for (std::size_t i = lines.size() > 6 ? lines.size() - 6 : 0; i < lines.size(); ++i) out += (out.empty() ? "" : " | ") + lines[i];
  return out;
}

template <class F>
bool wait_until(std::chrono::milliseconds limit, F done) {
  auto end = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

// The server that a killed predecessor left: its pid is in postmaster.pid, and it runs in this data folder.
void end_leftover(const fs::path& data, logger& log) {
  std::ifstream in(data / "postmaster.pid");
  pid_t pid = 0;
  if (!(in >> pid) || pid <= 1) return;
  auto ours = [&] {
    std::error_code ec;
    auto cwd = fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd", ec);
    return !ec && cwd == fs::weakly_canonical(data, ec);
  };
  if (!ours()) return;
  log.warn("ending the PostgreSQL of a predecessor", {{"pid", static_cast<long long>(pid)}});
  for (int signal : {SIGINT, SIGQUIT, SIGKILL}) {
    ::kill(pid, signal);
    if (wait_until(std::chrono::seconds(8), [&] { return !ours(); })) return;
  }
}

bool is_ready(const fs::path& data, pid_t pid) {
  std::ifstream in(data / "postmaster.pid");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines.size() >= 8 && lines[0] == std::to_string(pid) && lines[7].starts_with("ready");
}

result<void> initialise(const account& who, const fs::path& binaries, const fs::path& data, const fs::path& log_file) {
  if (fs::exists(data / "PG_VERSION")) return {};
  std::error_code ec;
  fs::remove_all(data, ec);  // an initdb that was cut off
  KUBEOPERA_TRY(auto pid, launch(who, {(binaries / "initdb").string(), "-D", data.string(), "-U", "kubeopera", "-A", "trust", "-E", "UTF8",
                                       "--locale=C", "--no-sync", "--no-instructions"}, log_file, false));
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return error(errc::unavailable, "PostgresFailed", "initdb failed: " + last_words(log_file));
  return {};
}

}  // namespace

result<std::unique_ptr<postgres_process>> postgres_process::start(const postgres_options& options, logger& log) {
  KUBEOPERA_TRY(auto who, choose_account());
  KUBEOPERA_TRY(auto binaries, find_binaries(options.binaries));
  auto dir = fs::absolute(options.directory);
  auto data = dir / "data", sockets = dir / "run", log_file = dir / "postgres.log";
  if (sockets.string().size() + 20 > 107) return unusable("PathTooLong", sockets.string() + " is too long for a socket; choose a shorter --data-dir");
  std::error_code ec;
  fs::create_directories(sockets, ec);
  if (ec) return error(errc::unavailable, "CannotWrite", "cannot make " + sockets.string() + ": " + ec.message());
  KUBEOPERA_CHECK(check_open(dir, who));
  for (const auto& p : {dir, sockets}) {
    if (who.change && ::chown(p.c_str(), who.uid, who.gid) != 0) return error(errc::unavailable, "CannotWrite", "cannot hand over " + p.string());
    ::chmod(p.c_str(), 0700);
  }
  if (who.change && fs::exists(log_file)) static_cast<void>(::chown(log_file.c_str(), who.uid, who.gid) == 0);
  end_leftover(data, log);
  KUBEOPERA_CHECK(initialise(who, binaries, data, log_file));
  KUBEOPERA_TRY(auto pid, launch(who, {(binaries / "postgres").string(), "-D", data.string(), "-k", sockets.string(), "-c", "listen_addresses=",
                                       "-c", "shared_buffers=32MB", "-c", "max_connections=" + std::to_string(options.max_connections),
                                       "-c", "max_wal_size=256MB", "-c", "log_min_messages=warning"}, log_file, true));
  std::unique_ptr<postgres_process> p(new postgres_process(sockets.string(), pid));
  bool ended = false;
  bool up = wait_until(std::chrono::seconds(60), [&] {
    int status = 0;
    ended = ::waitpid(pid, &status, WNOHANG) == pid;
    return ended || is_ready(data, pid);
  });
  if (ended) p->pid_ = 0;
  if (ended || !up) return error(errc::unavailable, "PostgresFailed", "PostgreSQL did not start: " + last_words(log_file));
  log.info("PostgreSQL is up", {{"pid", static_cast<long long>(pid)}, {"directory", dir.string()}});
  return p;
}

std::string postgres_process::url() const { return "host='" + socket_dir_ + "' user=kubeopera dbname=postgres"; }

void postgres_process::stop() noexcept {
  if (pid_ <= 0) return;
  int status = 0;
  for (int signal : {SIGINT, SIGQUIT, SIGKILL}) {
    ::kill(pid_, signal);
    if (wait_until(std::chrono::seconds(8), [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) break;
  }
  pid_ = 0;
}

postgres_process::~postgres_process() { stop(); }

}  // namespace kubeopera::inline v1::embedded
