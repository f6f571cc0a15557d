// posix_spawn, a socket pair for the child's input and output, a pipe for its errors, a pidfd for its end.
#include "src/gitops/process.hpp"

#include "src/gitops/files.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <atomic>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kubeopera::inline v1::gitops::detail {

namespace {

constexpr std::size_t high_water = std::size_t(1) << 20;
constexpr std::size_t error_tail = 4096;

error spawn_error(int code, const std::string& program) {
  return error(errc::unavailable, "SpawnFailed",
               "the program " + program + " cannot be started: " + std::error_code(code, std::generic_category()).message());
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& t : texts) out.push_back(t.data());
  out.push_back(nullptr);
  return out;
}

// Owns the attributes of one posix_spawn.
class spawn_setup {
 public:
  spawn_setup() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~spawn_setup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  spawn_setup(const spawn_setup&) = delete;
  spawn_setup& operator=(const spawn_setup&) = delete;

  int run(pid_t& pid, int io, int errors, const spawn_options& options) {
    posix_spawn_file_actions_adddup2(&actions_, io, 0);
    posix_spawn_file_actions_adddup2(&actions_, io, 1);
    posix_spawn_file_actions_adddup2(&actions_, errors, 2);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    std::vector<std::string> arguments{options.program};
    arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
    auto environment = options.environment;
    auto argv = pointers(arguments);
    auto envp = pointers(environment);
    return posix_spawnp(&pid, options.program.c_str(), &actions_, &attributes_, argv.data(), envp.data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

struct child_process::state {
  state(asio::any_io_executor s, pid_t p, int io, int errors, int pidfd)
      : strand(s), pid(p), socket(s, asio::local::stream_protocol(), io), stderr_pipe(s, errors), ended_fd(s, pidfd) {}
  // Reached with the child alive only when its executor went away first.
  ~state() {
    if (reaped) return;
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
  }

  asio::any_io_executor strand;
  pid_t pid;
  asio::local::stream_protocol::socket socket;
  asio::posix::stream_descriptor stderr_pipe, ended_fd;

  std::mutex mutex;  // guards what follows
  std::deque<std::string> to_child, from_child;
  std::size_t to_child_bytes = 0, from_child_bytes = 0;
  bool input_closed = false, input_broken = false, output_ended = false, stopped = false, reaped = false;
  int exit_code = -1;
  std::string errors;
  notifier changed;
};

namespace {

template <class State>
asio::awaitable<void> pump_input(std::shared_ptr<State> s) {
  while (true) {
    auto ticket = s->changed.ticket();
    std::string piece;
    bool end = false;
    {
      std::lock_guard lock(s->mutex);
      if (s->input_broken || s->stopped) co_return;
      if (!s->to_child.empty()) {
        piece = std::move(s->to_child.front());
        s->to_child.pop_front();
      } else {
        end = s->input_closed;
      }
    }
    boost::system::error_code ec;
    if (end) {
      s->socket.shutdown(asio::socket_base::shutdown_send, ec);
      co_return;
    }
    if (piece.empty()) {
      if (!co_await s->changed.wait(ticket)) co_return;
      continue;
    }
    co_await asio::async_write(s->socket, asio::buffer(piece), asio::redirect_error(asio::use_awaitable, ec));
    {
      std::lock_guard lock(s->mutex);
      s->to_child_bytes -= piece.size();
      if (ec) s->input_broken = true;
    }
    s->changed.notify();
  }
}

template <class State>
asio::awaitable<void> pump_output(std::shared_ptr<State> s) {
  std::string buffer(65536, '\0');
  while (true) {
    auto ticket = s->changed.ticket();
    bool full;
    {
      std::lock_guard lock(s->mutex);
      full = s->from_child_bytes > high_water && !s->stopped;
    }
    if (full) {
      if (!co_await s->changed.wait(ticket)) break;
      continue;
    }
    boost::system::error_code ec;
    auto n = co_await s->socket.async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, ec));
    if (ec || n == 0) break;
    {
      std::lock_guard lock(s->mutex);
      s->from_child.emplace_back(buffer.data(), n);
      s->from_child_bytes += n;
    }
    s->changed.notify();
  }
  {
    std::lock_guard lock(s->mutex);
    s->output_ended = true;
  }
  s->changed.notify();
}

template <class State>
asio::awaitable<void> pump_errors(std::shared_ptr<State> s) {
  std::string buffer(4096, '\0');
  while (true) {
    boost::system::error_code ec;
    auto n = co_await s->stderr_pipe.async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, ec));
    if (ec || n == 0) co_return;
    std::lock_guard lock(s->mutex);
    s->errors.append(buffer.data(), n);
    if (s->errors.size() > error_tail) s->errors.erase(0, s->errors.size() - error_tail);
  }
}

