// Pushing: our remotes and "git push", to a directory, and over smart HTTP to the same server on a loopback socket.
// Over HTTP most of the time is the server's: git checks the connectivity of what it was sent against the whole tree.
#include "benchmarks/gitops/fleet.hpp"

#include <kubeopera/gitops/server.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/server.hpp>

#include <benchmark/benchmark.h>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <future>
#include <thread>

namespace fleet_bench {

namespace {

using namespace kubeopera;
using namespace kubeopera::gitops;

constexpr int apps = 50000, pushes = 30;

asio::awaitable<void> serve(http::server* s) { (void)co_await s->run(); }
asio::awaitable<void> keep_running(std::shared_ptr<committer> c) { (void)co_await c->run(); }
asio::awaitable<void> submit_into(std::shared_ptr<committer> c, change what, std::promise<result<receipt>>* out) {
  out->set_value(co_await c->submit(std::move(what)));
}

// A server of one repository, on threads of its own.
class local_server {
 public:
  explicit local_server(const std::string& repository) : guard_(asio::make_work_guard(io_)) {
    git_server_options o;
    o.repository = repository;
    o.allow_push = true;
    http::server_options s;
    s.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(std::size_t(1) << 30, true); };
    server_ = http::server::listen(io_.get_executor(), s, make_git_http_handler(o)).value();
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { io_.run(); });
    spawn(io_.get_executor(), serve(server_.get()));
  }
  ~local_server() {
    io_.stop();
    for (auto& t : threads_) t.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  asio::any_io_executor executor() { return io_.get_executor(); }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::unique_ptr<http::server> server_;
  std::vector<std::thread> threads_;
};

void report(benchmark::State& state, std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  state.counters["p50_ms"] = times[times.size() / 2] * 1e3;
  state.counters["max_ms"] = times.back() * 1e3;
}

// Commit and push of one app: from submit() to the answer.
void push_ours(benchmark::State& state, bool over_http) {
  auto fleet = fresh_copy(apps, cluster_size, "push-ours");
  local_server server(fleet);
  auto store = open_store(fresh_copy(apps, cluster_size, "push-ours-store")).value();
  auto client = http::make_client(server.executor(), http::client_options(server.url())).value();
  auto remote = over_http ? make_http_remote(client, "", store) : make_file_remote(fleet, store);
  auto c = make_committer(server.executor(), store, std::move(remote), committer_options());
  auto body = background::start(server.executor(), keep_running(c));
  auto once = [&](int i) {
    std::promise<result<receipt>> answer;
    spawn(server.executor(), submit_into(c, app_change(i * 97 % apps, i + 1, cluster_size), &answer));
    if (!answer.get_future().get()) std::exit(1);
  };
  for (int i = 0; i < 3; ++i) once(i);
  std::vector<double> times;
  int i = 3;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    once(i++);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  report(state, times);
}

// "git push" alone: the commit has been made already, by the fastest means.
void push_git(benchmark::State& state, bool over_http) {
  auto fleet = fresh_copy(apps, cluster_size, "push-git");
  local_server server(fleet);
  auto local = fresh_copy(apps, cluster_size, "push-git-local");
  auto who = make_fast_import(local, apps, cluster_size);
  std::vector<double> times;
  int i = 0;
  for (auto _ : state) {
    who->commit(i++, 1);
    auto begin = std::chrono::steady_clock::now();
    shell("git -C '" + local + "' push -q '" + (over_http ? server.url() : fleet) + "' main");
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  report(state, times);
}

}  // namespace

void register_push_benchmarks() {
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
