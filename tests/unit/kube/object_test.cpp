// Lookups in objects, names, and request targets.
#include "src/kube/uri.hpp"

#include <kubeopera/kube/object.hpp>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::kube;

TEST(object, lookups_read_metadata_and_tolerate_its_absence) {
  auto o = boost::json::parse(R"({"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":3,
    "labels":{"app.kubernetes.io/name":"x"},"annotations":{"y":"z"},"deletionTimestamp":"2026-01-01T00:00:00Z"},
    "status":{"conditions":[{"type":"Ready","status":"False"},{"type":"Done","status":"True"}]}})")
               .as_object();
  EXPECT_EQ(key_of(o), (object_key{"n", "a"}));
  EXPECT_EQ(uid_of(o), "u");
  EXPECT_EQ(resource_version_of(o), "7");
  EXPECT_EQ(generation_of(o), 3);
  EXPECT_EQ(label_of(o, "app.kubernetes.io/name"), "x");
  EXPECT_EQ(annotation_of(o, "y"), "z");
  EXPECT_TRUE(being_deleted(o));
  EXPECT_FALSE(condition_true(o, "Ready"));
  EXPECT_TRUE(condition_true(o, "Done"));
  EXPECT_EQ(find_condition(o, "None"), nullptr);

  object bare;
  EXPECT_EQ(key_of(bare), object_key());
  EXPECT_FALSE(being_deleted(bare));
  EXPECT_EQ(find_condition(bare, "Ready"), nullptr);
}

TEST(object, make_object_leaves_the_namespace_of_cluster_kinds_out) {
  EXPECT_TRUE(make_object(types::pods(), {"n", "a"}).at("metadata").as_object().contains("namespace"));
  auto node = make_object(types::nodes(), {"", "a"});
  EXPECT_FALSE(node.at("metadata").as_object().contains("namespace"));
  EXPECT_EQ(node.at("kind"), "Node");
  EXPECT_EQ(make_object(types::deployments(), {"n", "a"}).at("apiVersion"), "apps/v1");
}

TEST(names, labels_and_subdomains) {
  for (auto good : {"a", "a-b", "0", "a1"}) EXPECT_TRUE(is_dns_label(good)) << good;
  for (auto bad : {"", "-a", "a-", "A", "a_b", "a.b", "a/b", "..", "ä"}) EXPECT_FALSE(is_dns_label(bad)) << bad;
  EXPECT_TRUE(is_dns_label(std::string(63, 'a')));
  EXPECT_FALSE(is_dns_label(std::string(64, 'a')));
  for (auto good : {"a.b", "a", "kubeoperaapps.apps.kubeopera.io"}) EXPECT_TRUE(is_dns_subdomain(good)) << good;
  for (auto bad : {"", ".", "..", "a..b", ".a", "a.", "a/../b", "a%2f", "a?b", "a b"}) EXPECT_FALSE(is_dns_subdomain(bad)) << bad;
  EXPECT_FALSE(is_dns_subdomain(std::string(254, 'a')));
}

TEST(uri, paths_of_the_api) {
  EXPECT_EQ(*kube::detail::collection_path(types::pods(), ""), "/api/v1/pods");
  EXPECT_EQ(*kube::detail::collection_path(types::pods(), "n"), "/api/v1/namespaces/n/pods");
  EXPECT_EQ(*kube::detail::object_path(types::deployments(), {"n", "d"}, "scale"),
            "/apis/apps/v1/namespaces/n/deployments/d/scale");
  EXPECT_EQ(*kube::detail::object_path(types::nodes(), {"", "n1"}), "/api/v1/nodes/n1");
  EXPECT_EQ(*kube::detail::object_path(types::namespaces(), {"", "n"}), "/api/v1/namespaces/n");
}

TEST(uri, names_that_could_move_the_request_are_refused) {
  for (auto name : {"", "..", "../secrets/x", "a/exec", "a?container=b", "..%2f..%2fsecrets", "a b", "A"}) {
    auto path = kube::detail::object_path(types::pods(), {"n", name}, "log");
    ASSERT_FALSE(path) << name;
    EXPECT_EQ(path.error().code(), errc::invalid_argument);
    EXPECT_FALSE(kube::detail::object_path(types::pods(), {name, "a"})) << name;
  }
  EXPECT_FALSE(kube::detail::object_path(types::nodes(), {"n", "a"})) << "a namespace for a cluster-scoped kind";
  EXPECT_FALSE(kube::detail::object_path(types::pods(), {"n", "a"}, "../b"));
  resource_type crooked{"a/b", "v1", "pods", "Pod", true};
  EXPECT_FALSE(kube::detail::collection_path(crooked, "n"));
}

TEST(uri, queries_are_encoded_and_empty_values_left_out) {
  kube::detail::query q;
  q.add("labelSelector", "a=b,c in (d)").add("empty", "").add("limit", 5);
  EXPECT_EQ(q.on("/p"), "/p?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
  EXPECT_EQ(kube::detail::query().on("/p"), "/p");
}
