// Watches: from a version on, into and out of a selection, bookmarks, initial events, forgotten versions, an orderly end.
#include "cluster_test.hpp"

#include <map>

namespace kubeopera::conformance {
namespace {

using namespace kube;

struct watches : cluster_test {
  static task<std::string> word_of(std::shared_ptr<watch_stream> w) {
    constexpr const char* words[] = {"added", "modified", "deleted", "bookmark"};
    auto e = co_await with_deadline<std::optional<watch_event>>(std::chrono::seconds(30), w->next());
    if (!e) co_return e.error();
    if (!*e) co_return std::string("end");
    if ((*e)->type == event_type::bookmark) co_return "bookmark " + std::string(resource_version_of((*e)->obj));
    co_return std::string(words[static_cast<int>((*e)->type)]) + " " + std::string(name_of((*e)->obj));
  }
  /// "added a", "bookmark 12", "end", or the error's code.
  std::string next(const std::shared_ptr<watch_stream>& w) {
    auto r = wait(word_of(w));
    return r ? *r : std::string(to_string(r.error().code()));
  }
  std::shared_ptr<watch_stream> open(const resource_type& type, const watch_options& options) {
    auto w = wait(api->watch(type, ns, options));
    EXPECT_TRUE(w) << to_string(w.error());
    return w ? std::shared_ptr<watch_stream>(std::move(*w)) : nullptr;
  }
  std::string version_now(const resource_type& type) {
    auto list = wait(api->list(type, ns));
    EXPECT_TRUE(list);
    return list ? list->resource_version : "";
  }
  // The events of a watch by its raw lines until it ends.
  std::vector<json::object> lines(const std::string& query) {
    http::request r("GET", maps + "?watch=true&" + query);
    auto got = wait(api->raw(std::move(r)));
    EXPECT_TRUE(got) << to_string(got.error());
    std::vector<json::object> out;
    std::string text = got ? got->body : "";
    for (std::size_t from = 0, end = 0; (end = text.find('\n', from)) != std::string::npos; from = end + 1)
      out.push_back(json::read_object(text.substr(from, end - from)).value());
    return out;
  }
};

TEST_F(watches, tell_what_happens_from_a_version_on) {
  create(types::config_maps(), config_map("before"));
  watch_options options;
  options.resource_version = version_now(types::config_maps());
  options.bookmarks = false;
  auto w = open(types::config_maps(), options);
  ASSERT_TRUE(w);
  create(types::config_maps(), config_map("a"));
  EXPECT_EQ(next(w), "added a");
  merge(maps + "/a", R"({"data":{"k":"2"}})");
  EXPECT_EQ(next(w), "modified a");
  remove(maps + "/a");
  EXPECT_EQ(next(w), "deleted a");
  merge(maps + "/before", R"({"data":{"k":"2"}})");
  EXPECT_EQ(next(w), "modified before");
  auto again = open(types::config_maps(), options);
  for (const char* word : {"added a", "modified a", "deleted a", "modified before"}) EXPECT_EQ(next(again), word) << "replayed";
}

TEST_F(watches, what_enters_a_selection_is_added_and_what_leaves_it_deleted) {
  watch_options options;
  options.resource_version = version_now(types::config_maps());
  options.label_selector = "on=yes";
  options.bookmarks = false;
  auto w = open(types::config_maps(), options);
  ASSERT_TRUE(w);
  create(types::config_maps(), config_map("a"));
  merge(maps + "/a", R"({"metadata":{"labels":{"on":"yes"}}})");
  EXPECT_EQ(next(w), "added a");
  merge(maps + "/a", R"({"metadata":{"labels":{"on":"no"}}})");
  EXPECT_EQ(next(w), "deleted a");
  create(types::config_maps(), config_map("b"));
  merge(maps + "/a", R"({"metadata":{"labels":{"on":"yes"}}})");
  EXPECT_EQ(next(w), "added a");
  watch_options named;
  named.resource_version = version_now(types::config_maps());
  named.field_selector = "metadata.name=b";
  named.bookmarks = false;
  auto one = open(types::config_maps(), named);
  merge(maps + "/a", R"({"data":{"k":"3"}})");
  remove(maps + "/b");
  EXPECT_EQ(next(one), "deleted b");
}

TEST_F(watches, end_in_an_orderly_way_after_a_bookmark) {
  create(types::config_maps(), config_map("a"));
  auto version = version_now(types::config_maps());
  auto seen = lines("allowWatchBookmarks=true&timeoutSeconds=4&resourceVersion=" + version);
  ASSERT_FALSE(seen.empty());
  for (const auto& e : seen) {
    EXPECT_EQ(json::get_string(e, {"type"}), "BOOKMARK");
    EXPECT_EQ(json::get_string(e, {"object", "kind"}), "ConfigMap");
    EXPECT_GE(std::stoll(std::string(json::get_string(e, {"object", "metadata", "resourceVersion"}))), std::stoll(version));
  }
  watch_options options;
  options.resource_version = version;
  options.timeout_seconds = 1;
  options.bookmarks = false;
  auto w = open(types::config_maps(), options);
  ASSERT_TRUE(w);
  EXPECT_EQ(next(w), "end");
}

TEST_F(watches, begin_with_what_is_there_when_asked) {
  create(types::config_maps(), config_map("a"));
  create(types::config_maps(), config_map("b"));
  std::map<std::string, int> kinds;
  bool ended = false;
  for (const auto& e : lines("timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
                             "resourceVersion=")) {
    std::string type(json::get_string(e, {"type"}));
    if (type == "BOOKMARK" && json::get_string(e, {"object", "metadata", "annotations", "k8s.io/initial-events-end"}) == "true")
      ended = true;
    if (type == "ADDED") {
      ++kinds[std::string(json::get_string(e, {"object", "metadata", "name"}))];
      EXPECT_FALSE(ended) << "before the mark";
    }
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(kinds["a"], 1);
  EXPECT_EQ(kinds["b"], 1);
  kinds.clear();
  for (const auto& e : lines("timeoutSeconds=1")) ++kinds[std::string(json::get_string(e, {"type"}))];
  EXPECT_EQ(kinds["ADDED"], static_cast<int>(names(types::config_maps()).size())) << "no version: synthetic events first";
  EXPECT_EQ(get(maps + "?watch=true&sendInitialEvents=true&timeoutSeconds=1").status, 422) << "a match is required";
}

TEST_F(watches, from_a_forgotten_version_are_gone) {
  auto event = [&](const std::string& name) {
    return create(types::events(), R"({"apiVersion":"v1","kind":"Event","metadata":{"name":")" + name +
                                       R"("},"involvedObject":{"namespace":"$NS","kind":"Pod","name":"p"},"reason":"R"})");
  };
  watch_options options;
  options.resource_version = std::string(resource_version_of(event("a")));
  options.bookmarks = false;
  event("b");
  event("c");
  auto kept = open(types::events(), options);
  EXPECT_EQ(next(kept), "added b");
  if (!at().compact()) GTEST_SKIP() << "no way to compact";
  auto w = wait(api->watch(types::events(), ns, options));
  std::string outcome = w ? next(std::shared_ptr<watch_stream>(std::move(*w))) : std::string(to_string(w.error().code()));
  EXPECT_EQ(outcome, "gone");
}

TEST_F(watches, of_bad_questions_are_refused) {
  EXPECT_GE(get(maps + "?watch=true&resourceVersion=abc").status, 400) << "400 or, of the real server, 500";
  EXPECT_EQ(get(maps + "?watch=true&labelSelector===&timeoutSeconds=1").status, 400);
  auto none = get("/apis/apps/v1/namespaces/" + ns + "/nothings?watch=true");
  EXPECT_EQ(none.status, 404);
}

}  // namespace
}  // namespace kubeopera::conformance
