// Finding, initialising, starting, taking over and stopping a private PostgreSQL.
#include "server/embedded/postgres_process.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <grp.h>
#include <mutex>
#include <pwd.h>
#include <signal.h>
#include <sstream>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::embedded {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

struct account {
  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  std::string name = "the current user";
  bool change = false;  // we are root and must become this one
};

error unusable(const char* reason, std::string message) { return {errc::failed_precondition, reason, std::move(message)}; }

error cannot_write(const fs::path& what, int err) {
  return {errc::unavailable, "CannotWrite", "cannot write " + what.string() + ": " + std::strerror(err)};
}

result<account> choose_account() {
  account a;
  if (a.uid != 0) return a;
  for (const char* name : {"postgres", "nobody"}) {
    const passwd* p = ::getpwnam(name);
    if (!p) continue;
    a.change = true;
    a.uid = p->pw_uid;
    a.gid = p->pw_gid;
    a.name = name;
    return a;
  }
  return unusable("NoUnprivilegedUser", "PostgreSQL does not run as root, and there is no user postgres or nobody");
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

bool has_binaries(const fs::path& dir) {
  return ::access((dir / "postgres").c_str(), X_OK) == 0 && ::access((dir / "initdb").c_str(), X_OK) == 0;
}

// @param version major version that the cluster was made with; empty for a new one
result<fs::path> find_binaries(const std::string& given, const std::string& version) {
  std::vector<fs::path> places;
  if (!given.empty()) {
    places.emplace_back(given);
  } else {
    if (!version.empty()) places.emplace_back("/usr/lib/postgresql/" + version + "/bin");
    std::stringstream path(::getenv("PATH") ? ::getenv("PATH") : "");
    for (std::string dir; std::getline(path, dir, ':');)
      if (!dir.empty()) places.emplace_back(dir);
    std::vector<std::pair<int, fs::path>> packaged;
    std::error_code ec;
    for (const auto& d : fs::directory_iterator("/usr/lib/postgresql", ec))
      packaged.emplace_back(std::atoi(d.path().filename().c_str()), d.path() / "bin");
    std::sort(packaged.rbegin(), packaged.rend());
    for (auto& p : packaged) places.push_back(std::move(p.second));
  }
  for (const auto& p : places)
    if (has_binaries(p)) return p;
  return unusable("PostgresMissing", "PostgreSQL's programs initdb and postgres were not found; install the package postgresql");
}

// What a child needs between fork and exec, where nothing may be allocated.
struct command {
  std::vector<std::string> words;
  account as;
  int death_signal = SIGKILL;
  int output = -1;
};

[[noreturn]] void become(const command& c, char* const* argv, char* const* envp, pid_t parent, int report) {
  ::setpgid(0, 0);  // Ctrl-C on the terminal is for us, not for it
  bool ok = true;
  if (c.as.change) ok = ::setgroups(0, nullptr) == 0 && ::setgid(c.as.gid) == 0 && ::setuid(c.as.uid) == 0;
  ::umask(077);
  // After the change of user, which clears it. A parent that died before is noticed by the next line.
  ok = ok && ::prctl(PR_SET_PDEATHSIG, c.death_signal) == 0;
  if (::getppid() != parent) ::_exit(127);
  int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(c.output, 1);
  ::dup2(c.output, 2);
  ::dup2(report, 3);
  ::fcntl(3, F_SETFD, FD_CLOEXEC);
  ::close_range(4, ~0U, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int s : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGPIPE, SIGCHLD}) ::signal(s, SIG_DFL);
  ok = ok && ::chdir("/") == 0;
  if (ok) ::execve(argv[0], argv, envp);
  int err = errno;
  if (::write(3, &err, sizeof err) < 0) ::_exit(126);
  ::_exit(127);
}

