// Runs the contenders side by side. First all of them make the same commits and must agree on every tree.
// Arguments of the rows: apps in the fleet, apps in one vCluster, apps changed by one commit.
#include "benchmarks/gitops/fleet.hpp"

#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <set>
#include <zlib.h>

namespace fleet_bench {

void register_push_benchmarks();
int serve_git(const std::string& repository);

namespace {

struct shape {
  int apps, per_cluster, changed;
  std::string text() const { return std::to_string(apps) + "/" + std::to_string(per_cluster) + "/" + std::to_string(changed); }
};

struct row {
  const char* name;
  contender_maker make;
  int singles, batches;  // iterations at one app a commit, and at many
};

constexpr row rows[] = {
    {"ours", make_ours, 400, 15},
    {"ours_synced", make_ours_synced, 50, 5},
    {"libgit2", make_libgit2, 60, 4},
    {"libgit2_synced", make_libgit2_synced, 5, 1},
    {"gogit", make_gogit, 40, 2},
    {"pygit2", make_pygit2, 40, 2},
    {"fast_import", make_fast_import, 5, 2},
};

// Once for each shape, before its first row: all contenders make the same trees.
void agree(const shape& s) {
  static std::set<std::string> done;
  if (!done.insert(s.text()).second) return;
  std::vector<std::unique_ptr<contender>> all;
  for (const auto& r : rows)
    if (auto one = r.make(fresh_copy(s.apps, s.per_cluster, std::string("agree-") + r.name))) all.push_back(std::move(one));
  for (int step = 0; step < 3; ++step) {
    auto what = changes_of_step(step, s.changed, s.apps, s.per_cluster);
    for (auto& one : all) one->commit(step, what);
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

void run(benchmark::State& state, const row& r, const shape& s) {
  agree(s);
  auto who = r.make(fresh_copy(s.apps, s.per_cluster, r.name));
  if (!who) return state.SkipWithError("not built here");
  int step = 0;
  auto once = [&] {
    auto what = changes_of_step(step, s.changed, s.apps, s.per_cluster);
    return who->commit(step++, what);
  };
  // As many again to warm up: trees that have been touched are kept, by most contenders.
  for (int i = 0, n = s.changed > 1 ? 1 : r.singles; i < n; ++i) once();
  std::vector<double> times;
  int syncs = 0;
  for (auto _ : state) {
    times.push_back(once());
    syncs = std::max(syncs, who->syncs());
    state.SetIterationTime(times.back());
  }
  report(state, times, s.changed);
  if (syncs) state.counters["syncs"] = syncs;
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

void add_all(const shape& s) {
  benchmark::RegisterBenchmark(("floor/" + s.text()).c_str(), [s](benchmark::State& st) { floor_of(st, s); })
      ->UseManualTime()
      ->Iterations(s.changed > 1 ? 20 : 200)
      ->Unit(benchmark::kMicrosecond);
  for (const auto& r : rows) {
    benchmark::RegisterBenchmark((std::string(r.name) + "/" + s.text()).c_str(), [&r, s](benchmark::State& st) { run(st, r, s); })
        ->UseManualTime()
        ->Iterations(s.changed > 1 ? r.batches : r.singles)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace fleet_bench

int main(int argc, char** argv) {
  using namespace fleet_bench;
  if (argc == 3 && std::string(argv[1]) == "--serve-git") return serve_git(argv[2]);
  add_all({5000, cluster_size, 1});
  add_all({50000, cluster_size, 1});
  add_all({50000, cluster_size, 100});
  add_all({500000, cluster_size, 1});
  register_push_benchmarks();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
