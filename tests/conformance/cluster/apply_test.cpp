// Server-side apply: who owns which field, what a conflict says, what goes away when an owner stops asking for it.
#include "cluster_test.hpp"

#include <algorithm>

namespace kubeopera::conformance {
namespace {

using namespace kube;

struct apply_rules : cluster_test {
  result<object> put_in(const std::string& manager, const object& o, bool force = false,
                        const resource_type& type = types::config_maps()) {
    write_options w;
    w.field_manager = manager;
    w.force = force;
    auto named = o;
    json::ensure_object(named, "metadata")["namespace"] = ns;
    return wait(api->apply(type, named, w));
  }
  object map_of(const json::object& data) {
    auto o = make_object(types::config_maps(), {ns, "a"});
    o["data"] = data;
    return o;
  }
  // The fields that a manager owns, as "Operation subresource {…}"; empty where it owns none.
  static std::string owned(const object& o, const std::string& manager) {
    const auto* all = json::get_array(o, {"metadata", "managedFields"});
    std::string out;
    for (std::size_t i = 0; all && i < all->size(); ++i) {
      const auto& m = (*all)[i].as_object();
      if (json::get_string(m, {"manager"}) != manager) continue;
      out += std::string(json::get_string(m, {"operation"})) + " " + std::string(json::get_string(m, {"subresource"})) + " " +
             json::write_canonical(*json::get_object(m, {"fieldsV1"}));
    }
    return out;
  }
};

TEST_F(apply_rules, a_conflict_names_field_and_owner_and_force_takes_it) {
  auto first = put_in("one", map_of({{"k", "1"}, {"own", "x"}}));
  ASSERT_TRUE(first) << to_string(first.error());
  auto again = put_in("one", map_of({{"k", "1"}, {"own", "x"}}));
  ASSERT_TRUE(again);
  EXPECT_EQ(resource_version_of(*again), resource_version_of(*first)) << "nothing changed, nothing is written";
  EXPECT_TRUE(put_in("two", map_of({{"k", "1"}}))) << "the same value is shared";

  auto r = apply(maps + "/a", "three", json::write(map_of({{"k", "3"}})));
  EXPECT_EQ(r.status, 409);
  EXPECT_EQ(r.reason(), "Conflict");
  EXPECT_EQ(r.message(), "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.k\nconflicts with \"two\":\n- .data.k");
  auto causes = r.causes();
  std::sort(causes.begin(), causes.end());  // the real server lists them in any order
  EXPECT_EQ(causes, (std::vector<std::string>{".data.k: conflict with \"one\"", ".data.k: conflict with \"two\""}));
  auto typed = put_in("three", map_of({{"k", "3"}}));
  ASSERT_FALSE(typed);
  EXPECT_EQ(typed.error().code(), errc::conflict);
  auto violations = typed.error().violations();
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].pointer, "/data/k");

  auto forced = put_in("three", map_of({{"k", "3"}}), true);
  ASSERT_TRUE(forced) << to_string(forced.error());
  EXPECT_EQ(forced->at("data"), (json::object{{"k", "3"}, {"own", "x"}}));
  EXPECT_EQ(owned(*forced, "one"), R"(Apply  {"f:data":{"f:own":{}}})");
  EXPECT_EQ(owned(*forced, "two"), "") << "who owns nothing is not listed";
  EXPECT_EQ(owned(*forced, "three"), R"(Apply  {"f:data":{"f:k":{}}})");
}

TEST_F(apply_rules, fields_that_the_last_owner_leaves_out_go_away) {
  ASSERT_TRUE(put_in("one", map_of({{"mine", "1"}, {"ours", "1"}})));
  ASSERT_TRUE(put_in("two", map_of({{"ours", "1"}, {"theirs", "1"}})));
  auto less = put_in("one", map_of({{"new", "1"}}));
  ASSERT_TRUE(less) << to_string(less.error());
  EXPECT_EQ(less->at("data"), (json::object{{"ours", "1"}, {"theirs", "1"}, {"new", "1"}}));
  auto none = put_in("two", make_object(types::config_maps(), {ns, "a"}));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->at("data"), (json::object{{"new", "1"}}));
}

TEST_F(apply_rules, a_list_map_is_shared_item_by_item) {
  auto service = [&](const std::string& ports) {
    return doc(R"({"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"ports":[)" + ports + "]}}");
  };
  const std::string web = R"({"name":"web","port":80,"protocol":"TCP","targetPort":8080})",
                    metrics = R"({"name":"metrics","port":9090,"protocol":"TCP"})";
  ASSERT_TRUE(put_in("one", service(web), false, types::services()));
  auto both = put_in("two", service(metrics), false, types::services());
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_EQ(both->at("spec").at("ports").as_array().size(), 2u);
  EXPECT_EQ(
      owned(*both, "one"),
      R"(Apply  {"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}}}})");
  auto conflict = put_in("two", service(R"({"name":"web","port":80,"protocol":"TCP","targetPort":1})"), false, types::services());
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code(), errc::conflict);
  EXPECT_NE(conflict.error().message().find(R"(.spec.ports[port=80,protocol="TCP"].targetPort)"), std::string::npos)
      << conflict.error().message();
  auto moved = put_in("two", service(R"({"name":"grpc","port":50051,"protocol":"TCP"})"), false, types::services());
  ASSERT_TRUE(moved) << to_string(moved.error());
  std::vector<std::int64_t> ports;
  for (const auto& p : moved->at("spec").at("ports").as_array()) ports.push_back(p.at("port").as_int64());
  std::sort(ports.begin(), ports.end());
  EXPECT_EQ(ports, (std::vector<std::int64_t>{80, 50051})) << "its own item went, the other's stayed";
}

