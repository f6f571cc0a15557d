// Many well-behaved clients of a running server at once: reads, whole lives of apps, watched statuses, followed logs.
// Prints one JSON document: by kind of request the count, the statuses, the failures, and the latencies in milliseconds.
#include <kubeopera/core/clock.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/sse.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <thread>

namespace kubeopera::inline v1::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct plan {
  plan() = default;
  std::string api_url, token, cloudspace;
  std::vector<std::string> apps;  // exist all the time
  int clients = 200, seconds = 60;
};

// What became of the requests of one kind.
class record {
 public:
  void answered(const std::string& kind, int status, double ms) {
    std::lock_guard lock(mutex_);
    auto& k = kinds_[kind];
    ++k.statuses[status];
    k.ms.push_back(static_cast<float>(ms));
  }
  void failed(const std::string& kind, const error& e) {
    std::lock_guard lock(mutex_);
    ++kinds_[kind].failures[e.reason()];
  }
  json::object report() {
    std::lock_guard lock(mutex_);
    json::object out;
    for (auto& [kind, k] : kinds_) {
      std::sort(k.ms.begin(), k.ms.end());
      json::object o;
      o["count"] = k.ms.size();
      for (const auto& [status, n] : k.statuses) json::ensure_object(o, "statuses")[std::to_string(status)] = n;
      for (const auto& [reason, n] : k.failures) json::ensure_object(o, "failures")[reason] = n;
      if (!k.ms.empty()) {
        o["p50_ms"] = k.ms[k.ms.size() / 2];
        o["p99_ms"] = k.ms[std::min(k.ms.size() - 1, k.ms.size() * 99 / 100)];
        o["max_ms"] = k.ms.back();
      }
      out[kind] = std::move(o);
    }
    return out;
  }

 private:
  struct kind {
    std::map<int, std::int64_t> statuses;
    std::map<std::string, std::int64_t> failures;
    std::vector<float> ms;
  };
  std::mutex mutex_;
  std::map<std::string, kind> kinds_;
};

struct shared {
  plan p;
  record seen;
  std::shared_ptr<http::transport> api;
  std::atomic<bool> over{false};
  std::atomic<int> next_name{0};
};

std::uint64_t below(std::uint64_t n) { return random_u64() % n; }

milliseconds think() { return milliseconds(20 + below(60)); }

http::request make(const shared& s, std::string method, std::string target, std::string body = {}) {
  http::request r(std::move(method), std::move(target), std::move(body));
  r.headers.set("Authorization", "Bearer " + s.p.token);
  if (!r.body.empty()) r.headers.set("Content-Type", "application/json");
  return r;
}

// One timed exchange. A failure at the end of the run (the server was told to stop) is nobody's fault.
task<http::response> ask(shared& s, std::string kind, http::request r, bool stream = false) {
  auto start = steady_clock::now();
  auto reply = co_await s.api->send(std::move(r), stream);
  double ms = std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
  if (reply)
    s.seen.answered(kind, reply->status, ms);
  else if (!s.over)
    s.seen.failed(kind, reply.error());
  co_return reply;
}

const std::string& any_app(const shared& s) { return s.p.apps[below(s.p.apps.size())]; }

asio::awaitable<void> read_things(shared& s) {
  while (!s.over) {
    auto app = "/api/v1/apps/" + any_app(s);
    const std::pair<const char*, std::string> all[] = {{"list apps", "/api/v1/apps?limit=20"},
                                                       {"app", app},
                                                       {"deploy-status", app + "/deploy-status"},
                                                       {"config", app + "/config"},
                                                       {"pods", app + "/pods"},
                                                       {"events", app + "/events"},
                                                       {"cloudspaces", "/api/v1/cloudspaces"},
                                                       {"logs", app + "/logs?tail=10"}};
    const auto& [kind, target] = all[below(std::size(all))];
    static_cast<void>(co_await ask(s, kind, make(s, "GET", target)));
    static_cast<void>(co_await sleep_for(think()));
  }
}

// Polls until the app is in the phase, or gone where phase is empty. False when the run was over first.
asio::awaitable<bool> reaches(shared& s, std::string app, std::string phase, std::int64_t revision) {
  while (!s.over) {
    auto reply = co_await ask(s, "deploy-status", make(s, "GET", "/api/v1/apps/" + app + "/deploy-status"));
    if (reply && reply->status == 404 && phase.empty()) co_return true;
    auto now = reply ? json::read_object(reply->body) : reply.error();
    if (now && json::get_string(*now, {"phase"}) == phase && json::get_int(*now, {"revision"}) >= revision) co_return true;
    static_cast<void>(co_await sleep_for(milliseconds(100)));
  }
  co_return false;
}

void took(shared& s, const char* kind, steady_clock::time_point since) {
  s.seen.answered(kind, 200, std::chrono::duration<double, std::milli>(steady_clock::now() - since).count());
}

