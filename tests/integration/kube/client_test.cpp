// The client against the in-process API server, called directly, over HTTP and over HTTPS with a client certificate.
#include "tests/integration/kube/cluster.hpp"
#include "tests/unit/kube/kit.hpp"

#include <algorithm>

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace kubeopera::kube_test;

namespace {

struct client_on : ::testing::TestWithParam<path_kind> {
  runtime rt;
  cluster c{rt, GetParam()};
  std::shared_ptr<client> api = c.client();

  void SetUp() override {
    auto made = rt.wait(api->create(types::namespaces(), make_object(types::namespaces(), {"", "ns"})));
    ASSERT_TRUE(made) << to_string(made.error());
  }
  object plain(const std::string& name, const std::string& value = "1") {
    auto o = make_object(types::config_maps(), {"ns", name});
    o["data"] = {{"k", value}};
    return o;
  }
  object create(const std::string& name) {
    auto r = rt.wait(api->create(types::config_maps(), plain(name)));
    EXPECT_TRUE(r);
    return *r;
  }
};

std::string path_name(const ::testing::TestParamInfo<path_kind>& info) { return name_of_path(info.param); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(all, client_on, ::testing::Values(path_kind::direct, path_kind::http, path_kind::https), path_name);

TEST_P(client_on, objects_live_and_die) {
  auto made = create("a");
  EXPECT_FALSE(uid_of(made).empty());
  EXPECT_EQ(rt.wait(api->create(types::config_maps(), plain("a"))).error().code(), errc::already_exists);
  auto got = rt.wait(api->get(types::config_maps(), {"ns", "a"}));
  ASSERT_TRUE(got);
  EXPECT_EQ(uid_of(*got), uid_of(made));

  auto changed = *got;
  changed["data"].as_object()["k"] = "2";
  auto replaced = rt.wait(api->replace(types::config_maps(), changed));
  ASSERT_TRUE(replaced);
  EXPECT_EQ(rt.wait(api->replace(types::config_maps(), changed)).error().code(), errc::conflict) << "an old resourceVersion";

  auto patched =
      rt.wait(api->patch(types::config_maps(), {"ns", "a"}, patch_kind::merge, json::object{{"data", {{"k", "3"}, {"m", "x"}}}}));
  ASSERT_TRUE(patched);
  EXPECT_EQ(patched->at("data").at("k"), "3");
  json::array ops{json::object{{"op", "remove"}, {"path", "/data/m"}}};
  patched = rt.wait(api->patch(types::config_maps(), {"ns", "a"}, patch_kind::json_patch, ops));
  ASSERT_TRUE(patched);
  EXPECT_FALSE(patched->at("data").as_object().contains("m"));

  delete_options wrong;
  wrong.uid = "00000000-0000-4000-8000-000000000000";
  EXPECT_EQ(rt.wait(api->remove(types::config_maps(), {"ns", "a"}, wrong)).error().code(), errc::conflict);
  EXPECT_TRUE(rt.wait(api->remove(types::config_maps(), {"ns", "a"})));
  EXPECT_EQ(rt.wait(api->remove(types::config_maps(), {"ns", "a"})).error().code(), errc::not_found);
  EXPECT_EQ(rt.wait(api->get(types::config_maps(), {"ns", "a"})).error().code(), errc::not_found);
}

TEST_P(client_on, what_is_invalid_comes_with_pointers) {
  auto d = make_object(types::deployments(), {"ns", "d"});
  d["spec"] = {{"selector", {{"matchLabels", {{"a", "b"}}}}},
               {"template",
                {{"metadata", {{"labels", {{"a", "c"}}}}},
                 {"spec", {{"containers", json::array{json::object{{"name", "x"}, {"image", "i"}}}}}}}}};
  auto r = rt.wait(api->create(types::deployments(), d));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::invalid_argument);
  const auto violations = r.error().violations();
  EXPECT_TRUE(std::any_of(violations.begin(), violations.end(), [](const violation& v) {
    return v.pointer.starts_with("/spec/template");
  })) << to_string(r.error());
}

TEST_P(client_on, apply_owns_fields_and_conflicts_name_them) {
  write_options mine, theirs;
  mine.field_manager = "mine";
  theirs.field_manager = "theirs";
  ASSERT_TRUE(rt.wait(api->apply(types::config_maps(), plain("a"), mine)));
  ASSERT_TRUE(rt.wait(api->apply(types::config_maps(), plain("a"), mine))) << "twice is nothing new";
  auto r = rt.wait(api->apply(types::config_maps(), plain("a", "2"), theirs));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), errc::conflict);
  const auto violations = r.error().violations();
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].pointer, "/data/k");
  theirs.force = true;
  r = rt.wait(api->apply(types::config_maps(), plain("a", "2"), theirs));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->at("data").at("k"), "2");
}

