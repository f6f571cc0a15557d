#include "server/web/readiness.hpp"

#include <kubeopera/json/write.hpp>

#include <mutex>
#include <optional>

namespace kubeopera::inline v1::web {

struct readiness::check {
  readiness_check what;
  std::string service;
  clock* clk;
  logger* log;
  metrics* stats;
  std::mutex mutex;  // guards the ones below
  bool running = false;
  steady_time started{}, answered{};
  std::optional<result<void>> last;
  std::optional<bool> told;  // what was logged last
  notifier changed;

  struct view {
    bool ok = false;
    const char* state = "no answer";
    duration age{};
    std::string message;
  };

  // True for the caller that is to start the probe.
  bool take_turn() {
    std::lock_guard lock(mutex);
    auto now = clk->steady();
    if (running || (last && now - answered < what.fresh_for)) return false;
    running = true;
    started = now;
    return true;
  }

  void finish(result<void> r) {
    {
      std::lock_guard lock(mutex);
      running = false;
      answered = clk->steady();
      last = std::move(r);
    }
    changed.notify();
  }

  // How long to wait for the probe that is under way; zero when there is nothing to wait for.
  duration patience() {
    std::lock_guard lock(mutex);
    if (!running) return duration::zero();
    return std::max(duration::zero(), what.limit - (clk->steady() - started));
  }

  view look() {
    std::lock_guard lock(mutex);
    view v;
    auto now = clk->steady();
    if (running) {
      v.age = now - started;
      v.message = "no answer within " + std::to_string(what.limit / std::chrono::milliseconds(1)) + " ms";
    } else if (last) {
      v.ok = last->has_value();
      v.state = v.ok ? "ok" : "failing";
      v.age = now - answered;
      if (!v.ok) v.message = last->error().message();
    }
    tell(v);
    return v;
  }

  void tell(const view& v) {
    if (stats)
      stats->gauge("kubeopera_dependency_up", "Whether a dependency worked when it was last looked at", v.ok ? 1 : 0,
                   {{"service", service}, {"dependency", what.name}});
    if (told.value_or(true) == v.ok) {
      told = v.ok;
      return;
    }
    told = v.ok;
    if (v.ok)
      log->info("dependency is well again", {{"service", service}, {"dependency", what.name}});
    else if (!running && last && !*last)
      log->warn("dependency is sick", {{"service", service}, {"dependency", what.name}, {"error", last->error()}});
    else
      log->warn("dependency is sick", {{"service", service}, {"dependency", what.name}, {"error", v.message}});
  }

  static asio::awaitable<void> run(std::shared_ptr<check> c) {
    auto probe = c->what.probe();
    auto r = co_await with_deadline<void>(c->what.limit, std::move(probe));
    c->finish(std::move(r));
  }

  static void start(const asio::any_io_executor& executor, const std::shared_ptr<check>& c) {
    spawn(executor, run(c),
          [c](std::exception_ptr) { c->finish(error(errc::internal, "ProbeThrew", "the check itself is broken")); });
  }
};

readiness::readiness(std::vector<readiness_check> checks, std::string service, clock& clk, logger& log, metrics* stats) {
  for (auto& each : checks) {
    auto c = std::make_shared<check>();
    c->what = std::move(each);
    c->service = service;
    c->clk = &clk;
    c->log = &log;
    c->stats = stats;
    checks_.push_back(std::move(c));
  }
}

readiness::~readiness() = default;

task<http::response> readiness::answer() {
  auto executor = co_await current_executor();
  for (const auto& c : checks_)
    if (c->take_turn()) check::start(executor, c);
  for (const auto& c : checks_) {
    auto ticket = c->changed.ticket();
    auto patience = c->patience();
    if (patience > duration::zero()) KUBEOPERA_CO_CHECK(co_await c->changed.wait_for(ticket, patience));
  }
  json::array rows;
  bool all = true;
  for (const auto& c : checks_) {
    auto v = c->look();
    json::object row{{"name", c->what.name}, {"ok", v.ok}, {"state", v.state}};
    row["age_ms"] = static_cast<std::int64_t>(v.age / std::chrono::milliseconds(1));
    if (!v.message.empty()) row["message"] = v.message;
    all = all && v.ok;
    rows.push_back(std::move(row));
  }
  json::object o{{"status", all ? "ready" : "not ready"}, {"checks", std::move(rows)}};
  http::response out(all ? 200 : 503, "application/json", json::write(o));
  out.headers.set("Cache-Control", "no-store");
  co_return std::move(out);
}

}  // namespace kubeopera::inline v1::web
