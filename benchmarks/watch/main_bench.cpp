// bench_watch                     the rows of Google Benchmark
// bench_watch serve COUNT         an API server with COUNT pods, for all contenders
// bench_watch list URL COUNT      our informer against it
#include "benchmarks/watch/pods.hpp"

#include <benchmark/benchmark.h>

#include <string_view>

int main(int argc, char** argv) {
  std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "serve" && argc == 3) return watch_bench::serve(std::stoul(argv[2]));
  if (mode == "list" && argc == 4) return watch_bench::list(argv[2], std::stoul(argv[3]));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
