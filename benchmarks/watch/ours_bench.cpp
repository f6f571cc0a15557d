// kubeopera: decoding a watch stream, and an informer that lists into its cache.
#include "benchmarks/watch/pods.hpp"
#include "src/kube/watch.hpp"

#include <kubeopera/http/client.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/kube/informer.hpp>

#include <benchmark/benchmark.h>
#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <fstream>
#include <malloc.h>

using namespace kubeopera;

namespace watch_bench {

namespace {

std::size_t decode_all(const std::string& text, kube::detail::decoder& decoder, kube::detail::decode_style style) {
  kube::detail::line_framer framer;
  std::size_t events = 0;
  constexpr std::size_t piece = 64 * 1024;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    framer.feed(std::string_view(text).substr(at, piece));
    while (auto line = *framer.next()) {
      auto e = decoder.event(*line, style);
      if (!e) return 0;
      benchmark::DoNotOptimize(e->obj);
      ++events;
    }
  }
  return events;
}

void decode(benchmark::State& state) {
  auto text = stream(2000);
  kube::detail::decode_style style;
  style.packed = state.range(0) != 0;
  style.managed_fields = state.range(0) == 0;
  kube::detail::decoder decoder;
  for (auto _ : state) {
    if (decode_all(text, decoder, style) != 2000) return state.SkipWithError("an event is missing");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(decode)->ArgName("for_cache")->Arg(0)->Arg(1);

void decode_checked(benchmark::State& state) {
  auto text = pod(1);
  for (auto _ : state) benchmark::DoNotOptimize(json::read_object(text));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK(decode_checked);

std::size_t resident_kib() {
  std::ifstream in("/proc/self/status");
  std::string word;
  std::size_t value = 0;
  while (in >> word) {
    if (word == "VmRSS:") in >> value;
  }
  return value;
}

asio::awaitable<void> follow(kube::informer& i) { (void)co_await i.run(); }

asio::awaitable<void> measure(asio::any_io_executor executor, std::string url, std::size_t count, int& code) {
  auto transport = http::make_client(executor, http::client_options(std::move(url)));
  if (!transport) co_return;
  auto before = resident_kib();
  auto begin = std::chrono::steady_clock::now();
  kube::informer pods(kube::make_client(*transport), kube::types::pods());
  auto running = background::start(executor, follow(pods));
  auto synced = co_await pods.wait_synced();
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  malloc_trim(0);
  if (synced && pods.size() == count) code = 0;
  std::printf("{\"contender\":\"kubeopera\",\"objects\":%zu,\"seconds\":%.3f,\"kib\":%zu}\n", pods.size(), took.count(),
              resident_kib() - before);
  running.stop();
  auto ended = co_await running.join();
  if (!ended) code = 1;
}

}  // namespace

int list(const std::string& url, std::size_t count) {
  asio::io_context io;
  int code = 1;
  spawn(io.get_executor(), measure(io.get_executor(), url, count, code));
  io.run();
  return code;
}

}  // namespace watch_bench
