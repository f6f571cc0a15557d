// The bus over RabbitMQ: a thread that owns the connection, and coroutines that talk to it through a bounded list of commands.
#include "src/events/attempts.hpp"
#include "src/events/rabbitmq_link.hpp"

#include <kubeopera/core/backoff.hpp>
#include <kubeopera/core/wait.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

namespace kubeopera::inline v1::events {
namespace {

constexpr std::size_t max_unconfirmed = 2000;
constexpr int first_consumer_channel = 2;

error not_confirmed(std::string why) {
  return error(errc::unavailable, "NotConfirmed", "the message broker has not confirmed the event")
      .with_detail(std::move(why))
      .with_retry_after(std::chrono::seconds(2));
}

// An event on its way to the broker.
struct outgoing {
  std::string topic, id, body;
  std::mutex mutex;
  std::optional<result<void>> outcome;
  std::atomic<bool> abandoned{false};
  notifier decided;

  void decide(result<void> r) {
    {
      std::lock_guard lock(mutex);
      if (!outcome) outcome = std::move(r);
    }
    decided.notify();
  }
};

// What to tell the broker of a delivery. Void on a later connection: the broker delivers it again by itself.
struct settlement {
  std::uint64_t connection;
  int channel;
  std::uint64_t tag;
  bool dead;
};

struct subscription {
  std::string queue;
  std::vector<std::string> patterns;
  event_handler handler;
};

struct rabbit_state {
  asio::any_io_executor executor;
  rabbitmq_options options;
  logger& log;
  metrics* all;
  int wake_fd;
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::deque<std::shared_ptr<outgoing>> to_publish;
  std::deque<settlement> to_settle;
  std::vector<std::shared_ptr<const subscription>> subscriptions;
  std::vector<background> handlers;
  bool thread_ended = false;
  notifier ended;

  rabbit_state(asio::any_io_executor e, rabbitmq_options o, logger& l, metrics* m)
      : executor(std::move(e)), options(std::move(o)), log(l), all(m), wake_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_fd < 0) throw std::runtime_error("no eventfd");
  }
  ~rabbit_state() { ::close(wake_fd); }
  void wake() noexcept {
    std::uint64_t one = 1;
    if (::write(wake_fd, &one, sizeof one) < 0) return;  // full: it is awake already
  }
  void count(const char* name, const char* help, const std::string& queue) {
    if (all) all->count(name, help, {{"queue", queue}});
  }
};

// Handles one delivery until it is done or dead. Stopped half way it says nothing: the broker delivers it again.
asio::awaitable<void> handle(std::shared_ptr<rabbit_state> s, std::shared_ptr<const subscription> sub, event e,
                             settlement answer) {
  for (int nth = 1;; ++nth) {
    auto r = co_await call_handler(sub->handler, e);
    if (!r && co_await detail::cancelled()) co_return;
    auto d = decide(r, nth, s->options, random_u64());
    if (d.what != verdict::again) {
      answer.dead = d.what == verdict::dead;
      break;
    }
    s->count("kubeopera_bus_retries_total", "Deliveries that failed and are tried again", sub->queue);
    s->log.warn("event was not handled", {{"queue", sub->queue}, {"id", e.id}, {"type", e.type}, {"error", r.error()}});
    auto slept = co_await sleep_for(d.delay);
    if (!slept) co_return;
  }
  if (answer.dead) {
    s->count("kubeopera_bus_dead_total", "Events given up", sub->queue);
    s->log.error("event is dead", {{"queue", sub->queue}, {"id", e.id}, {"type", e.type}});
  } else {
    s->count("kubeopera_bus_delivered_total", "Events handled", sub->queue);
  }
  {
    std::lock_guard lock(s->mutex);
    s->to_settle.push_back(answer);
  }
  s->wake();
}

// The thread's side. One object is one connection's life.
class connection_life {
 public:
  connection_life(std::shared_ptr<rabbit_state> s, std::uint64_t number) : s_(std::move(s)), number_(number) {}
  ~connection_life() {
    for (auto& [tag, out] : unconfirmed_) out->decide(not_confirmed("the connection was lost"));
  }
  /// Until the bus is stopped (success) or the connection is lost.
  result<void> run() {
    KUBEOPERA_CHECK(link_.open(s_->options));
    s_->log.info("connected to RabbitMQ", {{"host", s_->options.host}});
    while (!s_->stopping) {
      opened_ = true;
      KUBEOPERA_CHECK(consume_new());
      KUBEOPERA_CHECK(settle());
      KUBEOPERA_CHECK(publish());
      KUBEOPERA_CHECK(link_.receive([this](incoming m) { take(std::move(m)); }, [this](confirmation c) { confirm(c); }));
      wait();
    }
    return settle();
  }
  bool opened() const noexcept { return opened_; }

