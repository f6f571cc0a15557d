// Rendering an app, and finding out that nothing changed. Competitors: kustomize/ (the same objects from a base and an overlay,
// and the same objects written by sigs.k8s.io/yaml).
#include <kubeopera/json/read.hpp>
#include <kubeopera/manifest/render.hpp>
#include <kubeopera/yaml/read.hpp>
#include <kubeopera/yaml/write.hpp>

#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

using namespace kubeopera;

namespace {

struct input {
  manifest::app_spec app;
  manifest::render_context context;
};

input load(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(std::string(KUBEOPERA_GOLDEN_DIR) + "/" + name + "/input.json").rdbuf();
  auto document = json::read(text.str()).value();
  return {manifest::read_app_spec(document.at("app")).value(),
          json::decode<manifest::render_context>(document.at("context")).value()};
}

void render(benchmark::State& state, const char* name) {
  auto in = load(name);
  std::size_t bytes = 0;
  for (auto _ : state) {
    auto r = manifest::render(in.app, in.context).value();
    bytes = 0;
    for (const auto& f : r.files) bytes += f.second.size();
    benchmark::DoNotOptimize(r);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}

void nothing_changed(benchmark::State& state, const char* name) {
  auto in = load(name);
  auto known = manifest::input_hash(in.app, in.context);
  for (auto _ : state)
    if (manifest::input_hash(in.app, in.context) != known) throw std::logic_error("the hash moved");
}

// The emitter alone, on the objects that the competitor writes with sigs.k8s.io/yaml.
void write_objects(benchmark::State& state) {
  auto in = load("everything");
  auto r = manifest::render(in.app, in.context).value();
  for (auto _ : state)
    for (const auto& o : r.objects) benchmark::DoNotOptimize(yaml::write(o));
}

void read_files(benchmark::State& state) {
  auto in = load("everything");
  auto r = manifest::render(in.app, in.context).value();
  for (auto _ : state)
    for (const auto& f : r.files) benchmark::DoNotOptimize(yaml::read(f.second));
}

}  // namespace

BENCHMARK_CAPTURE(render, plain, "plain")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(render, everything, "everything")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(nothing_changed, plain, "plain")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(nothing_changed, everything, "everything")->Unit(benchmark::kMicrosecond);
BENCHMARK(write_objects)->Unit(benchmark::kMicrosecond);
BENCHMARK(read_files)->Unit(benchmark::kMicrosecond);

BENCHMARK_MAIN();
