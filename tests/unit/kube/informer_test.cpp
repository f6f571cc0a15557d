// The informer's shell over a client that a test drives: waiting, handlers, outages, cancellation.
#include "tests/unit/kube/kit.hpp"

#include <kubeopera/kube/informer.hpp>

#include <atomic>
#include <thread>

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace kubeopera::kube_test;

namespace {

std::string list_json(const std::string& version, std::vector<object> items) {
  json::array all;
  for (auto& o : items) all.emplace_back(std::move(o));
  json::object out{{"metadata", {{"resourceVersion", version}}}, {"items", std::move(all)}};
  return json::write(out);
}

std::string event_line(const char* type, const object& o) {
  return json::write(json::object{{"type", type}, {"object", o}}) + "\n";
}

struct told {
  std::mutex mutex;
  std::vector<std::string> all;
  void add(std::string text) {
    std::lock_guard lock(mutex);
    all.push_back(std::move(text));
  }
};

informer_handler handler_into(told& t) {
  informer_handler h;
  h.added = [&t](const object_ptr& o) { t.add("+" + std::string(name_of(*o))); };
  h.updated = [&t](const object_ptr& old, const object_ptr& now) {
    t.add((old == now ? "=" : "~") + std::string(name_of(*now)));
  };
  h.deleted = [&t](const object_ptr& o) { t.add("-" + std::string(name_of(*o))); };
  return h;
}

asio::awaitable<void> run_informer(informer& i, std::optional<errc>& ended) {
  auto r = co_await i.run();
  ended = r ? errc::internal : r.error().code();
}

// Waits for cond() to hold after changes, within ten seconds.
template <class Condition>
asio::awaitable<bool> eventually(informer& i, Condition cond) {
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!cond()) {
    auto ticket = i.changed().ticket();
    if (cond()) break;
    if (std::chrono::steady_clock::now() > until) co_return false;
    (void)co_await i.changed().wait_for(ticket, std::chrono::milliseconds(5));
  }
  co_return true;
}

struct informer_test : testing::Test {
  std::shared_ptr<scripted_transport> wire = std::make_shared<scripted_transport>();
  jumping_clock time;
  told heard;
  std::optional<errc> ended;

  std::shared_ptr<client> api() {
    client_options o;
    o.time = &time;
    o.max_retries = 0;
    return make_client(wire, o);
  }
  informer_options options() {
    informer_options o;
    o.ns = "ns";
    o.time = &time;
    return o;
  }
  // Runs the informer until cond holds, then stops it and waits for its end.
  template <class Condition>
  void run_until(informer& i, Condition cond) {
    asio::io_context io;
    spawn(io.get_executor(), drive(io.get_executor(), i, cond));
    io.run();
    EXPECT_EQ(ended, errc::cancelled);
  }

 private:
  template <class Condition>
  asio::awaitable<void> drive(asio::any_io_executor executor, informer& i, Condition cond) {
    auto b = background::start(executor, run_informer(i, ended));
    bool held = co_await eventually(i, cond);
    EXPECT_TRUE(held);
    b.stop();
    auto joined = co_await b.join();
    EXPECT_TRUE(joined);
  }
};

}  // namespace

TEST_F(informer_test, lists_then_follows_the_watch) {
  wire->then(200, list_json("9", {config_map("a", "5"), config_map("b", "6")}))
      .then_stream({event_line("MODIFIED", config_map("a", "10")), event_line("ADDED", config_map("c", "11")),
                    event_line("DELETED", config_map("b", "12"))},
                   true);
  auto o = options();
  o.label_selector = "x=y";
  o.index = [](const object& obj) { return std::vector<std::string>{std::string(name_of(obj)) + "!"}; };
  informer i(api(), types::config_maps(), o);
  i.add_handler(handler_into(heard));
  EXPECT_FALSE(i.synced());
  run_until(i, [&] { return i.resource_version() == "12"; });
  EXPECT_TRUE(i.synced());
  EXPECT_EQ(i.size(), 2u);
  EXPECT_EQ(resource_version_of(*i.get({"ns", "a"})), "10");
  EXPECT_EQ(i.by_index("c!").size(), 1u);
  EXPECT_TRUE(i.by_index("b!").empty());
  EXPECT_EQ(heard.all, (std::vector<std::string>{"+a", "+b", "~a", "+c", "-b"}));
  EXPECT_FALSE(i.last_error());
  EXPECT_EQ(wire->all()[0].target, "/api/v1/namespaces/ns/configmaps?labelSelector=x%3Dy&limit=500");
  EXPECT_NE(wire->all()[1].target.find("watch=true&labelSelector=x%3Dy&resourceVersion=9&allowWatchBookmarks=true"),
            std::string::npos);
}

