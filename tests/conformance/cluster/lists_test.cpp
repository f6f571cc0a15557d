// Lists: pages of one state, what a forgotten page says, selectors, versions, and the forms of a list.
#include "cluster_test.hpp"

#include <kubeopera/crypto/hash.hpp>

#include <algorithm>

namespace kubeopera::conformance {
namespace {

using namespace kube;

struct lists : cluster_test {
  void make_events(int count) {
    for (int i = 0; i < count; ++i) {
      create(types::events(),
             R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e)" + std::to_string(i) +
                 R"("},"involvedObject":{"namespace":"$NS","kind":"Pod","name":"p"},"reason":"R","type":"Normal"})");
    }
  }
  // The names in an answer that is a list.
  static std::vector<std::string> names_in(const answer& a) {
    std::vector<std::string> out;
    const auto* items = json::get_array(a.body, {"items"});
    for (std::size_t i = 0; items && i < items->size(); ++i) out.emplace_back(name_of((*items)[i].as_object()));
    return out;
  }
};

TEST_F(lists, pages_are_of_one_state_and_count_what_remains) {
  for (int i = 0; i < 7; ++i) create(types::config_maps(), config_map("m" + std::to_string(i)));
  auto total = names(types::config_maps()).size();
  auto first = get(maps + "?limit=3");
  ASSERT_EQ(first.status, 200);
  EXPECT_EQ(json::get_int(first.body, {"metadata", "remainingItemCount"}), static_cast<std::int64_t>(total) - 3);
  create(types::config_maps(), config_map("m9"));
  ASSERT_EQ(remove(maps + "/m5").status, 200);
  std::vector<std::string> all = names_in(first);
  auto token = first.at({"metadata", "continue"});
  ASSERT_FALSE(token.empty());
  while (!token.empty()) {
    auto page = get(maps + "?limit=3&continue=" + token);
    ASSERT_EQ(page.status, 200) << page.text;
    EXPECT_EQ(page.at({"metadata", "resourceVersion"}), first.at({"metadata", "resourceVersion"}));
    for (auto& n : names_in(page)) all.push_back(n);
    token = page.at({"metadata", "continue"});
    EXPECT_EQ(json::get_int(page.body, {"metadata", "remainingItemCount"}), static_cast<std::int64_t>(total - all.size()));
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(std::count(all.begin(), all.end(), "m5"), 1) << "removed after the first page";
  EXPECT_EQ(std::count(all.begin(), all.end(), "m9"), 0) << "made after the first page";
  EXPECT_EQ(all.size(), total);
}

TEST_F(lists, a_selector_leaves_the_count_out) {
  for (int i = 0; i < 3; ++i) {
    auto o = config_map("m" + std::to_string(i));
    json::ensure_object(o, "metadata")["labels"] = {{"a", "b"}};
    create(types::config_maps(), o);
  }
  auto page = get(maps + "?limit=1&labelSelector=a%3Db");
  ASSERT_EQ(page.status, 200);
  EXPECT_FALSE(page.at({"metadata", "continue"}).empty());
  EXPECT_EQ(json::find(page.body, {"metadata", "remainingItemCount"}), nullptr);
}

TEST_F(lists, a_page_of_a_forgotten_state_is_gone_and_offers_another) {
  make_events(5);
  list_options options;
  options.limit = 2;
  auto first = wait(api->list(types::events(), ns, options));
  ASSERT_TRUE(first) << to_string(first.error());
  ASSERT_FALSE(first->continue_token.empty());
  make_events(0);
  create(types::config_maps(), config_map("later"));
  if (!at().compact()) GTEST_SKIP() << "no way to compact";
  options.continue_token = first->continue_token;
  auto late = wait(api->list(types::events(), ns, options));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), errc::gone);
  auto said = get(core + "/events?limit=2&continue=" + first->continue_token);
  EXPECT_EQ(said.status, 410);
  EXPECT_EQ(said.reason(), "Expired");
  auto other = said.at({"metadata", "continue"});
  ASSERT_FALSE(other.empty());
  auto rest = get(core + "/events?limit=10&continue=" + other);
  ASSERT_EQ(rest.status, 200) << rest.text;
  EXPECT_EQ(names_in(rest), (std::vector<std::string>{"e2", "e3", "e4"})) << "from where it was, in the state of now";
  auto whole = wait(list_all(*api, types::events(), ns, options));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->items.size(), 5u) << "our client begins again";
}

TEST_F(lists, labels_and_fields_select) {
  auto labelled = [&](const char* name, const char* tier, const char* track) {
    auto o = config_map(name);
    json::ensure_object(o, "metadata")["labels"] = {{"tier", tier}, {"track", track}};
    create(types::config_maps(), o);
  };
  labelled("a", "front", "stable");
  labelled("b", "front", "canary");
  labelled("c", "back", "stable");
  auto chosen = [&](const std::string& query) {
    auto all = names_in(get(maps + "?" + query));
    all.erase(std::remove(all.begin(), all.end(), "kube-root-ca.crt"), all.end());
    return all;
  };
  using list = std::vector<std::string>;
  EXPECT_EQ(chosen("labelSelector=tier%3Dfront"), (list{"a", "b"}));
  EXPECT_EQ(chosen("labelSelector=tier%3D%3Dfront,track!%3Dcanary"), (list{"a"}));
  EXPECT_EQ(chosen("labelSelector=tier%20in%20(front,back),track%20notin%20(canary)"), (list{"a", "c"}));
  EXPECT_EQ(chosen("labelSelector=tier,!none"), (list{"a", "b", "c"}));
  EXPECT_EQ(chosen("labelSelector=!tier"), (list{}));
  EXPECT_EQ(chosen("fieldSelector=metadata.name%3Db"), (list{"b"}));
  EXPECT_EQ(chosen("fieldSelector=metadata.name!%3Db&labelSelector=tier%3Dfront"), (list{"a"}));
  make_events(2);
  auto events = names_in(get(core + "/events?fieldSelector=involvedObject.name%3Dp,reason%3DR,type%3DNormal"));
  EXPECT_EQ(events, (list{"e0", "e1"}));
  EXPECT_EQ(names_in(get(core + "/events?fieldSelector=involvedObject.name%3Dq")), list());
}

