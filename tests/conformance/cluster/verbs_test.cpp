// The verbs of the API as the client has them: what is stored, what is answered, what is not stored.
#include "cluster_test.hpp"

#include <algorithm>

namespace kubeopera::conformance {
namespace {

using namespace kube;
using verbs = cluster_test;

TEST_F(verbs, objects_are_made_read_replaced_and_removed) {
  auto made = create(types::config_maps(), config_map("a"));
  EXPECT_FALSE(uid_of(made).empty());
  EXPECT_EQ(wait(api->create(types::config_maps(), config_map("a"))).error().code(), errc::already_exists);
  auto got = wait(api->get(types::config_maps(), {ns, "a"}));
  ASSERT_TRUE(got);
  EXPECT_EQ(json::write_canonical(*got), json::write_canonical(made)) << "read as it was answered";

  auto changed = *got;
  changed["data"].as_object()["k"] = "2";
  auto replaced = wait(api->replace(types::config_maps(), changed));
  ASSERT_TRUE(replaced) << to_string(replaced.error());
  EXPECT_NE(resource_version_of(*replaced), resource_version_of(made));
  EXPECT_EQ(uid_of(*replaced), uid_of(made));
  auto late = wait(api->replace(types::config_maps(), changed));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), errc::conflict);
  auto same = wait(api->replace(types::config_maps(), *replaced));
  ASSERT_TRUE(same);
  EXPECT_EQ(resource_version_of(*same), resource_version_of(*replaced)) << "nothing changed, nothing is written";

  ASSERT_TRUE(wait(api->remove(types::config_maps(), {ns, "a"})));
  EXPECT_EQ(wait(api->remove(types::config_maps(), {ns, "a"})).error().code(), errc::not_found);
  EXPECT_EQ(wait(api->get(types::config_maps(), {ns, "a"})).error().code(), errc::not_found);
}

TEST_F(verbs, patches_of_each_kind) {
  create(types::config_maps(), config_map("a"));
  auto merged =
      wait(api->patch(types::config_maps(), {ns, "a"}, patch_kind::merge, json::object{{"data", {{"k", nullptr}, {"m", "x"}}}}));
  ASSERT_TRUE(merged) << to_string(merged.error());
  EXPECT_EQ(merged->at("data"), (json::object{{"m", "x"}}));
  json::array ops{json::object{{"op", "test"}, {"path", "/data/m"}, {"value", "x"}},
                  json::object{{"op", "add"}, {"path", "/data/n"}, {"value", "y"}},
                  json::object{{"op", "move"}, {"from", "/data/m"}, {"path", "/data/o"}}};
  auto patched = wait(api->patch(types::config_maps(), {ns, "a"}, patch_kind::json_patch, ops));
  ASSERT_TRUE(patched) << to_string(patched.error());
  EXPECT_EQ(json::write_canonical(patched->at("data")), R"({"n":"y","o":"x"})");
  json::array wrong{json::object{{"op", "test"}, {"path", "/data/n"}, {"value", "other"}}};
  auto refused = wait(api->patch(types::config_maps(), {ns, "a"}, patch_kind::json_patch, wrong));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), errc::invalid_argument);

  create(types::deployments(), deployment("d", "a:1", 0));
  auto both = strategic(apps + "/deployments/d", R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"a:2"},)"
                                                 R"({"name":"side","image":"b:1"}]}}}})");
  ASSERT_EQ(both.status, 200) << both.text;
  const auto* containers = json::get_array(both.body, {"spec", "template", "spec", "containers"});
  ASSERT_TRUE(containers && containers->size() == 2) << "merged by name";
  auto one =
      strategic(apps + "/deployments/d", R"({"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}})");
  containers = json::get_array(one.body, {"spec", "template", "spec", "containers"});
  ASSERT_TRUE(containers && containers->size() == 1) << one.text;
  EXPECT_EQ(json::get_string((*containers)[0].as_object(), {"image"}), "a:2");
}

TEST_F(verbs, the_status_is_written_apart_from_the_rest) {
  create(types::deployments(), deployment("d", "a:1", 0, R"("paused":true,)"));
  auto settled = wait_for(types::deployments(), "d",
                          [](const object& o) { return json::get_int(o, {"status", "observedGeneration"}) == 1; });
  ASSERT_TRUE(settled);
  auto r = merge(apps + "/deployments/d/status",
                 R"({"spec":{"replicas":9},"status":{"conditions":[{"type":"Custom","status":"True","reason":"R"}]}})");
  ASSERT_EQ(r.status, 200) << r.text;
  EXPECT_EQ(json::get_int(r.body, {"spec", "replicas"}), 0);
  EXPECT_EQ(json::get_int(r.body, {"metadata", "generation"}), 1);
  const auto* custom = find_condition(r.body, "Custom");
  ASSERT_TRUE(custom) << r.text;
  auto main = merge(apps + "/deployments/d", R"({"metadata":{"labels":{"a":"b"}},"status":{"replicas":77}})");
  ASSERT_EQ(main.status, 200) << main.text;
  EXPECT_NE(json::get_int(main.body, {"status", "replicas"}), 77);
  EXPECT_EQ(json::get_string(main.body, {"metadata", "labels", "a"}), "b");
}

