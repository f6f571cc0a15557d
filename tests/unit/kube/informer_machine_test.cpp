// The informer's decisions, step by step, with a fault at every step.
#include "src/kube/informer_machine.hpp"

#include "tests/unit/kube/kit.hpp"

#include <algorithm>
#include <map>
#include <random>

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace kubeopera::kube_test;
using kube::detail::informer_machine;
using kube::detail::step_kind;

namespace {

using strings = std::vector<std::string>;

// "+a", "~a", "-a"
strings words(const kube::detail::changes& all) {
  strings out;
  for (const auto& c : all) {
    const auto& o = c.now ? *c.now : *c.old;
    out.push_back((!c.now ? "-" : !c.old ? "+" : "~") + std::string(name_of(o)));
  }
  std::sort(out.begin(), out.end());
  return out;
}

object_list page(std::vector<object> items, std::string version, std::string next = {}) {
  object_list out;
  out.items = std::move(items);
  out.resource_version = std::move(version);
  out.continue_token = std::move(next);
  return out;
}

watch_event event(event_type type, object o) {
  watch_event e;
  e.type = type;
  e.obj = std::move(o);
  return e;
}

struct machine_test : testing::Test {
  informer_options options;
  kube::detail::object_cache cache{{}};
  informer_machine machine{cache, options, [] { return std::uint64_t{41}; }};

  void sync(std::vector<object> items, const std::string& version) {
    ASSERT_EQ(machine.next().kind, step_kind::list_page);
    machine.on_page(page(std::move(items), version));
    auto step = machine.next();
    ASSERT_EQ(step.kind, step_kind::open_watch);
    ASSERT_EQ(step.resource_version, version);
    machine.on_watch_open();
    ASSERT_EQ(machine.next().kind, step_kind::read_event);
  }
};

error failure(errc code) { return error(code, "Test", "test"); }

}  // namespace

TEST_F(machine_test, lists_pages_then_watches_from_the_lists_version) {
  auto step = machine.next();
  EXPECT_EQ(step.kind, step_kind::list_page);
  EXPECT_EQ(step.wait, duration::zero());
  EXPECT_TRUE(machine.on_page(page({config_map("a", "1")}, "9", "c1")).empty()) << "half a list is not shown";
  EXPECT_FALSE(machine.synced());
  EXPECT_EQ(machine.next().continue_token, "c1");
  EXPECT_EQ(words(machine.on_page(page({config_map("b", "2")}, "9"))), (strings{"+a", "+b"}));
  EXPECT_TRUE(machine.synced());
  step = machine.next();
  EXPECT_EQ(step.kind, step_kind::open_watch);
  EXPECT_EQ(step.resource_version, "9");
}

TEST_F(machine_test, events_change_the_copy_and_bookmarks_only_the_version) {
  sync({config_map("a", "5")}, "9");
  EXPECT_EQ(words(machine.on_event(event(event_type::added, config_map("b", "10")))), (strings{"+b"}));
  EXPECT_EQ(words(machine.on_event(event(event_type::modified, config_map("a", "11")))), (strings{"~a"}));
  object mark;
  mark["metadata"] = {{"resourceVersion", "20"}};
  EXPECT_TRUE(machine.on_event(event(event_type::bookmark, mark)).empty());
  EXPECT_EQ(machine.resource_version(), "20");
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(words(machine.on_event(event(event_type::deleted, config_map("a", "21")))), (strings{"-a"}));
  EXPECT_EQ(cache.get({"ns", "a"}), nullptr);
  machine.on_watch_end(std::chrono::minutes(5));
  auto step = machine.next();
  EXPECT_EQ(step.kind, step_kind::open_watch);
  EXPECT_EQ(step.resource_version, "21");
  EXPECT_EQ(step.wait, duration::zero());
}