TEST_P(client_on, lists_come_in_pages_and_an_expired_page_is_gone) {
  for (int i = 0; i < 25; ++i) create("m" + std::to_string(i));
  list_options options;
  options.limit = 7;
  auto all = rt.wait(list_all(*api, types::config_maps(), "ns", options));
  ASSERT_TRUE(all);
  std::vector<std::string> names;
  for (const auto& o : all->items) {
    if (name_of(o).starts_with("m")) names.emplace_back(name_of(o));
    EXPECT_EQ(o.at("kind"), "ConfigMap");
  }
  EXPECT_EQ(names.size(), 25u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));

  auto first = rt.wait(api->list(types::config_maps(), "ns", options));
  ASSERT_TRUE(first);
  ASSERT_FALSE(first->continue_token.empty());
  create("late");
  c.api.compact();
  options.continue_token = first->continue_token;
  EXPECT_EQ(rt.wait(api->list(types::config_maps(), "ns", options)).error().code(), errc::gone);
}

namespace {

task<std::string> next_word(watch_stream& w) {
  constexpr const char* words[] = {"added", "modified", "deleted", "bookmark"};
  auto e = co_await w.next();
  if (!e) co_return e.error();
  if (!*e) co_return std::string("end");
  co_return std::string(words[static_cast<int>((*e)->type)]) + " " + std::string(name_of((*e)->obj));
}

}  // namespace

TEST_P(client_on, watches_tell_what_happens_from_a_version_on) {
  auto list = rt.wait(api->list(types::config_maps(), "ns"));
  ASSERT_TRUE(list);
  watch_options options;
  options.resource_version = list->resource_version;
  options.field_selector = "metadata.name=a";
  auto w = rt.wait(api->watch(types::config_maps(), "ns", options));
  ASSERT_TRUE(w) << to_string(w.error());
  auto made = create("a");
  create("b");
  EXPECT_EQ(*rt.wait(next_word(**w)), "added a");
  auto changed = made;
  changed["data"].as_object()["k"] = "2";
  ASSERT_TRUE(rt.wait(api->replace(types::config_maps(), changed)));
  EXPECT_EQ(*rt.wait(next_word(**w)), "modified a");
  ASSERT_TRUE(rt.wait(api->remove(types::config_maps(), {"ns", "a"})));
  EXPECT_EQ(*rt.wait(next_word(**w)), "deleted a");
}

TEST_P(client_on, a_watch_from_a_version_that_is_forgotten_is_gone) {
  auto made = create("a");
  for (int i = 0; i < 3; ++i) create("x" + std::to_string(i));
  c.api.compact();
  watch_options options;
  options.resource_version = std::string(resource_version_of(made));
  auto w = rt.wait(api->watch(types::config_maps(), "ns", options));
  auto code = w ? rt.wait(next_word(**w)).error().code() : w.error().code();
  EXPECT_EQ(code, errc::gone);
}

TEST_P(client_on, a_watch_that_is_cut_is_unavailable) {
  watch_options options;
  options.resource_version = rt.wait(api->list(types::config_maps(), "ns"))->resource_version;
  auto w = rt.wait(api->watch(types::config_maps(), "ns", options));
  ASSERT_TRUE(w);
  c.api.faults().cut_watches("configmaps");
  EXPECT_EQ(rt.wait(next_word(**w)).error().code(), errc::unavailable);
}