// What the program wrote before it ended and pump_errors() has not met yet. Its descriptor does not block.
template <class State>
void keep_last_words(State& s) {
  char buffer[4096];
  ssize_t n;
  boost::system::error_code ec;
  if (!s.stderr_pipe.is_open()) return;
  s.stderr_pipe.native_non_blocking(true, ec);
  if (ec) return;
  while ((n = ::read(s.stderr_pipe.native_handle(), buffer, sizeof buffer)) > 0)
    s.errors.append(buffer, static_cast<std::size_t>(n));
  if (s.errors.size() > error_tail) s.errors.erase(0, s.errors.size() - error_tail);
}

template <class State>
asio::awaitable<void> reap(std::shared_ptr<State> s) {
  while (true) {
    boost::system::error_code ec;
    co_await s->ended_fd.async_wait(asio::posix::stream_descriptor::wait_read, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return;
    std::lock_guard lock(s->mutex);
    int status = 0;
    auto got = ::waitpid(s->pid, &status, WNOHANG);
    if (got == 0) continue;  // a readiness that was none: it still runs
    keep_last_words(*s);
    s->reaped = true;
    s->exit_code = got != s->pid ? 255 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    break;
  }
  s->changed.notify();
}

}  // namespace

result<std::unique_ptr<child_process>> child_process::start(asio::any_io_executor executor, const spawn_options& options) {
  int io[2], errors[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) != 0) return spawn_error(errno, options.program);
  file_handle ours(io[0]), theirs(io[1]);
  if (::pipe2(errors, O_CLOEXEC) != 0) return spawn_error(errno, options.program);
  file_handle errors_read(errors[0]), errors_write(errors[1]);
  pid_t pid = -1;
  if (int code = spawn_setup().run(pid, theirs.get(), errors_write.get(), options)) return spawn_error(code, options.program);
  int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));  // glibc 2.36 declares its wrapper without extern "C"
  if (pidfd < 0) {
    int code = errno, status = 0;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, &status, 0);
    return spawn_error(code, options.program);
  }
  asio::any_io_executor strand = asio::make_strand(executor);
  auto s = std::make_shared<state>(strand, pid, ours.release(), errors_read.release(), pidfd);
  spawn(strand, pump_input(s));
  spawn(strand, pump_output(s));
  spawn(strand, pump_errors(s));
  spawn(strand, reap(s));
  return std::unique_ptr<child_process>(new child_process(std::move(s)));
}

child_process::~child_process() {
  stop();
  asio::post(state_->strand, [s = state_] {
    boost::system::error_code ignored;
    s->socket.close(ignored);
    s->stderr_pipe.close(ignored);
  });
}

task<void> child_process::write(std::string bytes) {
  auto s = state_;
  if (bytes.empty()) co_return result<void>();
  while (true) {
    auto ticket = s->changed.ticket();
    bool queued = false;
    {
      std::lock_guard lock(s->mutex);
      if (s->input_broken || s->input_closed || s->stopped)
        co_return error(errc::unavailable, "ProgramEnded", "the program does not read its input any more");
      if (s->to_child_bytes <= high_water) {
        s->to_child_bytes += bytes.size();
        s->to_child.push_back(std::move(bytes));
        queued = true;
      }
    }
    if (queued) {
      s->changed.notify();
      co_return result<void>();
    }
    KUBEOPERA_CO_CHECK(co_await s->changed.wait(ticket));
  }
}

void child_process::close_input() {
  {
    std::lock_guard lock(state_->mutex);
    state_->input_closed = true;
  }
  state_->changed.notify();
}

task<std::string> child_process::read() {
  auto s = state_;
  while (true) {
    auto ticket = s->changed.ticket();
    std::string piece;
    bool end = false;
    {
      std::lock_guard lock(s->mutex);
      if (!s->from_child.empty()) {
        piece = std::move(s->from_child.front());
        s->from_child.pop_front();
        s->from_child_bytes -= piece.size();
      } else {
        end = s->output_ended;
      }
    }
    if (!piece.empty() || end) {
      s->changed.notify();
      co_return piece;
    }
    KUBEOPERA_CO_CHECK(co_await s->changed.wait(ticket));
  }
}

task<int> child_process::wait() {
  auto s = state_;
  while (true) {
    auto ticket = s->changed.ticket();
    {
      std::lock_guard lock(s->mutex);
      if (s->reaped) co_return s->exit_code;
    }
    KUBEOPERA_CO_CHECK(co_await s->changed.wait(ticket));
  }
}

std::string child_process::error_text() const {
  std::lock_guard lock(state_->mutex);
  return state_->errors;
}

void child_process::stop() noexcept {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->stopped) return;
    state_->stopped = true;
    if (!state_->reaped) ::kill(-state_->pid, SIGKILL);
  }
  state_->changed.notify();
}

}  // namespace kubeopera::inline v1::gitops::detail