TEST_F(informer_test, comes_back_after_an_outage_and_a_410) {
  auto down = [](const sent&) { return result<http::response>(error(errc::unavailable, "ConnectFailed", "refused")); };
  wire->then(down)
      .then(503, "")
      .then(200, list_json("9", {config_map("a", "5"), config_map("b", "6")}))
      .then_stream({event_line("MODIFIED", config_map("a", "10")), std::string("{\"type\":")})  // cut in an event
      .then(down)
      .then(410, R"({"kind":"Status","code":410,"reason":"Expired"})")
      .then(200, list_json("20", {config_map("a", "15")}))
      .then_stream({}, true);
  informer i(api(), types::config_maps(), options());
  i.add_handler(handler_into(heard));
  run_until(i, [&] { return i.resource_version() == "20"; });
  EXPECT_EQ(heard.all, (std::vector<std::string>{"+a", "+b", "~a", "~a", "-b"}));
  EXPECT_EQ(i.size(), 1u);
  auto all = wire->all();
  EXPECT_NE(all[4].target.find("resourceVersion=10"), std::string::npos) << "on from where it was cut";
  EXPECT_GE(time.slept().size(), 5u) << "no failure is answered at once";
}

TEST_F(informer_test, an_error_stays_readable_until_the_next_success) {
  wire->then(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"may not"})");
  informer i(api(), types::config_maps(), options());
  run_until(i, [&] { return wire->all().size() > 3; });  // the script's end is an error too
  EXPECT_FALSE(i.synced());
  ASSERT_TRUE(i.last_error());
}

TEST_F(informer_test, a_late_handler_hears_of_what_is_there) {
  wire->then(200, list_json("9", {config_map("a", "5")})).then_stream({}, true);
  informer i(api(), types::config_maps(), options());
  run_until(i, [&] { return i.synced(); });
  i.add_handler(handler_into(heard));
  EXPECT_EQ(heard.all, (std::vector<std::string>{"+a"}));
}

TEST_F(informer_test, resync_tells_of_everything_again) {
  wire->then(200, list_json("9", {config_map("a", "5")})).then_stream({}, true);
  auto o = options();
  o.resync = std::chrono::hours(1);  // this clock jumps
  informer i(api(), types::config_maps(), o);
  i.add_handler(handler_into(heard));
  run_until(i, [&] {
    std::lock_guard lock(heard.mutex);
    return heard.all.size() > 2;
  });
  EXPECT_EQ(heard.all[0], "+a");
  EXPECT_EQ(heard.all[1], "=a");
}

namespace {

asio::awaitable<void> wait_for_sync(informer& i, bool& done) {
  auto r = co_await i.wait_synced();
  done = r.has_value();
}

}  // namespace

TEST_F(informer_test, wait_synced_waits_for_the_whole_list) {
  wire->then(200, R"({"metadata":{"resourceVersion":"9","continue":"c"},"items":[]})")
      .then(200, list_json("9", {config_map("a", "5")}))
      .then_stream({}, true);
  informer i(api(), types::config_maps(), options());
  asio::io_context io;
  bool done = false;
  spawn(io.get_executor(), wait_for_sync(i, done));
  std::optional<background> b = background::start(io.get_executor(), run_informer(i, ended));
  while (!done && io.run_one() > 0) {
  }
  EXPECT_TRUE(done);
  EXPECT_EQ(i.size(), 1u);
  b->stop();
  io.run();
}

TEST_F(informer_test, readers_on_other_threads_see_whole_objects) {
  std::vector<scripted_body::piece> events;
  for (int v = 10; v < 3000; ++v) events.push_back(event_line("MODIFIED", config_map("a", std::to_string(v), std::to_string(v))));
  wire->then(200, list_json("9", {config_map("a", "9", "9")})).then_stream(events, true);
  informer i(api(), types::config_maps(), options());
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!stop) {
      auto o = i.get({"ns", "a"});
      if (!o) continue;
      auto version = std::stoull(std::string(resource_version_of(*o)));
      EXPECT_EQ(std::string(json::get_string(*o, {"data", "k"})), std::to_string(version));
      EXPECT_GE(version, last);
      last = version;
    }
  });
  run_until(i, [&] { return i.resource_version() == "2999"; });
  stop = true;
  reader.join();
}
