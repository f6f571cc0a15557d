// The CRDs are structural and say what the structs say.
#include <kubeopera/json/codec.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/manifest/resources.hpp>

#include <gtest/gtest.h>

#include <set>

using namespace kubeopera;

namespace {

const json::object& schema_of(const json::object& crd) {
  return json::find(json::get_array(crd, {"spec", "versions"})->at(0), {"schema", "openAPIV3Schema"})->get_object();
}

// The rules that apiextensions has for structural schemas, as far as ours could break them.
void expect_structural(const json::object& s, const std::string& at) {
  static const std::set<std::string> known{"type",
                                           "description",
                                           "properties",
                                           "required",
                                           "items",
                                           "additionalProperties",
                                           "enum",
                                           "minimum",
                                           "maximum",
                                           "minLength",
                                           "maxLength",
                                           "maxItems",
                                           "maxProperties",
                                           "pattern",
                                           "format",
                                           "x-kubernetes-list-type",
                                           "x-kubernetes-list-map-keys"};
  for (const auto& m : s) EXPECT_TRUE(known.contains(std::string(m.key()))) << at << " " << m.key();
  auto type = json::get_string(s, {"type"});
  EXPECT_FALSE(type.empty()) << at;
  EXPECT_FALSE(s.contains("properties") && s.contains("additionalProperties")) << at;
  if (type == "object") {
    EXPECT_TRUE(s.contains("properties") || s.contains("additionalProperties") || at == "/metadata") << at;
  }
  if (type == "array") {
    ASSERT_TRUE(s.contains("items")) << at;
  }
  if (auto* p = s.if_contains("properties"))
    for (const auto& m : p->get_object()) expect_structural(m.value().get_object(), at + "/" + std::string(m.key()));
  if (auto* items = s.if_contains("items")) {
    expect_structural(items->get_object(), at + "[]");
    if (auto* keys = s.if_contains("x-kubernetes-list-map-keys"))
      for (const auto& k : keys->get_array()) {
        const auto* required = json::get_array(items->get_object(), {"required"});
        ASSERT_NE(required, nullptr) << at;
        EXPECT_NE(std::find(required->begin(), required->end(), k), required->end()) << at;
      }
  }
  if (auto* more = s.if_contains("additionalProperties")) {
    ASSERT_TRUE(more->is_object()) << at;
    expect_structural(more->get_object(), at + "{}");
  }
}

}  // namespace

TEST(crds, are_structural) {
  auto all = manifest::crds();
  ASSERT_EQ(all.size(), 2u);
  for (const auto& crd : all) {
    expect_structural(schema_of(crd), "");
    EXPECT_EQ(json::write(crd).find("x-kubernetes-preserve-unknown-fields"), std::string::npos);
    EXPECT_NE(json::find(json::get_array(crd, {"spec", "versions"})->at(0), {"subresources", "status"}), nullptr);
  }
  EXPECT_EQ(json::get_string(all[0], {"metadata", "name"}), "kubeoperaapps.apps.kubeopera.io");
  EXPECT_EQ(json::get_string(all[1], {"metadata", "name"}), "kubeoperatenants.tenancy.kubeopera.io");
}

TEST(crds, know_every_member_that_is_written_and_none_that_is_not) {
  auto app = manifest::crds()[0];
  auto spec = json::find(schema_of(app), {"properties", "spec", "properties"})->get_object();
  manifest::app_resource_spec s;
  auto written = json::encode(s);
  for (const auto& m : written.get_object()) EXPECT_TRUE(spec.contains(m.key())) << m.key();
  auto* env = json::find(spec, {"app", "properties", "env", "items", "properties"});
  ASSERT_NE(env, nullptr);
  EXPECT_TRUE(env->get_object().contains("secret_ref"));
  EXPECT_FALSE(env->get_object().contains("secret"));
}

TEST(resources, round_trip) {
  auto text =
      R"({"app_id":"0190b6f0-0000-7000-8000-000000000001","tenant_id":"acme","tenant_ref":"acme-main","revision":2,"host":"shop-acme.apps.example.com",)"
      R"("app":{"name":"shop","image":"nginx","port":80}})";
  auto spec = json::decode<manifest::app_resource_spec>(json::read(text).value());
  ASSERT_TRUE(spec.has_value()) << to_string(spec.error());
  EXPECT_EQ(spec->app.replicas, 1);
  auto again = json::decode<manifest::app_resource_spec>(json::encode(*spec));
  ASSERT_TRUE(again.has_value()) << to_string(again.error());
  EXPECT_EQ(json::write(json::encode(*again)), json::write(json::encode(*spec)));
  auto bad = json::decode<manifest::app_resource_spec>(
      json::read(R"({"app_id":"a","tenant_id":"b","tenant_ref":"C","revision":0,"host":"x","app":{}})").value());
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().violations().size(), 5u) << to_string(bad.error());
}