TEST_F(lists, bad_selectors_versions_and_tokens_are_refused) {
  struct row {
    const char* query;
    const char* words;
  };
  for (const row& r : {row{"labelSelector=a%3D%3D%3Db", "unable to parse requirement"},
                       row{"labelSelector=a%20in%20b", "unable to parse requirement"},
                       row{"labelSelector=-a%3Db", "unable to parse requirement"},
                       row{"fieldSelector=data.k%3D1", "is not a known field selector"},
                       row{"fieldSelector=metadata.name", "invalid selector"}, row{"limit=x", "invalid syntax"},
                       row{"resourceVersion=abc", "nvalid"}, row{"continue=%21%21", "continue key is not valid"}}) {
    auto a = get(maps + "?" + r.query);
    EXPECT_EQ(a.status, 400) << r.query << ": " << a.text;
    EXPECT_EQ(a.reason(), "BadRequest") << r.query;
    EXPECT_NE(a.message().find(r.words), std::string::npos) << r.query << ": " << a.message();
  }
  list_options options;
  options.label_selector = "===";
  auto typed = wait(api->list(types::config_maps(), ns, options));
  ASSERT_FALSE(typed);
  EXPECT_EQ(typed.error().code(), errc::invalid_argument);
  auto mixed =
      get(maps + "?resourceVersion=1&continue=" + crypto::base64url_encode(R"({"v":"meta.k8s.io/v1","rv":1,"start":"a\u0000"})"));
  EXPECT_EQ(mixed.status, 400) << mixed.text;
}

TEST_F(lists, a_version_says_how_old_a_list_may_be) {
  auto made = create(types::config_maps(), config_map("a"));
  std::string version(resource_version_of(made));
  ASSERT_EQ(remove(maps + "/a").status, 200);
  EXPECT_EQ(get(maps + "?resourceVersion=0").status, 200);
  auto fresh = get(maps + "?resourceVersion=" + version + "&resourceVersionMatch=NotOlderThan");
  EXPECT_EQ(fresh.status, 200);
  auto exact = get(maps + "?fieldSelector=metadata.name%3Da&resourceVersionMatch=Exact&resourceVersion=" + version);
  EXPECT_EQ(exact.status, 200) << exact.text;
  EXPECT_EQ(names_in(exact), (std::vector<std::string>{"a"})) << "as it was then";
  EXPECT_EQ(exact.at({"metadata", "resourceVersion"}), version);
  auto future = get(maps + "?resourceVersion=" + std::to_string(std::stoll(version) + 1'000'000));
  EXPECT_EQ(future.status, 504) << future.text;
  EXPECT_EQ(future.reason(), "Timeout");
  EXPECT_EQ(get(maps + "?resourceVersionMatch=Exact").status, 422) << "a match needs a version";
}

TEST_F(lists, tables_and_metadata_alone) {
  create(types::config_maps(), config_map("a"));
  auto table = call("GET", maps + "/a", {}, {}, "application/json;as=Table;v=v1;g=meta.k8s.io");
  ASSERT_EQ(table.status, 200) << table.text;
  EXPECT_EQ(table.at({"kind"}), "Table");
  EXPECT_EQ(table.at({"apiVersion"}), "meta.k8s.io/v1");
  std::vector<std::string> columns;
  for (const auto& c : table.body.at("columnDefinitions").as_array()) columns.emplace_back(json::as_view(c.at("name")));
  EXPECT_EQ(columns, (std::vector<std::string>{"Name", "Data", "Age"}));
  const auto& row = table.body.at("rows").at(0);
  EXPECT_EQ(row.at("cells").at(0), "a");
  EXPECT_EQ(row.at("cells").at(1), 1);
  EXPECT_EQ(row.at("object").at("kind"), "PartialObjectMetadata");
  create(types::deployments(), deployment("d", "a:1", 0));
  auto wide = call("GET", apps + "/deployments", {}, {}, "application/json;as=Table;v=v1;g=meta.k8s.io, application/json");
  columns.clear();
  for (const auto& c : wide.body.at("columnDefinitions").as_array()) columns.emplace_back(json::as_view(c.at("name")));
  EXPECT_EQ(columns,
            (std::vector<std::string>{"Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"}));
  auto partial = call("GET", maps, {}, {}, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
  ASSERT_EQ(partial.status, 200) << partial.text;
  EXPECT_EQ(partial.at({"kind"}), "PartialObjectMetadataList");
  for (const auto& o : partial.body.at("items").as_array()) EXPECT_FALSE(o.as_object().contains("data"));
}

}  // namespace
}  // namespace kubeopera::conformance