 private:
  void wait() {
    {
      std::lock_guard lock(s_->mutex);
      bool room = unconfirmed_.size() < max_unconfirmed;
      if (!s_->to_settle.empty() || (room && !s_->to_publish.empty()) || consuming_ < s_->subscriptions.size()) return;
    }
    pollfd fds[] = {{link_.socket(), POLLIN, 0}, {s_->wake_fd, POLLIN, 0}};
    ::poll(fds, 2, 1000);  // now and then without cause, for heartbeats
    std::uint64_t count;
    while (::read(s_->wake_fd, &count, sizeof count) > 0) {
    }
  }
  result<void> consume_new() {
    while (true) {
      std::shared_ptr<const subscription> next;
      {
        std::lock_guard lock(s_->mutex);
        if (consuming_ < s_->subscriptions.size()) next = s_->subscriptions[consuming_];
      }
      if (!next) return {};
      KUBEOPERA_CHECK(link_.consume(first_consumer_channel + static_cast<int>(consuming_), next->queue, next->patterns,
                                    s_->options.prefetch));
      ++consuming_;
    }
  }
  result<void> settle() {
    std::deque<settlement> all;
    {
      std::lock_guard lock(s_->mutex);
      all.swap(s_->to_settle);
    }
    for (const auto& a : all) {
      if (a.connection != number_) continue;
      KUBEOPERA_CHECK(a.dead ? link_.reject(a.channel, a.tag) : link_.ack(a.channel, a.tag));
    }
    return {};
  }
  result<void> publish() {
    while (unconfirmed_.size() < max_unconfirmed) {
      std::shared_ptr<outgoing> out;
      {
        std::lock_guard lock(s_->mutex);
        if (s_->to_publish.empty()) return {};
        out = std::move(s_->to_publish.front());
        s_->to_publish.pop_front();
      }
      if (out->abandoned) continue;
      unconfirmed_.emplace(++published_, out);
      KUBEOPERA_CHECK(link_.publish(out->topic, out->id, out->body));
    }
    return {};
  }
  void confirm(confirmation c) {
    auto first = c.multiple ? unconfirmed_.begin() : unconfirmed_.lower_bound(c.tag);
    auto last = unconfirmed_.upper_bound(c.tag);
    for (auto it = first; it != last; ++it)
      it->second->decide(c.accepted ? result<void>() : not_confirmed("the broker refused it"));
    unconfirmed_.erase(first, last);
  }
  void take(incoming m) {
    std::shared_ptr<const subscription> sub;
    {
      std::lock_guard lock(s_->mutex);
      sub = s_->subscriptions[static_cast<std::size_t>(m.channel - first_consumer_channel)];
    }
    settlement answer{number_, m.channel, m.tag, true};
    auto e = from_json(m.body);
    if (!e) {
      s_->count("kubeopera_bus_dead_total", "Events given up", sub->queue);
      s_->log.error("message is no event", {{"queue", sub->queue}, {"error", e.error()}});
      std::lock_guard lock(s_->mutex);
      s_->to_settle.push_back(answer);
      return;
    }
    auto running = background::start(s_->executor, handle(s_, sub, std::move(*e), answer));
    std::lock_guard lock(s_->mutex);
    std::erase_if(s_->handlers, [](const background& b) { return b.finished(); });
    s_->handlers.push_back(std::move(running));
  }

  std::shared_ptr<rabbit_state> s_;
  std::uint64_t number_;
  rabbitmq_link link_;
  bool opened_ = false;
  std::size_t consuming_ = 0;
  std::uint64_t published_ = 0;
  std::map<std::uint64_t, std::shared_ptr<outgoing>> unconfirmed_;
};

void own_connection(std::shared_ptr<rabbit_state> s) {
  backoff pause(std::chrono::milliseconds(200), std::chrono::seconds(10));
  for (std::uint64_t number = 1; !s->stopping; ++number) {
    {
      connection_life life(s, number);
      auto r = life.run();
      if (life.opened()) pause.reset();
      if (!r) s->log.warn("no connection to RabbitMQ", {{"host", s->options.host}, {"error", r.error()}});
    }
    auto until = std::chrono::steady_clock::now() + pause.next();
    while (!s->stopping && std::chrono::steady_clock::now() < until) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd fd{s->wake_fd, POLLIN, 0};
      ::poll(&fd, 1, static_cast<int>(left.count()) + 1);
      std::uint64_t count;
      while (::read(s->wake_fd, &count, sizeof count) > 0) {
      }
    }
  }
  {
    std::lock_guard lock(s->mutex);
    s->thread_ended = true;
  }
  s->ended.notify();
}

