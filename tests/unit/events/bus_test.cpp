// Topics, envelopes and the bus inside one process.
#include <kubeopera/core/id.hpp>
#include <kubeopera/events/bus.hpp>
#include <kubeopera/json/write.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::events;
using namespace std::chrono_literals;

TEST(topic, patterns) {
  struct row {
    const char *pattern, *topic;
    bool match;
  } rows[] = {
      {"app.created", "app.created", true},
      {"app.created", "app.deleted", false},
      {"app.*", "app.created", true},
      {"app.*", "app", false},
      {"app.*", "app.created.late", false},
      {"*.created", "app.created", true},
      {"#", "app", true},
      {"#", "app.created.late", true},
      {"app.#", "app", true},
      {"app.#", "app.a.b.c", true},
      {"app.#", "apps.a", false},
      {"#.failed", "failed", true},
      {"#.failed", "a.b.failed", true},
      {"#.failed", "a.failed.b", false},
      {"a.#.z", "a.z", true},
      {"a.#.z", "a.b.z.c.z", true},
      {"a.#.z", "a.b.c", false},
      {"a.#.b.*.c", "a.b.x.b.y.c", true},
      {"a.#.b.*.c", "a.b.x.b.y.d", false},
      {"*", "app.created", false},
      {"*.*", "app.created", true},
      {"#.*", "app", true},
      {"*.#", "app", true},
      {"app", "app.created", false},
      {"#.#", "app", true},
      {"a.#.#.z", "a.z", true},
      {"", "app", false},
  };
  for (const auto& r : rows) EXPECT_EQ(topic_matches(r.pattern, r.topic), r.match) << r.pattern << " " << r.topic;
}

// Against a slow and obvious matcher, over all short patterns and topics of few words.
TEST(topic, agrees_with_the_obvious_matcher) {
  using words = std::vector<std::string>;
  std::function<bool(const words&, std::size_t, const words&, std::size_t)> obvious = [&](const words& p, std::size_t i,
                                                                                          const words& t, std::size_t j) -> bool {
    if (i == p.size()) return j == t.size();
    if (p[i] == "#") return obvious(p, i + 1, t, j) || (j < t.size() && obvious(p, i, t, j + 1));
    return j < t.size() && (p[i] == "*" || p[i] == t[j]) && obvious(p, i + 1, t, j + 1);
  };
  auto all = [](const words& alphabet, std::size_t longest) {
    std::vector<words> out, last{{}};
    for (std::size_t n = 0; n < longest; ++n) {
      std::vector<words> next;
      for (const auto& w : last)
        for (const auto& a : alphabet) {
          next.push_back(w);
          next.back().push_back(a);
        }
      out.insert(out.end(), next.begin(), next.end());
      last = next;
    }
    return out;
  };
  auto join = [](const words& w) {
    std::string s;
    for (const auto& x : w) s += (s.empty() ? "" : ".") + x;
    return s;
  };
  for (const auto& p : all({"a", "b", "*", "#"}, 4))
    for (const auto& t : all({"a", "b"}, 5))
      ASSERT_EQ(topic_matches(join(p), join(t)), obvious(p, 0, t, 0)) << join(p) << " " << join(t);
}

TEST(topic, names) {
  EXPECT_TRUE(is_topic("app.created"));
  EXPECT_TRUE(is_topic("a-b.c_d.9"));
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a b", "a.*", "#", "a.b.c.d.e.f.g.h.i.j.k"})
    EXPECT_FALSE(is_topic(bad)) << bad;
}

TEST(event, json_there_and_back) {
  json::object data;
  data["name"] = "web";
  auto e = make_event("app.created", "t-1", "apps/web", data);
  e.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  auto back = from_json(json::write(to_json(e)));
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(back->id, e.id);
  EXPECT_EQ(back->type, e.type);
  EXPECT_EQ(back->tenant_id, e.tenant_id);
  EXPECT_EQ(back->subject, e.subject);
  EXPECT_EQ(back->trace, e.trace);
  EXPECT_EQ(back->data, e.data);
  EXPECT_EQ(format_rfc3339_millis(back->time), format_rfc3339_millis(e.time));
}

TEST(event, bad_ones_say_where) {
  auto r = from_json(R"({"id":"x","type":"a..b","time":"yesterday","data":[],"subject":7})");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().reason(), "BadEvent");
  std::vector<std::string> where;
  const auto e = r.error();
  for (const auto& v : e.violations()) where.push_back(v.pointer);
  EXPECT_EQ(where, (std::vector<std::string>{"/subject", "/id", "/type", "/time", "/data"}));
  EXPECT_FALSE(from_json("{"));
}

