// Verifying an access token and reading its claims with kubeopera::crypto.
#include "benchmarks/tokens/token.hpp"

#include <benchmark/benchmark.h>

namespace {

using namespace kubeopera::crypto;

void ours_verify(benchmark::State& state) {
  auto token = tokens_bench::sample_token();
  static const auto verifier = jwt_verifier::make(tokens_bench::key).value();
  auto check = verifier.verify(token);
  if (!check || check->permissions.size() != 6 || check->tenant_id != "acme-corp") return state.SkipWithError("wrong claims");
  auto before = tokens_bench::allocations();
  for (auto _ : state) benchmark::DoNotOptimize(verifier.verify(token));
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(tokens_bench::allocations() - before), benchmark::Counter::kAvgIterations);
}
BENCHMARK(ours_verify)->Threads(1)->Threads(2)->UseRealTime();

void ours_verify_into(benchmark::State& state) {
  auto token = tokens_bench::sample_token();
  static const auto verifier = jwt_verifier::make(tokens_bench::key).value();
  claims who;
  if (!verifier.verify(token, who) || who.permissions.size() != 6 || who.tenant_id != "acme-corp")
    return state.SkipWithError("wrong claims");
  auto before = tokens_bench::allocations();
  for (auto _ : state) benchmark::DoNotOptimize(verifier.verify(token, who));
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(tokens_bench::allocations() - before), benchmark::Counter::kAvgIterations);
}
BENCHMARK(ours_verify_into)->Threads(1)->Threads(2)->UseRealTime();

void ours_refuse(benchmark::State& state) {
  auto token = tokens_bench::sample_token();
  token[token.size() - 10] = token[token.size() - 10] == 'A' ? 'B' : 'A';
  auto verifier = jwt_verifier::make(tokens_bench::key).value();
  if (verifier.verify(token)) return state.SkipWithError("a forged token was accepted");
  for (auto _ : state) benchmark::DoNotOptimize(verifier.verify(token));
}
BENCHMARK(ours_refuse);

}  // namespace