asio::awaitable<void> wait_thread(std::shared_ptr<rabbit_state> s) {
  while (true) {
    auto ticket = s->ended.ticket();
    {
      std::lock_guard lock(s->mutex);
      if (s->thread_ended) co_return;
    }
    auto r = co_await s->ended.wait(ticket);
    (void)r.has_value();  // not cancelled: see the caller
  }
}

asio::awaitable<void> join_all(std::vector<background>& all) {
  for (auto& b : all) {
    auto r = co_await b.join();
    (void)r.has_value();  // fails only where the waiting coroutine is cancelled; this one never is
  }
}

class rabbitmq_bus final : public bus {
 public:
  explicit rabbitmq_bus(std::shared_ptr<rabbit_state> s) : s_(std::move(s)) {}

  task<void> publish(const event& e) override {
    if (!is_topic(e.type)) co_return error(errc::invalid_argument, "BadTopic", "not a topic: " + e.type);
    auto s = s_;
    auto out = std::make_shared<outgoing>();
    out->topic = e.type;
    out->id = e.id;
    out->body = json::write(to_json(e));
    {
      std::lock_guard lock(s->mutex);
      if (s->to_publish.size() >= s->options.buffer)
        co_return error(errc::unavailable, "BusFull", "too many events wait for the message broker")
            .with_retry_after(std::chrono::seconds(2));
      s->to_publish.push_back(out);
    }
    s->wake();
    auto limit = std::chrono::steady_clock::now() + s->options.publish_timeout;
    while (true) {
      auto ticket = out->decided.ticket();
      {
        std::lock_guard lock(out->mutex);
        if (out->outcome) break;
      }
      auto left = limit - std::chrono::steady_clock::now();
      if (left <= duration::zero()) {
        out->abandoned = true;
        co_return not_confirmed("no confirm in time");
      }
      auto r = co_await out->decided.wait_for(ticket, left);
      if (!r) {
        out->abandoned = true;
        co_return r.error();
      }
    }
    if (*out->outcome && s->all) s->all->count("kubeopera_bus_published_total", "Events published", {{"topic", e.type}});
    co_return *out->outcome;
  }

  void subscribe(std::string queue, std::vector<std::string> patterns, event_handler handler) override {
    auto sub = std::make_shared<subscription>(subscription{std::move(queue), std::move(patterns), std::move(handler)});
    {
      std::lock_guard lock(s_->mutex);
      s_->subscriptions.push_back(std::move(sub));
    }
    s_->wake();
  }

  task<void> run() override {
    auto s = s_;
    s->stopping = false;
    s->thread_ended = false;
    std::thread owner(own_connection, s);
    auto ticket = s->ended.ticket();
    auto r = co_await s->ended.wait(ticket);
    (void)r.has_value();  // the thread ends only when it is told to, so this is the cancellation
    std::vector<background> handlers;
    {
      std::lock_guard lock(s->mutex);
      handlers.swap(s->handlers);
    }
    for (auto& h : handlers) h.stop();
    co_await uncancelled(join_all(handlers));
    s->stopping = true;
    s->wake();
    co_await uncancelled(wait_thread(s));
    owner.join();
    {
      std::lock_guard lock(s->mutex);
      handlers.swap(s->handlers);  // of deliveries that came in meanwhile
    }
    for (auto& h : handlers) h.stop();
    co_await uncancelled(join_all(handlers));
    co_return error(errc::cancelled, "Cancelled", "the bus was stopped");
  }

 private:
  std::shared_ptr<rabbit_state> s_;
};

}  // namespace

std::shared_ptr<bus> make_rabbitmq_bus(asio::any_io_executor executor, rabbitmq_options options, logger& log, metrics* all) {
  return std::make_shared<rabbitmq_bus>(std::make_shared<rabbit_state>(std::move(executor), std::move(options), log, all));
}

result<rabbitmq_options> parse_rabbitmq_url(std::string_view url) {
  auto bad = [] {
    return error(errc::invalid_argument, "BadBrokerUrl",
                 "the message broker's URL cannot be read: amqp://user:password@host:port/vhost");
  };
  if (url.starts_with("amqps:"))
    return error(errc::invalid_argument, "BadBrokerUrl", "amqps is not supported: put a TLS tunnel before the broker");
  std::string copy(url);
  amqp_connection_info info;
  amqp_default_connection_info(&info);
  if (!url.starts_with("amqp://") || url.size() == 7 || amqp_parse_url(copy.data(), &info) != AMQP_STATUS_OK || !*info.host)
    return bad();
  rabbitmq_options o;
  o.host = info.host;
  o.port = info.port;
  o.virtual_host = info.vhost;
  o.user = info.user;
  o.password = secret(info.password);
  return o;
}

}  // namespace kubeopera::inline v1::events