// Starts a child of the calling thread: it gets death_signal when that thread ends.
result<pid_t> start_child(const command& c) {
  std::vector<char*> argv;
  for (const auto& w : c.words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  std::string path = "PATH=" + fs::path(c.words[0]).parent_path().string() + ":/usr/bin:/bin";
  char* envp[] = {path.data(), const_cast<char*>("LC_ALL=C"), const_cast<char*>("TZ=UTC"), nullptr};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return error(errc::unavailable, "PostgresFailed", "no pipe").with_detail(std::strerror(errno));
  pid_t parent = ::getpid();
  pid_t child = ::fork();
  if (child == 0) become(c, argv.data(), envp, parent, ends[1]);
  int err = child < 0 ? errno : 0;
  ::close(ends[1]);
  bool failed = child < 0 || ::read(ends[0], &err, sizeof err) == static_cast<ssize_t>(sizeof err);
  ::close(ends[0]);
  if (!failed) return child;
  if (child > 0) ::waitpid(child, nullptr, 0);
  return error(errc::unavailable, "PostgresFailed", "cannot run " + c.words[0]).with_detail(std::strerror(err));
}

int wait_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Everyone on the way must be let through when another user runs the server.
result<void> check_open(const fs::path& dir, const account& who) {
  for (fs::path p = dir.parent_path();; p = p.parent_path()) {
    struct stat st{};
    if (::stat(p.c_str(), &st) != 0) return cannot_write(p, errno);
    bool open = st.st_uid == who.uid ? st.st_mode & S_IXUSR : st.st_gid == who.gid ? st.st_mode & S_IXGRP : st.st_mode & S_IXOTH;
    if (!open)
      return unusable("DirectoryClosed", p.string() + " is closed to " + who.name +
                                             ", who runs PostgreSQL; choose another data directory, for instance under /var/lib");
    if (p == p.root_path()) return {};
  }
}

// A directory of mode 0700 that belongs to the server's user.
result<void> private_directory(const fs::path& dir, const account& who) {
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return cannot_write(dir, errno);
  struct stat st{};
  if (::lstat(dir.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    return unusable("DirectoryClosed", dir.string() + " is not a directory");
  if (st.st_uid != who.uid && (!who.change || st.st_uid != 0 || ::lchown(dir.c_str(), who.uid, who.gid) != 0))
    return unusable("DirectoryClosed", dir.string() + " belongs to another user");
  if ((st.st_mode & 0777) != 0700 && ::chmod(dir.c_str(), 0700) != 0) return cannot_write(dir, errno);
  return {};
}

result<void> sync_below(const fs::path& dir) {
  int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return cannot_write(dir, errno);
  int err = ::syncfs(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (err != 0) return cannot_write(dir, err);
  return {};
}

// A zombie has ended; its parent just has not noticed yet.
bool runs(pid_t pid) {
  auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  auto end = stat.rfind(')');
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] != 'Z' && stat[end + 2] != 'X';
}

// True when the process is a PostgreSQL server whose working directory is the cluster.
bool serves(pid_t pid, const fs::path& data) {
  std::error_code ec;
  auto proc = fs::path("/proc") / std::to_string(pid);
  auto cwd = fs::read_symlink(proc / "cwd", ec);
  return !ec && cwd == data && first_line(proc / "comm") == "postgres";
}

bool wait_gone(pid_t pid, duration limit) {
  auto end = steady_clock::now() + limit;
  while (runs(pid)) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

std::string last_words(const fs::path& log) {
  auto text = read_file(log);
  return text.size() > 1500 ? text.substr(text.size() - 1500) : text;
}

// Where the socket lives if the folder's own path is too long for one: a name that only depends on the folder.
fs::path short_directory(const fs::path& dir) {
  std::uint64_t h = 14695981039346656037u;
  for (unsigned char c : dir.string()) h = (h ^ c) * 1099511628211u;
  char name[64];
  std::snprintf(name, sizeof name, "/tmp/kubeopera-pg-%u-%016llx", ::geteuid(), static_cast<unsigned long long>(h));
  return name;
}

// A socket's path has at most 107 bytes, "/.s.PGSQL.5432.lock" included.
fs::path sockets_of(const fs::path& dir) {
  auto inside = dir / "run";
  return inside.string().size() > 85 ? short_directory(dir) : inside;
}

std::string url_at(const fs::path& sockets) {
  std::string host;
  for (char c : sockets.string()) {
    if (c == '\'' || c == '\\') host += '\\';
    host += c;
  }
  return "host='" + host + "' port=5432 user=kubeopera dbname=postgres";
}

}  // namespace

struct postgres_process::impl {
  postgres_options options;
  logger& log;
  account user;
  fs::path dir, data, sockets, log_path, binaries;
  int lock = -1;
  std::thread keeper;  // parent of the server: lives as long as it does
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<pid_t> pid{0};
  std::atomic<bool> asked{false};
  bool ended = false;
  notifier has_ended;

  impl(postgres_options o, logger& l) : options(std::move(o)), log(l) {}
  ~impl() {
    if (keeper.joinable()) keeper.join();
    if (lock >= 0) ::close(lock);
  }
  result<void> prepare();
  result<void> take_lock();
  result<void> end_leftover();
  result<void> end_orphans();
  result<void> initialise();
  result<void> launch();
  result<void> wait_ready();
  result<void> bring_up();
  void shut_down();
  bool wait_ended(duration limit);
  void keep(std::promise<result<void>> started);
  std::vector<std::string> server_command() const;
  result<int> open_log();
};

result<void> postgres_process::impl::prepare() {
  KUBEOPERA_TRY(user, choose_account());
  if (options.directory.empty()) return error(errc::invalid_argument, "NoDirectory", "no data directory was given");
  std::error_code ec;
  fs::path wanted = fs::absolute(options.directory).lexically_normal();
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  fs::create_directories(wanted.parent_path(), ec);
  if (ec) return cannot_write(wanted.parent_path(), ec.value());
  dir = fs::canonical(wanted.parent_path()) / wanted.filename();
  KUBEOPERA_CHECK(private_directory(dir, user));
  KUBEOPERA_CHECK(check_open(dir, user));
  data = dir / "data";
  log_path = dir / "postgres.log";
  sockets = sockets_of(dir);
  return private_directory(sockets, user);
}

result<void> postgres_process::impl::take_lock() {
  auto path = dir / "owner.lock";
  lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return cannot_write(path, errno);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) return unusable("DirectoryInUse", "another process uses " + dir.string());
  return {};
}

// The lock is ours, so a server that runs here has lost its owner.
result<void> postgres_process::impl::end_leftover() {
  auto file = data / "postmaster.pid";
  pid_t old = std::atoi(first_line(file).c_str());
  if (old <= 1) return {};
  if (serves(old, data)) {
    log.warn("ending the PostgreSQL of a predecessor", {{"pid", static_cast<long long>(old)}});
    ::kill(old, SIGINT);
    if (!wait_gone(old, options.stop_limit)) ::kill(old, SIGQUIT);
    if (!wait_gone(old, std::chrono::seconds(10)))
      return unusable("DirectoryInUse", "process " + std::to_string(old) + " serves " + data.string() + " and does not stop");
  }
  KUBEOPERA_CHECK(end_orphans());
  // Its number may belong to another process by now, which PostgreSQL would take for a running server.
  std::error_code ec;
  fs::remove(file, ec);
  return {};
}

// What a server that was killed has left: its children end by themselves, most of them at once. A new server must not start
// beside them, and without the old one's file it would not notice them.
result<void> postgres_process::impl::end_orphans() {
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  for (int round = 0;; ++round) {
    pid_t left = 0;
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator("/proc", ec)) {
      pid_t p = std::atoi(entry.path().filename().c_str());
      if (p <= 1 || !serves(p, data) || !runs(p)) continue;
      left = p;
      if (round > 0) ::kill(p, round < 100 ? SIGQUIT : SIGKILL);
    }
    if (left == 0) return {};
    if (steady_clock::now() > end)
      return unusable("DirectoryInUse", "process " + std::to_string(left) + " works on " + data.string() + " and does not end");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

result<int> postgres_process::impl::open_log() {
  constexpr off_t largest = 16 << 20;
  struct stat st{};
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  if (::stat(log_path.c_str(), &st) == 0 && st.st_size > largest) flags |= O_TRUNC;
  int fd = ::open(log_path.c_str(), flags, 0600);
  if (fd < 0) return cannot_write(log_path, errno);
  return fd;
}

result<void> postgres_process::impl::initialise() {
  std::string version = first_line(data / "PG_VERSION");
  KUBEOPERA_TRY(binaries, find_binaries(options.binaries, version));
  if (!version.empty()) return {};
  // Made under another name first: a half-made cluster is never taken for a whole one.
  auto half = dir / "data.new";
  std::error_code ec;
  fs::remove_all(half, ec);
  KUBEOPERA_TRY(int output, open_log());
  command c;
  c.words = {(binaries / "initdb").string(),
             "--pgdata=" + half.string(),
             "--username=kubeopera",
             "--auth=trust",
             "--encoding=UTF8",
             "--no-locale",
             "--no-instructions",
             "--no-sync"};
  c.as = user;
  c.output = output;
  auto child = start_child(c);
  ::close(output);
  if (!child) return child.error();
  if (wait_child(*child) != 0)
    return error(errc::unavailable, "PostgresFailed", "initdb failed").with_detail(last_words(log_path));
  // One sync of the file system instead of initdb's of a thousand files (measured: 0.05 s instead of 3 s).
  KUBEOPERA_CHECK(sync_below(half));
  fs::rename(half, data, ec);
  if (ec) return cannot_write(data, ec.value());
  return sync_below(dir);
}

std::vector<std::string> postgres_process::impl::server_command() const {
  std::vector<std::string> words{(binaries / "postgres").string(), "-D", data.string(), "-k", sockets.string()};
  for (const std::string& setting : std::initializer_list<std::string>{
           "listen_addresses=", "port=5432", "unix_socket_permissions=0700", "shared_buffers=32MB",
           "max_connections=" + std::to_string(options.max_connections), "fsync=on", "wal_level=minimal", "max_wal_senders=0",
           "max_wal_size=256MB", "max_worker_processes=2", "max_parallel_workers_per_gather=0", "autovacuum_max_workers=1",
           "jit=off", "logging_collector=off", "log_min_messages=warning", "log_line_prefix=%m [%p] "}) {
    words.emplace_back("-c");
    words.push_back(setting);
  }
  return words;
}

// Body of the keeper thread: starts the server and waits for its end.
void postgres_process::impl::keep(std::promise<result<void>> started) {
  auto output = open_log();
  if (!output) return started.set_value(output.error());
  command c;
  c.words = server_command();
  c.as = user;
  c.output = *output;
  c.death_signal = SIGINT;  // a fast, clean shutdown
  auto child = start_child(c);
  ::close(*output);
  if (!child) return started.set_value(child.error());
  pid = *child;
  started.set_value({});
  int status = wait_child(*child);
  {
    std::lock_guard guard(mutex);
    pid = 0;
    ended = true;
  }
  if (!asked) log.error("PostgreSQL has ended", {{"status", static_cast<long long>(status)}});
  changed.notify_all();
  has_ended.notify();
}

result<void> postgres_process::impl::launch() {
  std::promise<result<void>> promise;
  auto started = promise.get_future();
  keeper = std::thread(&impl::keep, this, std::move(promise));
  auto r = started.get();
  if (!r) {
    std::lock_guard guard(mutex);
    ended = true;
  }
  return r;
}

bool postgres_process::impl::wait_ended(duration limit) {
  std::unique_lock guard(mutex);
  return changed.wait_for(guard, limit, [this] { return ended; });
}

// The eighth line of postmaster.pid says "ready" once it takes connections.
result<void> postgres_process::impl::wait_ready() {
  auto limit = steady_clock::now() + options.start_limit;
  while (!wait_ended(std::chrono::milliseconds(10))) {
    std::ifstream in(data / "postmaster.pid");
    std::string line;
    int number = 0;
    pid_t writer = 0;
    while (number < 8 && std::getline(in, line))
      if (++number == 1) writer = std::atoi(line.c_str());
    if (number == 8 && writer == pid && line.starts_with("ready")) return {};
    if (steady_clock::now() > limit) break;
  }
  auto text = last_words(log_path);
  if (text.find("incompatible with server") != std::string::npos)
    return unusable("WrongVersion", "the data directory was made by another version of PostgreSQL").with_detail(text);
  return error(errc::unavailable, "PostgresFailed", "the private PostgreSQL did not start; see " + log_path.string())
      .with_detail(text);
}

void postgres_process::impl::shut_down() {
  if (asked.exchange(true) && !keeper.joinable()) return;
  for (auto [signal, limit] : {std::pair<int, duration>{SIGINT, options.stop_limit},
                               {SIGQUIT, std::chrono::seconds(10)},
                               {SIGKILL, std::chrono::seconds(10)}}) {
    if (signal != SIGINT) log.error("PostgreSQL does not stop", {{"next_signal", static_cast<long long>(signal)}});
    if (pid_t p = pid) ::kill(p, signal);
    if (wait_ended(limit)) break;
  }
  if (keeper.joinable()) keeper.join();
  std::error_code ec;
  if (sockets.parent_path() != dir) fs::remove(sockets, ec);
  if (lock >= 0) ::close(std::exchange(lock, -1));
}

result<void> postgres_process::impl::bring_up() {
  KUBEOPERA_CHECK(prepare());
  KUBEOPERA_CHECK(take_lock());
  KUBEOPERA_CHECK(end_leftover());
  KUBEOPERA_CHECK(initialise());
  auto r = launch();
  if (r) r = wait_ready();
  if (!r) shut_down();
  return r;
}

postgres_process::postgres_process(std::shared_ptr<impl> p) : impl_(std::move(p)) {}

postgres_process::~postgres_process() { stop(); }

result<std::unique_ptr<postgres_process>> postgres_process::start(const postgres_options& options, logger& log) {
  auto p = std::make_shared<impl>(options, log);
  KUBEOPERA_CHECK(p->bring_up());
  log.info("PostgreSQL is up", {{"pid", static_cast<long long>(p->pid)}, {"directory", p->dir.string()}});
  return std::unique_ptr<postgres_process>(new postgres_process(std::move(p)));
}

std::string postgres_process::url() const { return url_at(impl_->sockets); }

std::string postgres_process::url_of(const std::string& directory) {
  std::error_code ec;
  auto wanted = fs::absolute(directory, ec).lexically_normal();
  if (!wanted.has_filename()) wanted = wanted.parent_path();
  auto parent = fs::weakly_canonical(wanted.parent_path(), ec);
  return url_at(sockets_of((ec ? wanted.parent_path() : parent) / wanted.filename()));
}

pid_t postgres_process::pid() const noexcept { return impl_->pid; }

task<void> postgres_process::run() {
  auto p = impl_;
  while (true) {
    auto ticket = p->has_ended.ticket();
    {
      std::lock_guard guard(p->mutex);
      if (p->ended) break;
    }
    KUBEOPERA_CO_CHECK(co_await p->has_ended.wait(ticket));
  }
  if (p->asked) co_return result<void>();
  co_return error(errc::unavailable, "PostgresEnded", "the private PostgreSQL has ended").with_detail(last_words(p->log_path));
}

void postgres_process::stop() noexcept { impl_->shut_down(); }

}  // namespace kubeopera::inline v1::embedded
