// Makes the pods, and serves them.
#include "benchmarks/watch/pods.hpp"

#include <kubeopera/http/server.hpp>
#include <kubeopera/http/url.hpp>

#include <boost/asio/io_context.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

using namespace kubeopera;

namespace watch_bench {

namespace {

const std::string& sample() {
  static const std::string text = [] {
    std::ifstream in(WATCH_BENCH_DIR "/pod.json");
    std::string all((std::istreambuf_iterator<char>(in)), {});
    while (!all.empty() && all.back() == '\n') all.pop_back();
    return all;
  }();
  return text;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

constexpr std::size_t page_size = 500;

struct pages {
  std::size_t count = 0;
  std::vector<std::string> bodies;
  std::string all;
};

std::string list_of(std::size_t from, std::size_t to, std::size_t count) {
  std::string out = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9000000")";
  if (to < count) out += R"(,"continue":")" + std::to_string(to) + "\"";
  out += "},\"items\":[";
  for (auto i = from; i < to; ++i) out += (i == from ? "" : ",") + pod(i);
  return out + "]}\n";
}

// A watch on which nothing happens.
class quiet final : public http::body_source {
 public:
  task<std::string> next() override {
    auto r = co_await sleep_for(std::chrono::hours(1));
    if (!r) co_return r.error();
    co_return std::string();
  }
};

asio::awaitable<http::response> answer(std::shared_ptr<const pages> all, http::request req) {
  auto target = http::parse_target(req.target);
  if (!target || target->raw_path != "/api/v1/pods") co_return http::response(404, "text/plain", "no\n");
  if (target->get("watch")) {
    http::response r(200);
    r.headers.set("Content-Type", "application/json");
    r.stream = std::make_unique<quiet>();
    co_return r;
  }
  if (!target->get("limit")) co_return http::response(200, "application/json", all->all);
  auto from = target->get("continue") ? std::stoul(std::string(*target->get("continue"))) : 0;
  co_return http::response(200, "application/json", all->bodies.at(from / page_size));
}

asio::awaitable<void> run(http::server& s) { (void)co_await s.run(); }

}  // namespace

std::string pod(std::size_t i) {
  auto text = sample();
  auto digits = std::to_string(10'000'000 + i).substr(1);
  replace_all(text, "web-5884dd876f-blxmk", "web-5884dd876f-" + digits);
  replace_all(text, "fa6e0751-d714-4572-a52e-c73bdbbdf6e7", "fa6e0751-d714-4572-a52e-c73b0" + digits);
  replace_all(text, "\"resourceVersion\":\"362\"", "\"resourceVersion\":\"1" + digits + "\"");
  return text;
}

std::string stream(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += R"({"type":"MODIFIED","object":)" + pod(i) + "}\n";
  return out;
}

int serve(std::size_t count) {
  auto all = std::make_shared<pages>();
  all->count = count;
  for (std::size_t from = 0; from < count; from += page_size) {
    all->bodies.push_back(list_of(from, std::min(count, from + page_size), count));
  }
  all->all = list_of(0, count, count);
  asio::io_context io;
  std::shared_ptr<const pages> fixed = all;
  auto server = http::server::listen(io.get_executor(), http::server_options(),
                                     [fixed](http::request req) { return answer(fixed, std::move(req)); });
  if (!server) return 1;
  std::printf("http://127.0.0.1:%u\n", static_cast<unsigned>((*server)->port()));
  std::fflush(stdout);
  spawn(io.get_executor(), run(**server));
  io.run();
  return 0;
}

}  // namespace watch_bench
