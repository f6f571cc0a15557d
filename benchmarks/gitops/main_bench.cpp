// Runs the contenders side by side. First all of them make the same commits and must agree on every tree.
// Arguments of the rows: apps in the fleet, apps in one vCluster, apps changed by one commit.
#include "benchmarks/gitops/fleet.hpp"

#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <zlib.h>

namespace fleet_bench {

void register_push_benchmarks();

namespace {

struct shape {
  int apps, per_cluster, changed;
};

using maker = std::function<std::unique_ptr<contender>(const std::string& repository, const shape&)>;

// Once for each shape, before its first row.
void agree(const shape& s) {
  static std::set<std::string> done;
  if (!done.insert(std::to_string(s.apps) + "/" + std::to_string(s.per_cluster) + "/" + std::to_string(s.changed)).second) return;
  std::vector<std::unique_ptr<contender>> all;
  all.push_back(make_ours(fresh_copy(s.apps, s.per_cluster, "agree-a"), s.apps, s.per_cluster, false));
  all.push_back(make_libgit2(fresh_copy(s.apps, s.per_cluster, "agree-b"), s.apps, s.per_cluster, false));
  all.push_back(make_fast_import(fresh_copy(s.apps, s.per_cluster, "agree-c"), s.apps, s.per_cluster));
  for (int step = 0; step < 3; ++step) {
    for (auto& one : all) one->commit(step, s.changed);
    for (const auto& one : all) {
      if (one->tree() != all[0]->tree()) {
        std::fprintf(stderr, "the contenders disagree on a tree of %d apps\n", s.apps);
        std::exit(1);
      }
    }
  }
}

void report(benchmark::State& state, std::vector<double>& times, int changed) {
  std::sort(times.begin(), times.end());
  auto at = [&](double q) { return times[static_cast<std::size_t>(q * static_cast<double>(times.size() - 1))] * 1e6; };
  state.counters["p50_us"] = at(0.5);
  state.counters["p99_us"] = at(0.99);
  state.counters["p50_us_per_app"] = at(0.5) / changed;
}

void run(benchmark::State& state, const std::string& name, const maker& make, const shape& s) {
  agree(s);
  auto repository = fresh_copy(s.apps, s.per_cluster, name);
  auto who = make(repository, s);
  for (int step = 0; step < 20; ++step) who->commit(step, s.changed);  // warm
  std::vector<double> times;
  int step = 20;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    who->commit(step++, s.changed);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  report(state, times, s.changed);
}

// SHA-1 and zlib level 1 of the objects, and nothing else.
void floor_of(benchmark::State& state, const shape& s) {
  agree(s);
  auto objects = objects_of_commit(fresh_copy(s.apps, s.per_cluster, "floor"), s.apps, s.per_cluster, s.changed);
  std::string buffer(1 << 20, '\0');
  EVP_MD* sha1 = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  std::vector<double> times;
  for (auto _ : state) {
    auto begin = std::chrono::steady_clock::now();
    for (const auto& [type, bytes] : objects) {
      unsigned char digest[20];
      unsigned size = 0;
      EVP_Digest(bytes.data(), bytes.size(), digest, &size, sha1, nullptr);
      auto room = static_cast<uLongf>(buffer.size());
      compress2(reinterpret_cast<Bytef*>(buffer.data()), &room, reinterpret_cast<const Bytef*>(bytes.data()),
                static_cast<uLong>(bytes.size()), 1);
      benchmark::DoNotOptimize(digest);
    }
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    state.SetIterationTime(times.back());
  }
  EVP_MD_free(sha1);
  std::size_t bytes = 0;
  for (const auto& o : objects) bytes += o.second.size();
  state.counters["objects"] = static_cast<double>(objects.size());
  state.counters["bytes"] = static_cast<double>(bytes);
  report(state, times, s.changed);
}

void add(const std::string& name, const maker& make, const shape& s, int iterations) {
  auto full = name + "/" + std::to_string(s.apps) + "/" + std::to_string(s.per_cluster) + "/" + std::to_string(s.changed);
  benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& st) { run(st, name, make, s); })
      ->UseManualTime()
      ->Iterations(iterations)
      ->Unit(benchmark::kMicrosecond);
}

void add_all(const shape& s) {
  auto full = "floor/" + std::to_string(s.apps) + "/" + std::to_string(s.per_cluster) + "/" + std::to_string(s.changed);
  benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& st) { floor_of(st, s); })
      ->UseManualTime()
      ->Iterations(s.changed > 1 ? 100 : 1000)
      ->Unit(benchmark::kMicrosecond);
  auto few = s.changed > 1 ? 10 : 1;
  add("ours", [](auto& r, auto& p) { return make_ours(r, p.apps, p.per_cluster, false); }, s, 2000 / few);
  add("ours_synced", [](auto& r, auto& p) { return make_ours(r, p.apps, p.per_cluster, true); }, s, 300 / few);
  add("libgit2", [](auto& r, auto& p) { return make_libgit2(r, p.apps, p.per_cluster, false); }, s, 300 / few);
  add("libgit2_synced", [](auto& r, auto& p) { return make_libgit2(r, p.apps, p.per_cluster, true); }, s, s.changed > 1 ? 3 : 30);
  add("fast_import", [](auto& r, auto& p) { return make_fast_import(r, p.apps, p.per_cluster); }, s, 30);
}

}  // namespace
}  // namespace fleet_bench

int main(int argc, char** argv) {
  using namespace fleet_bench;
  add_all({5000, cluster_size, 1});
  add_all({50000, cluster_size, 1});
  add_all({50000, cluster_size, 100});
  add_all({50000, 50000, 1});
  add_all({500000, cluster_size, 1});
  register_push_benchmarks();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
