// Pushing: our remotes and "git push", to a directory, and over smart HTTP to the same server on a loopback socket.
// Over HTTP most of the time is the server's: git checks the connectivity of what it was sent against the whole tree.
#include "benchmarks/gitops/fleet.hpp"
#include "src/gitops/batch.hpp"
#include "src/gitops/exchange.hpp"

#include <kubeopera/gitops/server.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/server.hpp>

#include <benchmark/benchmark.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace fleet_bench {

namespace {

using namespace kubeopera;
using namespace kubeopera::gitops;

constexpr int apps = 50000, pushes = 8;

asio::awaitable<void> serve(http::server* s) { (void)co_await s->run(); }
asio::awaitable<void> keep_running(std::shared_ptr<committer> c) { (void)co_await c->run(); }
asio::awaitable<void> submit_into(std::shared_ptr<committer> c, change what, std::promise<result<receipt>>* out) {
  out->set_value(co_await c->submit(std::move(what)));
}

// A server of one repository in a process of its own, so that its time and ours can be told apart.
class local_server {
 public:
  explicit local_server(const std::string& repository) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::exit(1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::string self = "/proc/self/exe", how = "--serve-git", what = repository;
    char* argv[] = {self.data(), how.data(), what.data(), nullptr};
    if (::posix_spawn(&pid_, argv[0], &actions, nullptr, argv, environ) != 0) std::exit(1);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    char text[16] = {};
    if (::read(out[0], text, sizeof text - 1) <= 0) std::exit(1);
    ::close(out[0]);
    port_ = std::atoi(text);
  }
  ~local_server() {
    ::close(input_);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  pid_t pid_ = -1;
  int input_ = -1, port_ = 0;
};

class io_threads {
 public:
  io_threads() : guard_(asio::make_work_guard(io_)) {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  ~io_threads() {
    io_.stop();
    for (auto& t : threads_) t.join();
  }
  asio::any_io_executor executor() { return io_.get_executor(); }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::vector<std::thread> threads_;
};

// CPU seconds of this process, or of the programs that it ran and that have ended.
double cpu_of(int whom) {
  rusage used{};
  ::getrusage(whom, &used);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void report(benchmark::State& state, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  state.counters["p50_ms"] = times[times.size() / 2] * 1e3;
  state.counters["max_ms"] = times.back() * 1e3;
}

// Commit and push of one app: from submit() to the answer.
void push_ours(benchmark::State& state, bool over_http) {
  auto fleet = fresh_copy(apps, cluster_size, "push-ours");
  local_server server(fleet);
  io_threads io;
  auto store = open_store(fresh_copy(apps, cluster_size, "push-ours-store")).value();
  auto client = http::make_client(io.executor(), http::client_options(server.url())).value();
  auto remote = over_http ? make_http_remote(client, "", store) : make_file_remote(fleet, store);
  auto c = make_committer(io.executor(), store, std::move(remote), committer_options());
  auto body = background::start(io.executor(), keep_running(c));
  auto once = [&](int i) {
    std::promise<result<receipt>> answer;
    spawn(io.executor(), submit_into(c, app_change(i * 97 % apps, i + 1, cluster_size), &answer));
    if (!answer.get_future().get()) std::exit(1);
  };
  once(0);
  once(1);
  std::vector<double> times;
  int i = 2;
  auto cpu = cpu_of(RUSAGE_SELF);
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    once(i++);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  state.counters["client_cpu_ms"] = (cpu_of(RUSAGE_SELF) - cpu) / static_cast<double>(times.size()) * 1e3;
  report(state, times);
}

// The bytes of the objects that commit `to` adds to `from`, each deflated alone as git does by default.
std::size_t deflated_objects(const std::string& repository, const std::string& from, const std::string& to) {
  auto text = shell("cd '" + repository + "' && git rev-list --objects " + to + " ^" + from +
                    " | cut -d' ' -f1 | git pack-objects --window=0 --no-reuse-object --stdout -q | wc -c");
  return std::stoul(text) - 32;  // without the pack's head and trailer
}

// "git push" alone: the commit has been made already, by the fastest means.
void push_git(benchmark::State& state, bool over_http) {
  auto fleet = fresh_copy(apps, cluster_size, "push-git");
  local_server server(fleet);
  auto local = fresh_copy(apps, cluster_size, "push-git-local");
  auto who = make_fast_import(local);
  std::vector<double> times;
  int i = 0;
  double cpu = 0;
  for (auto _ : state) {
    who->commit(i, changes_of_step(i, 1, apps, cluster_size));
    ++i;
    auto before = cpu_of(RUSAGE_CHILDREN);
    auto begin = std::chrono::steady_clock::now();
    shell("git -C '" + local + "' push -q '" + (over_http ? server.url() : fleet) + "' main");
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    cpu += cpu_of(RUSAGE_CHILDREN) - before;
    state.SetIterationTime(times.back());
  }
  state.counters["client_cpu_ms"] = cpu / static_cast<double>(times.size()) * 1e3;
  report(state, times);
}

// What nobody who pushes over HTTP can avoid: git's own receive-pack, given a finished request from a file.
void receive_pack_alone(benchmark::State& state) {
  auto fleet = fresh_copy(apps, cluster_size, "push-alone");
  auto store = open_store(fresh_copy(apps, cluster_size, "push-alone-store")).value();
  gitops::detail::batch_builder builder(store, "bench", "bench@localhost");
  auto tip = tip_of(fleet);
  auto request = fleet + "/request";
  std::vector<double> times;
  std::size_t sent = 0, objects = 0;
  int i = 0;
  for (auto _ : state) {
    gitops::detail::pending_list batch;
    for (auto& c : changes_of_step(i, 1, apps, cluster_size))
      batch.push_back(std::make_shared<gitops::detail::pending_change>(std::move(c)));
    auto built = builder.build(batch, tip, time_of_step(i++)).value();
    store->add_indexed_pack(built.pack.pack, built.pack.index).value();
    gitops::detail::advertisement offered;
    offered.capabilities = {{"report-status", ""}, {"side-band-64k", ""}, {"agent", "x"}};
    auto bytes = gitops::detail::push_request(offered, "refs/heads/main", tip, built.commit.hex()) + built.pack.pack;
    std::ofstream(request, std::ios::binary) << bytes;
    sent += bytes.size();
    objects += deflated_objects(store->directory(), tip, built.commit.hex());
    tip = built.commit.hex();
    times.push_back(seconds_of([&] {
      shell("git -c receive.fsckObjects=true -c core.fsync=committed,reference receive-pack --stateless-rpc '" + fleet + "' < '" +
            request + "' > /dev/null");
    }));
    state.SetIterationTime(times.back());
  }
  if (tip_of(fleet) != tip) std::exit(1);
  state.counters["request_bytes"] = static_cast<double>(sent) / static_cast<double>(times.size());
  state.counters["bytes_to_objects"] = static_cast<double>(sent) / static_cast<double>(objects);
  report(state, times);
}

}  // namespace

int serve_git(const std::string& repository) {
  asio::io_context io;
  git_server_options o;
  o.repository = repository;
  o.allow_push = true;
  http::server_options s;
  s.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(std::size_t(1) << 30, true); };
  auto server = http::server::listen(io.get_executor(), s, make_git_http_handler(o)).value();
  spawn(io.get_executor(), serve(server.get()));
  std::thread worker([&io] { io.run(); });
  std::printf("%d\n", server->port());
  std::fflush(stdout);
  char end;
  while (::read(0, &end, 1) > 0) {
  }
  io.stop();
  worker.join();
  return 0;
}

void register_push_benchmarks() {
  benchmark::RegisterBenchmark("push_http/receive_pack_alone", receive_pack_alone)
      ->UseManualTime()
      ->Iterations(pushes)
      ->Unit(benchmark::kMillisecond);
  for (bool over_http : {false, true}) {
    std::string way = over_http ? "push_http/" : "push_directory/";
    benchmark::RegisterBenchmark((way + "ours_commit_and_push").c_str(), push_ours, over_http)
        ->UseManualTime()
        ->Iterations(pushes)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((way + "git_push").c_str(), push_git, over_http)
        ->UseManualTime()
        ->Iterations(pushes)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace fleet_bench
