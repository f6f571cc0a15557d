// The bus inside one process.
#include "src/events/attempts.hpp"

#include <kubeopera/core/wait.hpp>

#include <deque>
#include <map>
#include <mutex>

namespace kubeopera::inline v1::events {

task<void> call_handler(const event_handler& handler, const event& e) {
  std::string broken;
  try {
    co_return co_await handler(e);
  } catch (const std::exception& x) {
    broken = x.what();
  }
  co_return error(errc::internal, "HandlerThrew", "the event's handler threw").with_detail(broken);
}

namespace {

struct waiting_queue {
  std::string name;
  std::mutex mutex;
  std::vector<std::string> patterns;
  std::deque<std::shared_ptr<const event>> waiting;
  notifier added;

  bool wants(const std::string& topic) {
    std::lock_guard lock(mutex);
    for (const auto& p : patterns)
      if (topic_matches(p, topic)) return true;
    return false;
  }
};

struct local_state {
  bus_options options;
  logger& log;
  metrics* all;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<waiting_queue>> queues;
  std::vector<std::pair<std::shared_ptr<waiting_queue>, event_handler>> subscribers;
  notifier subscribed;

  local_state(bus_options o, logger& l, metrics* m) : options(std::move(o)), log(l), all(m) {}
  void count(const char* name, const char* help, const std::string& queue) {
    if (all) all->count(name, help, {{"queue", queue}});
  }
};

task<std::shared_ptr<const event>> take(waiting_queue& q) {
  while (true) {
    auto ticket = q.added.ticket();
    if (co_await detail::cancelled()) co_return error(errc::cancelled, "Cancelled", "the bus was stopped");
    {
      std::lock_guard lock(q.mutex);
      if (!q.waiting.empty()) {
        auto e = std::move(q.waiting.front());
        q.waiting.pop_front();
        co_return e;
      }
    }
    KUBEOPERA_CO_CHECK(co_await q.added.wait(ticket));
  }
}

// Delivers one event until it is handled or dead. False when the bus is being stopped.
asio::awaitable<bool> settle(std::shared_ptr<local_state> s, waiting_queue& q, const event_handler& handler, const event& e) {
  for (int nth = 1;; ++nth) {
    auto r = co_await call_handler(handler, e);
    if (!r && co_await detail::cancelled()) co_return false;
    auto d = decide(r, nth, s->options, random_u64());
    if (d.what == verdict::done) {
      s->count("kubeopera_bus_delivered_total", "Events handled", q.name);
      co_return true;
    }
    if (d.what == verdict::dead) {
      s->count("kubeopera_bus_dead_total", "Events given up", q.name);
      s->log.error("event is dead", {{"queue", q.name}, {"id", e.id}, {"type", e.type}, {"error", r.error()}});
      co_return true;
    }
    s->count("kubeopera_bus_retries_total", "Deliveries that failed and are tried again", q.name);
    s->log.warn("event was not handled", {{"queue", q.name}, {"id", e.id}, {"type", e.type}, {"error", r.error()}});
    auto slept = co_await sleep_for(d.delay);
    if (!slept) co_return false;
  }
}

asio::awaitable<void> serve(std::shared_ptr<local_state> s, std::shared_ptr<waiting_queue> q, event_handler handler) {
  while (true) {
    auto e = co_await take(*q);
    if (!e) co_return;
    if (co_await settle(s, *q, handler, **e)) continue;
    std::lock_guard lock(q->mutex);
    q->waiting.push_front(std::move(*e));  // for the next run()
    co_return;
  }
}

asio::awaitable<void> join_all(std::vector<background>& all) {
  for (auto& b : all) {
    auto r = co_await b.join();
    (void)r.has_value();  // fails only where the waiting coroutine is cancelled; this one never is
  }
}

class local_bus final : public bus {
 public:
  local_bus(asio::any_io_executor executor, std::shared_ptr<local_state> s) : executor_(std::move(executor)), s_(std::move(s)) {}

  task<void> publish(const event& e) override {
    if (!is_topic(e.type)) co_return error(errc::invalid_argument, "BadTopic", "not a topic: " + e.type);
    auto shared = std::make_shared<const event>(e);
    std::vector<std::shared_ptr<waiting_queue>> to;
    {
      std::lock_guard lock(s_->mutex);
      for (const auto& [name, q] : s_->queues)
        if (q->wants(e.type)) to.push_back(q);
    }
    for (const auto& q : to) {
      std::lock_guard lock(q->mutex);
      if (q->waiting.size() >= s_->options.buffer)
        co_return error(errc::unavailable, "BusFull", "the queue " + q->name + " is full")
            .with_retry_after(std::chrono::seconds(2));
    }
    for (const auto& q : to) {
      {
        std::lock_guard lock(q->mutex);
        q->waiting.push_back(shared);
      }
      q->added.notify();
    }
    if (s_->all) s_->all->count("kubeopera_bus_published_total", "Events published", {{"topic", e.type}});
    co_return result<void>();
  }

  void subscribe(std::string queue, std::vector<std::string> patterns, event_handler handler) override {
    {
      std::lock_guard lock(s_->mutex);
      auto& q = s_->queues[queue];
      if (!q) q = std::make_shared<waiting_queue>();
      q->name = std::move(queue);
      {
        std::lock_guard inner(q->mutex);
        q->patterns.insert(q->patterns.end(), patterns.begin(), patterns.end());
      }
      s_->subscribers.emplace_back(q, std::move(handler));
    }
    s_->subscribed.notify();
  }

  task<void> run() override {
    auto s = s_;
    std::vector<background> running;
    while (true) {
      auto ticket = s->subscribed.ticket();
      {
        std::lock_guard lock(s->mutex);
        for (std::size_t i = running.size(); i < s->subscribers.size(); ++i)
          running.push_back(background::start(executor_, serve(s, s->subscribers[i].first, s->subscribers[i].second)));
      }
      auto r = co_await s->subscribed.wait(ticket);
      if (!r) break;
    }
    for (auto& b : running) b.stop();
    co_await uncancelled(join_all(running));
    co_return error(errc::cancelled, "Cancelled", "the bus was stopped");
  }

 private:
  asio::any_io_executor executor_;
  std::shared_ptr<local_state> s_;
};

}  // namespace

std::shared_ptr<bus> make_local_bus(asio::any_io_executor executor, bus_options options, logger& log, metrics* all) {
  return std::make_shared<local_bus>(std::move(executor), std::make_shared<local_state>(std::move(options), log, all));
}

}  // namespace kubeopera::inline v1::events