namespace {

struct seen {
  std::vector<std::string> subjects;
  std::function<result<void>(const event&, int nth)> script;
  event_handler handler() {
    return [this](const event& e) -> task<void> {
      subjects.push_back(e.subject);
      auto nth = static_cast<int>(std::count(subjects.begin(), subjects.end(), e.subject));
      if (script) co_return script(e, nth);
      co_return result<void>();
    };
  }
};

asio::awaitable<void> publish(std::shared_ptr<bus> b, std::string type, std::string subject, std::vector<result<void>>& out) {
  auto e = make_event(std::move(type), "t", std::move(subject), {});
  out.push_back(co_await b->publish(e));
}

asio::awaitable<void> run_bus(std::shared_ptr<bus> b) {
  auto r = co_await b->run();
  if (r || r.error().code() != errc::cancelled) throw std::logic_error("a bus ends only when it is cancelled");
}

struct bus_fixture {
  asio::io_context io;
  metrics all;
  bus_options options;
  std::shared_ptr<bus> it;
  background running;
  std::vector<result<void>> published;
  explicit bus_fixture(bus_options o = bus_options()) : options(std::move(o)) {
    options.first_retry = 100us;
    options.max_retry = 200us;
    it = make_local_bus(io.get_executor(), options, logger::none(), &all);
  }
  void start() { running = background::start(io.get_executor(), run_bus(it)); }
  void send(const std::string& type, const std::string& subject) {
    spawn(io.get_executor(), publish(it, type, subject, published));
  }
  template <class Check>
  bool until(Check check) {
    auto limit = std::chrono::steady_clock::now() + 20s;
    while (!check()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      io.restart();
      io.run_one_for(10ms);
    }
    return true;
  }
  ~bus_fixture() {
    running.stop();
    io.restart();
    io.run();
    EXPECT_TRUE(running.finished());
  }
};

}  // namespace

TEST(local_bus, every_matching_queue_gets_each_event_once_in_order) {
  bus_fixture f;
  seen apps, all, other;
  f.it->subscribe("apps", {"app.*", "app.#"}, apps.handler());
  f.it->subscribe("audit", {"#"}, all.handler());
  f.it->subscribe("other", {"other.*"}, other.handler());
  f.start();
  for (int i = 0; i < 20; ++i) f.send("app.created", std::to_string(i));
  f.send("tenant.created", "t");
  ASSERT_TRUE(f.until([&] { return all.subjects.size() == 21 && apps.subjects.size() == 20; }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(apps.subjects[static_cast<std::size_t>(i)], std::to_string(i));
  EXPECT_TRUE(other.subjects.empty());
  for (const auto& r : f.published) EXPECT_TRUE(r);
}

TEST(local_bus, subscribers_of_one_queue_share) {
  bus_fixture f;
  seen a, b;
  f.it->subscribe("q", {"#"}, a.handler());
  f.it->subscribe("q", {}, b.handler());
  f.start();
  for (int i = 0; i < 50; ++i) f.send("x.y", std::to_string(i));
  ASSERT_TRUE(f.until([&] { return a.subjects.size() + b.subjects.size() == 50; }));
}

TEST(local_bus, failed_event_comes_again_and_dies_in_the_end) {
  bus_options o;
  o.max_attempts = 4;
  bus_fixture f(o);
  seen s;
  s.script = [](const event& e, int nth) -> result<void> {
    if (e.subject == "flaky" && nth < 3) return error(errc::unavailable, "Down", "down");
    if (e.subject == "hopeless") return error(errc::unavailable, "Down", "down");
    if (e.subject == "poison") return error(errc::invalid_argument, "Bad", "bad");
    if (e.subject == "throws" && nth == 1) throw std::runtime_error("broken");
    return {};
  };
  f.it->subscribe("q", {"#"}, s.handler());
  f.start();
  for (const char* subject : {"flaky", "hopeless", "poison", "throws", "good"}) f.send("x.y", subject);
  ASSERT_TRUE(f.until([&] { return !s.subjects.empty() && s.subjects.back() == "good"; }));
  EXPECT_EQ(s.subjects, (std::vector<std::string>{"flaky", "flaky", "flaky", "hopeless", "hopeless", "hopeless", "hopeless",
                                                  "poison", "throws", "throws", "good"}));
  auto text = f.all.expose();
  EXPECT_NE(text.find("kubeopera_bus_dead_total{queue=\"q\"} 2"), std::string::npos) << text;
}

TEST(local_bus, events_before_the_run_wait_and_a_full_queue_refuses) {
  bus_options o;
  o.buffer = 3;
  bus_fixture f(o);
  seen s;
  f.it->subscribe("q", {"#"}, s.handler());
  for (int i = 0; i < 4; ++i) f.send("x.y", std::to_string(i));
  ASSERT_TRUE(f.until([&] { return f.published.size() == 4; }));
  EXPECT_TRUE(f.published[2]);
  ASSERT_FALSE(f.published[3]);
  EXPECT_EQ(f.published[3].error().code(), errc::unavailable);
  f.start();
  ASSERT_TRUE(f.until([&] { return s.subjects.size() == 3; }));
}

TEST(local_bus, bad_topic_is_refused) {
  bus_fixture f;
  f.send("not a topic", "x");
  ASSERT_TRUE(f.until([&] { return f.published.size() == 1; }));
  ASSERT_FALSE(f.published[0]);
  EXPECT_EQ(f.published[0].error().code(), errc::invalid_argument);
}

TEST(rabbitmq_url, parts) {
  auto o = parse_rabbitmq_url("amqp://bob:p%40ss@mq.example:5673/%2Fteam");
  ASSERT_TRUE(o) << to_string(o.error());
  EXPECT_EQ(o->host, "mq.example");
  EXPECT_EQ(o->port, 5673);
  EXPECT_EQ(o->user, "bob");
  EXPECT_EQ(o->password.reveal(), "p@ss");
  EXPECT_EQ(o->virtual_host, "/team");
  auto plain = parse_rabbitmq_url("amqp://localhost");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->port, 5672);
  EXPECT_EQ(plain->virtual_host, "/");
  for (const char* bad : {"", "http://x", "amqps://x", "amqp://", "amqp://x:99999", "amqp://x:1x", "amqp://a%zz@x"})
    EXPECT_FALSE(parse_rabbitmq_url(bad)) << bad;
}