TEST_P(client_on, a_watch_ends_orderly_at_its_time) {
  watch_options options;
  options.resource_version = rt.wait(api->list(types::config_maps(), "ns"))->resource_version;
  options.timeout_seconds = 1;
  options.bookmarks = false;
  auto w = rt.wait(api->watch(types::config_maps(), "ns", options));
  ASSERT_TRUE(w);
  auto end = rt.wait(next_word(**w));
  ASSERT_TRUE(end) << to_string(end.error());
  EXPECT_EQ(*end, "end");
}

TEST_P(client_on, a_storm_of_429_is_waited_out) {
  jumping_clock time;
  client_options options;
  options.time = &time;
  auto patient = c.client(options);
  kubeopera::testing::api_fault storm;
  storm.verb = "create";
  storm.status = 429;
  storm.reason = "TooManyRequests";
  storm.retry_after = 3;
  storm.times = 3;
  c.api.faults().inject(storm);
  auto r = rt.wait(patient->create(types::config_maps(), plain("a")));
  ASSERT_TRUE(r) << to_string(r.error());
  ASSERT_EQ(time.slept().size(), 3u);
  for (auto s : time.slept()) EXPECT_GT(s, std::chrono::seconds(3));
}

TEST_P(client_on, while_it_is_down_calls_are_unavailable) {
  c.api.faults().set_down(true);
  client_options options;
  options.max_retries = 0;
  EXPECT_EQ(rt.wait(c.client(options)->get(types::config_maps(), {"ns", "a"})).error().code(), errc::unavailable);
  c.api.faults().set_down(false);
  EXPECT_EQ(rt.wait(api->get(types::config_maps(), {"ns", "a"})).error().code(), errc::not_found);
}

namespace {

// Log lines that a test releases one by one.
struct log_feed {
  std::mutex mutex;
  std::deque<std::string> lines;
  notifier more;
  void push(std::string line) {
    {
      std::lock_guard lock(mutex);
      lines.push_back(std::move(line));
    }
    more.notify();
  }
};

class fed_log final : public http::body_source {
 public:
  explicit fed_log(std::shared_ptr<log_feed> feed) : feed_(std::move(feed)) {}
  task<std::string> next() override {
    while (true) {
      auto ticket = feed_->more.ticket();
      {
        std::lock_guard lock(feed_->mutex);
        if (!feed_->lines.empty()) {
          auto line = std::move(feed_->lines.front());
          feed_->lines.pop_front();
          co_return line;
        }
      }
      KUBEOPERA_CO_CHECK(co_await feed_->more.wait(ticket));
    }
  }

 private:
  std::shared_ptr<log_feed> feed_;
};

task<std::unique_ptr<http::body_source>> open_log(std::shared_ptr<log_feed> feed) {
  co_return std::unique_ptr<http::body_source>(std::make_unique<fed_log>(std::move(feed)));
}

}  // namespace

TEST_P(client_on, logs_are_followed_line_by_line) {
  auto feed = std::make_shared<log_feed>();
  c.api.set_log_source([feed](std::string, std::string, kubeopera::testing::api_log_request) { return open_log(feed); });
  auto pod = make_object(types::pods(), {"ns", "p"});
  pod["spec"] = {{"containers", json::array{json::object{{"name", "web"}, {"image", "i"}}}}};
  auto made = rt.wait(api->create(types::pods(), pod));
  ASSERT_TRUE(made) << to_string(made.error());
  log_options options;
  options.follow = true;
  auto log = rt.wait(api->logs({"ns", "p"}, options));
  ASSERT_TRUE(log) << to_string(log.error());
  feed->push("one\n");
  EXPECT_EQ(*rt.wait((*log)->next()), "one\n");
  feed->push("two\n");
  EXPECT_EQ(*rt.wait((*log)->next()), "two\n");
  options.container = "none";
  EXPECT_EQ(rt.wait(api->logs({"ns", "p"}, options)).error().code(), errc::invalid_argument);
  feed->push("");  // the end
}