TEST_F(machine_test, old_and_repeated_events_change_nothing) {
  sync({config_map("a", "8")}, "9");
  machine.on_event(event(event_type::modified, config_map("a", "12", "new")));
  EXPECT_TRUE(machine.on_event(event(event_type::modified, config_map("a", "12", "new"))).empty()) << "repeated";
  EXPECT_TRUE(machine.on_event(event(event_type::modified, config_map("a", "10", "old"))).empty()) << "older than what is known";
  EXPECT_EQ(machine.resource_version(), "12");
  EXPECT_EQ(cache.get({"ns", "a"})->at("data").at("k"), "new");
  machine.on_event(event(event_type::deleted, config_map("a", "13")));
  EXPECT_TRUE(machine.on_event(event(event_type::added, config_map("a", "12", "ghost"))).empty()) << "from before its deletion";
  EXPECT_TRUE(machine.on_event(event(event_type::deleted, config_map("a", "13"))).empty()) << "deleted twice";
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(machine_test, versions_that_are_no_numbers_are_compared_for_equality_only) {
  sync({config_map("a", "x1")}, "x9");
  EXPECT_EQ(words(machine.on_event(event(event_type::modified, config_map("a", "x0")))), (strings{"~a"}));
  EXPECT_TRUE(machine.on_event(event(event_type::modified, config_map("a", "x0"))).empty());
  EXPECT_EQ(machine.resource_version(), "x0");
}

TEST_F(machine_test, a_relist_shows_deletes_that_nobody_saw) {
  sync({config_map("a", "1"), config_map("b", "2"), config_map("c", "3")}, "9");
  machine.on_error(failure(errc::gone));
  auto step = machine.next();
  EXPECT_EQ(step.kind, step_kind::list_page);
  EXPECT_EQ(step.continue_token, "");
  EXPECT_GT(step.wait, duration::zero()) << "with jitter";
  EXPECT_LE(step.wait, std::chrono::seconds(1));
  EXPECT_EQ(words(machine.on_page(page({config_map("a", "1"), config_map("c", "12"), config_map("d", "11")}, "15"))),
            (strings{"+d", "-b", "~c"}));
  EXPECT_EQ(machine.resource_version(), "15");
}

TEST_F(machine_test, deleted_and_made_again_is_two_changes) {
  sync({config_map("a", "5", "1", "uid-1")}, "9");
  auto all = machine.on_event(event(event_type::modified, config_map("a", "12", "1", "uid-2")));
  EXPECT_EQ(words(all), (strings{"+a", "-a"}));
  EXPECT_EQ(all[0].now, nullptr) << "the deletion comes first";
  machine.on_error(failure(errc::gone));
  machine.next();
  EXPECT_EQ(words(machine.on_page(page({config_map("a", "20", "1", "uid-3")}, "20"))), (strings{"+a", "-a"}));
}

TEST_F(machine_test, an_error_while_listing_starts_the_list_over_with_growing_waits) {
  machine.next();
  machine.on_page(page({config_map("half", "1")}, "9", "c1"));
  machine.on_error(failure(errc::unavailable));
  auto step = machine.next();
  EXPECT_EQ(step.kind, step_kind::list_page);
  EXPECT_EQ(step.continue_token, "");
  EXPECT_GT(step.wait, duration::zero());
  EXPECT_EQ(machine.next().wait, duration::zero()) << "a wait is taken once";
  EXPECT_EQ(words(machine.on_page(page({config_map("a", "1")}, "9"))), (strings{"+a"})) << "the half list is forgotten";
}

TEST_F(machine_test, an_expired_continue_token_starts_the_list_over) {
  machine.next();
  machine.on_page(page({config_map("half", "1")}, "9", "c1"));
  machine.on_error(failure(errc::gone));
  EXPECT_EQ(machine.next().continue_token, "");
  EXPECT_EQ(words(machine.on_page(page({}, "12"))), strings{});
}

TEST_F(machine_test, an_outage_while_watching_keeps_the_copy_and_watches_on_from_there) {
  sync({config_map("a", "5")}, "9");
  machine.on_event(event(event_type::added, config_map("b", "12")));
  for (int i = 0; i < 10; ++i) {
    machine.on_error(failure(errc::unavailable));
    auto step = machine.next();
    EXPECT_EQ(step.kind, step_kind::open_watch);
    EXPECT_EQ(step.resource_version, "12");
    EXPECT_GT(step.wait, duration::zero());
    EXPECT_LE(step.wait, options.max_backoff);
  }
  EXPECT_EQ(cache.size(), 2u);
}

TEST_F(machine_test, retry_after_is_added_to_the_wait) {
  sync({}, "9");
  machine.on_error(failure(errc::resource_exhausted).with_retry_after(std::chrono::seconds(20)));
  EXPECT_GT(machine.next().wait, std::chrono::seconds(20));
}

TEST_F(machine_test, a_kind_that_is_not_served_and_damage_start_with_a_list) {
  for (auto code : {errc::not_found, errc::data_loss, errc::too_large, errc::invalid_argument}) {
    kube::detail::object_cache own{{}};
    informer_machine m{own, options, [] { return std::uint64_t{41}; }};
    m.next();
    m.on_page(page({}, "9"));
    m.on_watch_open();
    m.on_error(failure(code));
    EXPECT_EQ(m.next().kind, step_kind::list_page) << to_string(code);
  }
}

TEST_F(machine_test, watches_that_end_at_once_are_not_opened_in_a_tight_loop) {
  sync({}, "9");
  machine.on_watch_end(std::chrono::milliseconds(3));
  EXPECT_GT(machine.next().wait, duration::zero());
  machine.on_watch_open();
  machine.on_event(event(event_type::added, config_map("a", "10")));
  machine.on_watch_end(std::chrono::milliseconds(3));
  EXPECT_EQ(machine.next().wait, duration::zero()) << "it brought something";
}

TEST_F(machine_test, a_list_from_a_server_that_lags_is_not_believed_at_once) {
  sync({config_map("a", "50")}, "60");
  machine.on_error(failure(errc::gone));
  machine.next();
  EXPECT_TRUE(machine.on_page(page({}, "40")).empty());
  EXPECT_EQ(machine.next().kind, step_kind::list_page);
  EXPECT_TRUE(machine.on_page(page({}, "40")).empty());
  EXPECT_EQ(cache.size(), 1u);
  machine.next();
  EXPECT_EQ(words(machine.on_page(page({config_map("z", "3")}, "40"))), (strings{"+z", "-a"})) << "a server that was reset";
  EXPECT_EQ(machine.next().resource_version, "40");
}

TEST_F(machine_test, managed_fields_are_dropped_unless_wanted) {
  auto with = config_map("a", "5");
  with["metadata"].as_object()["managedFields"] = json::array{json::object{{"manager", "m"}}};
  sync({with}, "9");
  EXPECT_FALSE(cache.get({"ns", "a"})->at("metadata").as_object().contains("managedFields"));
  options.keep_managed_fields = true;
  kube::detail::object_cache own{{}};
  informer_machine m{own, options, [] { return std::uint64_t{1}; }};
  m.on_page(page({with}, "9"));
  EXPECT_TRUE(own.get({"ns", "a"})->at("metadata").as_object().contains("managedFields"));
}

TEST(object_cache, finds_by_key_namespace_and_index) {
  kube::detail::object_cache cache([](const object& o) { return strings{std::string(json::get_string(o, {"data", "k"}))}; });
  auto put = [&](const char* name, const char* value) {
    cache.put({"ns", name}, std::make_shared<const object>(config_map(name, "1", value)));
  };
  put("a", "x");
  put("b", "x");
  put("c", "y");
  EXPECT_EQ(cache.by_index("x").size(), 2u);
  put("b", "y");
  EXPECT_EQ(cache.by_index("x").size(), 1u);
  EXPECT_EQ(cache.by_index("y").size(), 2u);
  cache.erase({"ns", "c"});
  EXPECT_EQ(cache.by_index("y").size(), 1u);
  EXPECT_TRUE(cache.by_index("none").empty());
  EXPECT_EQ(cache.list("ns").size(), 2u);
  EXPECT_TRUE(cache.list("other").empty());
  EXPECT_EQ(cache.erase({"ns", "c"}), nullptr);
}

// A model of the server and random faults: after the dust settles the copy is the server's state, and what was told about each
// object makes sense in order.
namespace {

struct model {
  std::mt19937_64 random;
  std::map<std::string, object> now;
  std::vector<watch_event> log;  // all events ever, versions 1..n
  std::uint64_t version = 0;

  void mutate() {
    auto name = std::string(1, static_cast<char>('a' + random() % 5));
    auto it = now.find(name);
    ++version;
    auto text = std::to_string(version);
    if (it == now.end()) {
      now[name] = config_map(name, text, text, "uid-" + text);
      log.push_back(event(event_type::added, now[name]));
    } else if (random() % 2) {
      auto o = config_map(name, text, text, std::string(uid_of(it->second)));
      it->second = o;
      log.push_back(event(event_type::modified, o));
    } else {
      auto o = config_map(name, text, text, std::string(uid_of(it->second)));
      now.erase(it);
      log.push_back(event(event_type::deleted, o));
    }
  }
  object_list list() const {
    object_list out;
    for (const auto& [name, o] : now) out.items.push_back(o);
    out.resource_version = std::to_string(version);
    return out;
  }
};

// Checks that the changes of one object alternate properly.
void follow(std::map<std::string, std::string>& told, const kube::detail::changes& all) {
  for (const auto& c : all) {
    auto name = std::string(name_of(c.now ? *c.now : *c.old));
    if (!c.now) {
      ASSERT_EQ(told.erase(name), 1u) << name << " deleted without having been there";
    } else if (!c.old) {
      ASSERT_TRUE(told.emplace(name, resource_version_of(*c.now)).second) << name << " added twice";
    } else {
      ASSERT_TRUE(told.contains(name));
      ASSERT_LT(std::stoull(told[name]), std::stoull(std::string(resource_version_of(*c.now)))) << name << " went back";
      told[name] = std::string(resource_version_of(*c.now));
    }
  }
}

void walk(std::uint64_t seed) {
  model server;
  server.random.seed(seed);
  informer_options options;
  kube::detail::object_cache cache{{}};
  informer_machine machine{cache, options, [&] { return server.random(); }};
  std::map<std::string, std::string> told;
  std::size_t at = 0;  // position of the open watch in the log
  auto settle = [&] { return server.version >= 200; };
  for (int i = 0; i < 5000; ++i) {
    if (server.version < 200 && server.random() % 2) server.mutate();
    auto step = machine.next();
    bool fault = !settle() && server.random() % 4 == 0;
    if (fault) {
      machine.on_error(failure(server.random() % 2 ? errc::unavailable : errc::gone));
    } else if (step.kind == step_kind::list_page) {
      follow(told, machine.on_page(server.list()));
    } else if (step.kind == step_kind::open_watch) {
      at = std::stoull(step.resource_version);
      machine.on_watch_open();
    } else if (at < server.log.size()) {
      follow(told, machine.on_event(server.log[at]));
      if (settle() || server.random() % 3) ++at;  // otherwise the same event comes twice
    } else if (settle()) {
      break;
    } else {
      machine.on_watch_end(std::chrono::seconds(2));
    }
  }
  ASSERT_EQ(cache.size(), server.now.size());
  ASSERT_EQ(told.size(), server.now.size());
  for (const auto& [name, o] : server.now) {
    auto mine = cache.get({"ns", name});
    ASSERT_TRUE(mine);
    ASSERT_EQ(*mine, o);
  }
}

}  // namespace

TEST(informer_walk, ends_in_the_servers_state_whatever_fails) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    walk(seed);
    if (HasFatalFailure()) return;
  }
}