TEST_F(apply_rules, a_plain_write_owns_what_it_changes) {
  ASSERT_TRUE(put_in("one", map_of({{"k", "1"}, {"m", "1"}})));
  auto r = merge(maps + "/a?fieldManager=editor", R"({"data":{"k":"2"}})");
  ASSERT_EQ(r.status, 200) << r.text;
  EXPECT_EQ(owned(r.body, "editor"), R"(Update  {"f:data":{"f:k":{}}})");
  EXPECT_EQ(owned(r.body, "one"), R"(Apply  {"f:data":{"f:m":{}}})");
  auto back = put_in("one", map_of({{"k", "1"}, {"m", "1"}}));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code(), errc::conflict);
  auto scaled = create(types::deployments(), deployment("d", "a:1", 0));
  auto s = merge(apps + "/deployments/d/scale?fieldManager=scaler", R"({"spec":{"replicas":2}})");
  ASSERT_EQ(s.status, 200) << s.text;
  EXPECT_EQ(owned(*find(types::deployments(), "d"), "scaler"), R"(Update scale {"f:spec":{"f:replicas":{}}})");
}

TEST_F(apply_rules, another_uid_is_an_invalid_field_and_no_conflict) {
  create(types::config_maps(), config_map("a"));
  const std::string uid = "00000000-0000-4000-8000-000000000000";
  const std::string body =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"$NS","uid":")" + uid + "\"}}";
  const std::string cause = "metadata.uid: Invalid value: \"" + uid + "\": field is immutable";
  for (const auto& r : {apply(maps + "/a", "one", body), merge(maps + "/a", body), strategic(maps + "/a", body)}) {
    EXPECT_EQ(r.status, 422) << r.text;
    EXPECT_EQ(r.reason(), "Invalid");
    EXPECT_EQ(r.causes(), (std::vector<std::string>{cause, cause}));
    EXPECT_EQ(r.message(), "ConfigMap \"a\" is invalid: " + cause);
  }
  EXPECT_EQ(put(maps + "/a", body).status, 409) << "of a PUT it is a precondition";
  auto fresh =
      apply(maps + "/new", "one", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new","uid":")" + uid + "\"}}");
  EXPECT_EQ(fresh.status, 409) << fresh.text;
}

TEST_F(apply_rules, a_version_in_the_configuration_is_a_precondition) {
  auto made = put_in("one", map_of({{"k", "1"}}));
  ASSERT_TRUE(made);
  auto next = map_of({{"k", "2"}});
  json::ensure_object(next, "metadata")["resourceVersion"] = resource_version_of(*made);
  ASSERT_TRUE(put_in("one", next));
  next["data"] = {{"k", "3"}};
  auto late = put_in("one", next);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), errc::conflict);
}

TEST_F(apply_rules, what_apply_refuses) {
  const std::string map = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}})";
  auto nobody = call("PATCH", maps + "/a", map, "application/apply-patch+yaml");
  EXPECT_EQ(nobody.status, 422);
  EXPECT_EQ(nobody.causes(), (std::vector<std::string>{"fieldManager: Required value: is required for apply patch"}));
  auto other = apply(maps + "/b", "one", map);
  EXPECT_EQ(other.status, 400);
  auto managed = apply(maps + "/a", "one",
                       R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","managedFields":[{"manager":"x"}]}})");
  EXPECT_EQ(managed.status, 400) << managed.text;
  auto forced = call("PATCH", maps + "/a?fieldManager=one&force=true", "{}", "application/merge-patch+json");
  EXPECT_EQ(forced.status, 422) << forced.text;
  auto unknown =
      call("PATCH", maps + "/a?fieldManager=one&fieldValidation=Strict",
           R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dat":{}})", "application/apply-patch+yaml");
  EXPECT_GE(unknown.status, 400) << unknown.text;
  EXPECT_NE(unknown.message().find("dat: field not declared in schema"), std::string::npos) << unknown.message();
  EXPECT_FALSE(find(types::config_maps(), "a"));
}

TEST_F(apply_rules, yaml_is_read_and_nothing_is_stored_by_a_dry_run) {
  auto made =
      apply(maps + "/doc", "one", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: doc\ndata:\n  k: |\n    two\n    lines\n");
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.at({"data", "k"}), "two\nlines\n");
  auto dry = call("PATCH", maps + "/doc?fieldManager=one&dryRun=All", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: doc\n",
                  "application/apply-patch+yaml");
  ASSERT_EQ(dry.status, 200) << dry.text;
  EXPECT_FALSE(dry.body.contains("data"));
  EXPECT_EQ(get(maps + "/doc").at({"metadata", "resourceVersion"}), made.at({"metadata", "resourceVersion"}));
}

}  // namespace
}  // namespace kubeopera::conformance