// A whole life of an app: created, live, changed, live again, deleted, gone.
asio::awaitable<void> one_life(shared& s) {
  auto name = "load-" + std::to_string(s.next_name++);
  json::object body{{"name", name}, {"image", "ghcr.io/acme/web:1"}, {"port", 8080}, {"cloudspace_id", s.p.cloudspace}};
  auto start = steady_clock::now();
  auto made = co_await ask(s, "create", make(s, "POST", "/api/v1/apps", json::write(body)));
  auto row = made && made->status == 201 ? json::read_object(made->body) : error(errc::unavailable, "NotCreated", "");
  if (!row) co_return;
  std::string id(json::get_string(*row, {"id"}));
  if (!co_await reaches(s, id, "live", 1)) co_return;
  took(s, "created until live", start);
  start = steady_clock::now();
  auto config = co_await ask(s, "config", make(s, "GET", "/api/v1/apps/" + id + "/config"));
  auto spec = config ? json::read_object(config->body) : config.error();
  if (!spec) co_return;
  (*spec)["image"] = "ghcr.io/acme/web:2";
  static_cast<void>(co_await ask(s, "update", make(s, "PUT", "/api/v1/apps/" + id + "/config", json::write(*spec))));
  if (!co_await reaches(s, id, "live", 2)) co_return;
  took(s, "updated until live", start);
  start = steady_clock::now();
  static_cast<void>(co_await ask(s, "delete", make(s, "DELETE", "/api/v1/apps/" + id)));
  if (co_await reaches(s, id, "", 0)) took(s, "deleted until gone", start);
}

asio::awaitable<void> write_things(shared& s) {
  while (!s.over) {
    co_await one_life(s);
    static_cast<void>(co_await sleep_for(milliseconds(200 + below(800))));
  }
}

// Opens a stream, reads it for a while, and leaves.
asio::awaitable<void> follow(shared& s, const char* kind, const char* pieces, std::string target) {
  auto reply = co_await ask(s, kind, make(s, "GET", std::move(target)), true);
  if (!reply || !reply->stream) co_return;
  auto until = steady_clock::now() + milliseconds(500 + below(5000));
  while (!s.over && steady_clock::now() < until) {
    auto start = steady_clock::now();
    auto piece = co_await with_deadline(until - start, reply->stream->next());
    if (!piece && piece.error().code() != errc::deadline_exceeded && !s.over) s.seen.failed(pieces, piece.error());
    if (!piece) co_return;
    took(s, pieces, start);
    if (piece->empty()) co_return;
  }
}

asio::awaitable<void> watch_things(shared& s) {
  while (!s.over) {
    co_await follow(s, "watch status", "status piece", "/api/v1/apps/" + any_app(s) + "/deploy-status?watch=true");
    static_cast<void>(co_await sleep_for(think()));
  }
}

asio::awaitable<void> follow_logs(shared& s) {
  while (!s.over) {
    co_await follow(s, "follow logs", "log piece", "/api/v1/apps/" + any_app(s) + "/logs?follow=true&tail=5");
    static_cast<void>(co_await sleep_for(think()));
  }
}

// Of twenty clients: eleven read, two write, four watch, three follow.
asio::awaitable<void> client(shared& s, int i) {
  int role = i % 20;
  return role < 11 ? read_things(s) : role < 13 ? write_things(s) : role < 17 ? watch_things(s) : follow_logs(s);
}

asio::awaitable<void> run(asio::io_context& io, shared& s) {
  asio::any_io_executor executor = io.get_executor();
  std::vector<background> all;
  for (int i = 0; i < s.p.clients; ++i) all.push_back(background::start(executor, client(s, i)));
  auto end = steady_clock::now() + std::chrono::seconds(s.p.seconds);
  while (!s.over && steady_clock::now() < end) static_cast<void>(co_await sleep_for(milliseconds(50)));
  s.over = true;
  for (auto& b : all) {
    b.stop();
    static_cast<void>(co_await b.join());
  }
  io.stop();
}

result<plan> read_plan(const char* text) {
  KUBEOPERA_TRY(auto o, json::read_object(text));
  plan p;
  p.api_url = json::get_string(o, {"api_url"});
  p.token = json::get_string(o, {"token"});
  p.cloudspace = json::get_string(o, {"cloudspace"});
  p.clients = static_cast<int>(json::get_int(o, {"clients"}, 200));
  p.seconds = static_cast<int>(json::get_int(o, {"seconds"}, 60));
  if (auto* apps = json::get_array(o, {"apps"}))
    for (const auto& a : *apps) p.apps.emplace_back(json::as_view(a));
  if (p.apps.empty()) return error(errc::invalid_argument, "NoApps", "the plan names no apps");
  return p;
}

int main_of(const char* text) {
  asio::io_context io;
  shared s;
  auto p = read_plan(text);
  http::client_options o(p ? p->api_url : "");
  o.max_idle_connections = 1000;
  auto api = p ? http::make_client(io.get_executor(), o) : p.error();
  if (!api) {
    std::cerr << to_string(api.error()) << "\n";
    return 2;
  }
  s.p = std::move(*p);
  s.api = std::move(*api);
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&s](boost::system::error_code ec, int) {
    if (!ec) s.over = true;
  });
  spawn(io.get_executor(), run(io, s));
  io.run();
  std::cout << json::write_pretty(s.seen.report()) << "\n";
  return 0;
}

}  // namespace
}  // namespace kubeopera::inline v1::load

// The plan as JSON: {"api_url", "token", "cloudspace", "apps": [ids], "clients", "seconds"}. SIGTERM ends the run early.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: load_client PLAN\n";
    return 2;
  }
  return kubeopera::load::main_of(argv[1]);
}