TEST_F(verbs, the_generation_counts_changes_of_the_specification) {
  create(types::deployments(), deployment("d", "a:1", 0));
  auto generation = [](const answer& a) { return json::get_int(a.body, {"metadata", "generation"}); };
  EXPECT_EQ(generation(merge(apps + "/deployments/d", R"({"metadata":{"labels":{"a":"b"}}})")), 1);
  EXPECT_EQ(generation(merge(apps + "/deployments/d", R"({"spec":{"minReadySeconds":1}})")), 2);
  EXPECT_EQ(generation(merge(apps + "/deployments/d", R"({"spec":{"minReadySeconds":1}})")), 2);
  EXPECT_EQ(generation(get(apps + "/deployments/d")), 2);
}

TEST_F(verbs, a_collection_is_removed_by_its_selector) {
  for (const char* n : {"a", "b", "c"}) {
    auto o = config_map(n);
    json::ensure_object(o, "metadata")["labels"] = {{"group", std::string(n) == "c" ? "two" : "one"}};
    create(types::config_maps(), o);
  }
  auto dry = remove(maps + "?labelSelector=group%3Done", R"({"dryRun":["All"]})");
  EXPECT_EQ(dry.status, 200) << dry.text;
  EXPECT_EQ(names(types::config_maps(), "group").size(), 3u) << "a dry run removes nothing";
  auto gone = remove(maps + "?labelSelector=group%3Done");
  ASSERT_EQ(gone.status, 200) << gone.text;
  EXPECT_EQ(gone.at({"kind"}), "ConfigMapList");
  const auto* items = json::get_array(gone.body, {"items"});
  ASSERT_TRUE(items);
  EXPECT_EQ(items->size(), 2u);
  EXPECT_EQ(names(types::config_maps(), "group"), (std::vector<std::string>{"c"}));
}

TEST_F(verbs, names_are_generated) {
  std::vector<std::string> all;
  for (int i = 0; i < 3; ++i) {
    auto made = post(maps, R"({"metadata":{"generateName":"job-"}})");
    ASSERT_EQ(made.status, 201) << made.text;
    auto name = made.at({"metadata", "name"});
    EXPECT_EQ(name.size(), 9u) << name;
    EXPECT_EQ(name.substr(0, 4), "job-");
    EXPECT_EQ(made.at({"metadata", "generateName"}), "job-");
    all.push_back(name);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  auto none = post(maps, R"({"metadata":{}})");
  EXPECT_EQ(none.status, 422);
  EXPECT_EQ(none.causes(), (std::vector<std::string>{"metadata.name: Required value: name or generateName is required"}));
}

TEST_F(verbs, preconditions_of_a_delete) {
  auto made = create(types::config_maps(), config_map("a"));
  delete_options wrong;
  wrong.uid = "00000000-0000-4000-8000-000000000000";
  auto no = wait(api->remove(types::config_maps(), {ns, "a"}, wrong));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code(), errc::conflict);
  delete_options stale;
  stale.resource_version = std::string(resource_version_of(made));
  auto changed = merge(maps + "/a", R"({"data":{"k":"2"}})");
  no = wait(api->remove(types::config_maps(), {ns, "a"}, stale));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code(), errc::conflict);
  auto said = remove(maps + "/a", R"({"preconditions":{"resourceVersion":")" + stale.resource_version + "\"}}");
  EXPECT_EQ(said.status, 409);
  EXPECT_NE(said.message().find("the ResourceVersion in the precondition (" + stale.resource_version +
                                ") does not match the ResourceVersion in record (" + changed.at({"metadata", "resourceVersion"})),
            std::string::npos)
      << said.message();
  delete_options right;
  right.uid = std::string(uid_of(made));
  right.resource_version = changed.at({"metadata", "resourceVersion"});
  EXPECT_TRUE(wait(api->remove(types::config_maps(), {ns, "a"}, right)));
}

TEST_F(verbs, a_dry_run_stores_nothing) {
  write_options dry;
  dry.dry_run = true;
  auto made = wait(api->create(types::config_maps(), config_map("new"), dry));
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_FALSE(uid_of(*made).empty());
  EXPECT_FALSE(find(types::config_maps(), "new"));

  auto kept = create(types::config_maps(), config_map("old"));
  EXPECT_EQ(wait(api->create(types::config_maps(), config_map("old"), dry)).error().code(), errc::already_exists);
  auto changed = kept;
  changed["data"].as_object()["k"] = "2";
  auto replaced = wait(api->replace(types::config_maps(), changed, dry));
  ASSERT_TRUE(replaced);
  EXPECT_EQ(replaced->at("data").at("k"), "2");
  auto patched = wait(api->patch(types::config_maps(), {ns, "old"}, patch_kind::merge, json::object{{"data", nullptr}}, dry));
  ASSERT_TRUE(patched);
  auto applied = wait(api->apply(types::config_maps(), config_map("other"), dry));
  ASSERT_TRUE(applied) << to_string(applied.error());
  EXPECT_EQ(remove(maps + "/old?dryRun=All").status, 200);
  EXPECT_EQ(remove(maps + "/old", R"({"dryRun":["All"]})").status, 200);
  auto now = find(types::config_maps(), "old");
  ASSERT_TRUE(now);
  EXPECT_EQ(json::write_canonical(*now), json::write_canonical(kept));
  EXPECT_FALSE(find(types::config_maps(), "other"));
  EXPECT_EQ(post(maps + "?dryRun=Some", "{}").status, 422);
}

TEST_F(verbs, what_was_left_out_gets_its_default) {
  auto d = create(types::deployments(), deployment("d", "a", 0));
  auto text = [&](const object& o, std::initializer_list<std::string_view> path) {
    return std::string(json::get_string(o, path));
  };
  EXPECT_EQ(text(d, {"spec", "strategy", "type"}), "RollingUpdate");
  EXPECT_EQ(text(d, {"spec", "strategy", "rollingUpdate", "maxSurge"}), "25%");
  EXPECT_EQ(json::get_int(d, {"spec", "revisionHistoryLimit"}), 10);
  EXPECT_EQ(json::get_int(d, {"spec", "progressDeadlineSeconds"}), 600);
  const auto& pod = d.at("spec").at("template").at("spec").as_object();
  EXPECT_EQ(text(pod, {"restartPolicy"}), "Always");
  EXPECT_EQ(text(pod, {"dnsPolicy"}), "ClusterFirst");
  EXPECT_EQ(text(pod, {"schedulerName"}), "default-scheduler");
  EXPECT_EQ(json::get_int(pod, {"terminationGracePeriodSeconds"}), 30);
  const auto& c = pod.at("containers").at(0).as_object();
  EXPECT_EQ(text(c, {"imagePullPolicy"}), "Always") << "no tag means latest";
  EXPECT_EQ(text(c, {"terminationMessagePath"}), "/dev/termination-log");

  auto s = create(types::services(), R"({"metadata":{"name":"s"},"spec":{"selector":{"a":"b"},"ports":[{"port":80}]}})");
  EXPECT_EQ(text(s, {"spec", "type"}), "ClusterIP");
  EXPECT_EQ(text(s, {"spec", "sessionAffinity"}), "None");
  EXPECT_FALSE(text(s, {"spec", "clusterIP"}).empty());
  EXPECT_EQ(s.at("spec").at("ports").at(0).at("protocol"), "TCP");
  EXPECT_EQ(s.at("spec").at("ports").at(0).at("targetPort"), 80);
}

TEST_F(verbs, fields_that_are_not_known_are_refused_told_or_dropped) {
  const std::string body = R"({"metadata":{"name":"$N"},"data":{"a":"b"},"dat":{},"data":{"a":"c"}})";
  auto named = [&](const std::string& name) {
    auto out = body;
    return out.replace(out.find("$N"), 2, name);
  };
  auto strict = post(maps + "?fieldValidation=Strict", named("strict"));
  EXPECT_EQ(strict.status, 400);
  EXPECT_EQ(strict.reason(), "BadRequest");
  EXPECT_NE(strict.message().find(R"(unknown field "dat")"), std::string::npos) << strict.message();
  EXPECT_NE(strict.message().find(R"(duplicate field "data")"), std::string::npos) << strict.message();
  auto warned = post(maps + "?fieldValidation=Warn", named("warned"));
  EXPECT_EQ(warned.status, 201) << warned.text;
  EXPECT_EQ(warned.headers.count("Warning"), 2u) << warned.warning();
  auto ignored = post(maps + "?fieldValidation=Ignore", named("ignored"));
  EXPECT_EQ(ignored.status, 201) << ignored.text;
  EXPECT_EQ(ignored.headers.count("Warning"), 0u);
  EXPECT_EQ(ignored.at({"data", "a"}), "c") << "of duplicate keys the last one counts";
  EXPECT_FALSE(ignored.body.contains("dat"));
  EXPECT_EQ(post(maps + "?fieldValidation=Sometimes", named("x")).status, 422);
}

}  // namespace
}  // namespace kubeopera::conformance
