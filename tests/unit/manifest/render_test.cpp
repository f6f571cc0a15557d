// Rendering: golden files byte for byte, and the properties that must hold whatever the spec.
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/render.hpp>
#include <kubeopera/yaml/read.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace kubeopera;
namespace fs = std::filesystem;

namespace {

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

manifest::app_spec spec_of(std::string_view json_text) {
  auto r = manifest::read_app_spec(json::read(json_text).value());
  EXPECT_TRUE(r.has_value()) << to_string(r.error());
  return r.value();
}

manifest::render_context context() {
  manifest::render_context c;
  c.app_id = "0190b6f0-0000-7000-8000-000000000001";
  c.revision = 3;
  c.host = "shop-acme.apps.example.com";
  return c;
}

constexpr const char* plain = R"({"name":"shop","image":"ghcr.io/acme/shop:1.4.2","port":8080})";

const json::object& object_of(const manifest::rendered& r, std::string_view kind) {
  static const json::object none;
  for (const auto& o : r.objects)
    if (json::get_string(o, {"kind"}) == kind) return o;
  return none;
}

std::string pod_annotation(const manifest::rendered& r, std::string_view key) {
  auto* a = json::get_object(object_of(r, "Deployment"), {"spec", "template", "metadata", "annotations"});
  return a ? std::string(json::get_string(*a, {key})) : std::string();
}

class golden : public testing::TestWithParam<std::string> {};

std::vector<std::string> golden_cases() {
  std::vector<std::string> all;
  for (const auto& e : fs::directory_iterator(fs::path(KUBEOPERA_TESTS_DIR) / "golden/manifest"))
    if (e.is_directory()) all.push_back(e.path().filename().string());
  std::sort(all.begin(), all.end());
  return all;
}

// With KUBEOPERA_UPDATE_GOLDEN set the files are written instead; review shows what changed.
TEST_P(golden, files_are_byte_for_byte_as_recorded) {
  auto dir = fs::path(KUBEOPERA_TESTS_DIR) / "golden/manifest" / GetParam();
  auto input = json::read(slurp(dir / "input.json"));
  ASSERT_TRUE(input.has_value()) << to_string(input.error());
  auto spec = manifest::read_app_spec(input->at("app"));
  ASSERT_TRUE(spec.has_value()) << to_string(spec.error());
  auto ctx = json::decode<manifest::render_context>(input->at("context"));
  ASSERT_TRUE(ctx.has_value()) << to_string(ctx.error());
  auto r = manifest::render(*spec, *ctx);
  ASSERT_TRUE(r.has_value()) << to_string(r.error());
  if (std::getenv("KUBEOPERA_UPDATE_GOLDEN")) {
    for (const auto& e : fs::directory_iterator(dir))
      if (e.path().extension() == ".yaml") fs::remove(e.path());
    for (const auto& [name, content] : r->files) std::ofstream(dir / name, std::ios::binary) << content;
  }
  std::size_t recorded = 0;
  for (const auto& e : fs::directory_iterator(dir)) recorded += e.path().extension() == ".yaml" ? 1 : 0;
  EXPECT_EQ(recorded, r->files.size());
  for (const auto& [name, content] : r->files) EXPECT_EQ(content, slurp(dir / name)) << name;
}

INSTANTIATE_TEST_SUITE_P(manifests, golden, testing::ValuesIn(golden_cases()), [](const auto& info) {
  auto name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace

TEST(render, is_deterministic_and_its_yaml_reads_back_as_its_objects) {
  auto spec =
      spec_of(R"({"name":"y","image":"nginx","port":80,"env":[{"name":"A","value":"no"},{"name":"B","value":"line\nline\n"},
                          {"name":"C","value":" 0755 "}],"labels":{"on":"off","team":"1e3"},"replicas":3})");
  auto a = manifest::render(spec, context());
  auto b = manifest::render(spec, context());
  ASSERT_TRUE(a.has_value()) << to_string(a.error());
  EXPECT_EQ(a->files, b->files);
  EXPECT_EQ(a->content_hash, b->content_hash);
  EXPECT_EQ(a->content_hash.size(), 64u);
  auto list = yaml::read(a->files.at("kustomization.yaml")).value();
  auto& names = list.at("resources").get_array();
  ASSERT_EQ(names.size(), a->objects.size());
  ASSERT_EQ(names.size() + 1, a->files.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& text = a->files.at(std::string(json::as_view(names[i])));
    auto back = yaml::read(text);
    ASSERT_TRUE(back.has_value()) << to_string(back.error());
    EXPECT_EQ(json::write(*back), json::write(a->objects[i]));
    EXPECT_EQ(json::write(yaml::read_as_go(text).value()), json::write(a->objects[i]));
  }
}

TEST(render, replicas_are_left_to_the_autoscaler) {
  auto r = manifest::render(
      spec_of(R"({"name":"shop","image":"nginx","port":80,"autoscaling":{"min_replicas":2,"max_replicas":5}})"), context());
  EXPECT_EQ(json::find(object_of(*r, "Deployment"), {"spec", "replicas"}), nullptr);
  EXPECT_EQ(json::get_int(object_of(*r, "HorizontalPodAutoscaler"), {"spec", "maxReplicas"}), 5);
  EXPECT_FALSE(object_of(*r, "PodDisruptionBudget").empty());
}

TEST(render, a_stopped_app_has_no_pods_and_no_autoscaler_but_keeps_the_rest) {
  auto r = manifest::render(
      spec_of(
          R"({"name":"shop","image":"nginx","port":80,"stopped":true,"replicas":4,"autoscaling":{"min_replicas":2,"max_replicas":5}})"),
      context());
  EXPECT_EQ(json::get_int(object_of(*r, "Deployment"), {"spec", "replicas"}, -1), 0);
  EXPECT_TRUE(object_of(*r, "HorizontalPodAutoscaler").empty());
  EXPECT_TRUE(object_of(*r, "PodDisruptionBudget").empty());
  EXPECT_FALSE(object_of(*r, "Ingress").empty());
  EXPECT_FALSE(object_of(*r, "Service").empty());
}

TEST(render, one_replica_has_no_disruption_budget) {
  EXPECT_TRUE(object_of(*manifest::render(spec_of(plain), context()), "PodDisruptionBudget").empty());
}

TEST(render, scaling_keeps_the_template_revision_and_a_new_image_moves_it) {
  auto first = manifest::render(spec_of(plain), context()).value();
  EXPECT_EQ(first.template_revision, 3);
  EXPECT_EQ(pod_annotation(first, manifest::revision_annotation), "3");
  EXPECT_EQ(pod_annotation(first, manifest::template_hash_annotation), first.template_hash);
  auto next = context();
  next.revision = 4;
  next.previous_template_hash = first.template_hash;
  next.previous_template_revision = first.template_revision;
  auto scaled = spec_of(plain);
  scaled.replicas = 5;
  auto second = manifest::render(scaled, next).value();
  EXPECT_EQ(second.template_hash, first.template_hash);
  EXPECT_EQ(pod_annotation(second, manifest::revision_annotation), "3");
  EXPECT_EQ(json::get_string(object_of(second, "Deployment"), {"metadata", "annotations", manifest::revision_annotation}), "4");
  EXPECT_EQ(json::write(*json::find(object_of(second, "Deployment"), {"spec", "template"})),
            json::write(*json::find(object_of(first, "Deployment"), {"spec", "template"})));
  scaled.image = "ghcr.io/acme/shop:1.5.0";
  auto third = manifest::render(scaled, next).value();
  EXPECT_NE(third.template_hash, first.template_hash);
  EXPECT_EQ(pod_annotation(third, manifest::revision_annotation), "4");
}

TEST(render, restart_changes_the_template_and_pause_does_not) {
  auto spec = spec_of(plain);
  auto before = manifest::render(spec, context()).value();
  spec.paused = true;
  auto paused = manifest::render(spec, context()).value();
  EXPECT_EQ(paused.template_hash, before.template_hash);
  EXPECT_TRUE(json::get_bool(object_of(paused, "Deployment"), {"spec", "paused"}));
  spec.restarted_at = "2026-01-31T12:00:00Z";
  EXPECT_NE(manifest::render(spec, context())->template_hash, before.template_hash);
}

TEST(render, tls_of_default_hosts_custom_domains_and_none) {
  auto c = context();
  c.wildcard_tls_secret = "apps-wildcard-tls";
  auto spec = spec_of(plain);
  auto by_default = object_of(*manifest::render(spec, c), "Ingress");
  EXPECT_EQ(json::get_string(json::get_array(by_default, {"spec", "tls"})->at(0).get_object(), {"secretName"}),
            "apps-wildcard-tls");
  EXPECT_EQ(json::find(by_default, {"metadata", "annotations"}), nullptr);
  spec.domain = "shop.example.org";
  c.host = "shop.example.org";
  auto custom = object_of(*manifest::render(spec, c), "Ingress");
  EXPECT_EQ(json::get_string(json::get_array(custom, {"spec", "tls"})->at(0).get_object(), {"secretName"}), "shop-tls");
  EXPECT_EQ(json::get_string(custom, {"metadata", "annotations", "cert-manager.io/cluster-issuer"}), "letsencrypt-dns");
  spec.tls = false;
  EXPECT_EQ(json::find(object_of(*manifest::render(spec, c), "Ingress"), {"spec", "tls"}), nullptr);
}

TEST(render, defaults_of_resources_never_cross) {
  auto amounts = [](const char* resources) {
    auto spec = spec_of(plain);
    spec.resources = json::decode<manifest::resource_settings>(json::read(resources).value()).value();
    auto r = manifest::render(spec, context());
    EXPECT_TRUE(r.has_value()) << to_string(r.error());
    return json::write(
        json::find(object_of(*r, "Deployment"), {"spec", "template", "spec", "containers"})->at(0).at("resources"));
  };
  EXPECT_EQ(
      amounts("{}"),
      R"({"requests":{"cpu":"100m","memory":"128Mi","ephemeral-storage":"64Mi"},"limits":{"cpu":"500m","memory":"256Mi","ephemeral-storage":"2Gi"}})");
  EXPECT_EQ(
      amounts(R"({"requests":{"cpu":"2","memory":"1.5Gi"}})"),
      R"({"requests":{"cpu":"2","memory":"1536Mi","ephemeral-storage":"64Mi"},"limits":{"cpu":"2","memory":"1536Mi","ephemeral-storage":"2Gi"}})");
  EXPECT_EQ(
      amounts(R"({"limits":{"cpu":"0.05","memory":"64Mi"}})"),
      R"({"requests":{"cpu":"50m","memory":"64Mi","ephemeral-storage":"64Mi"},"limits":{"cpu":"50m","memory":"64Mi","ephemeral-storage":"2Gi"}})");
}

TEST(render, gateway_gets_a_route_instead_of_an_ingress) {
  auto c = context();
  c.traffic = manifest::traffic_kind::gateway;
  auto r = manifest::render(spec_of(plain), c).value();
  EXPECT_TRUE(object_of(r, "Ingress").empty());
  EXPECT_EQ(json::get_string(object_of(r, "HTTPRoute"), {"apiVersion"}), "gateway.networking.k8s.io/v1");
  EXPECT_TRUE(r.files.contains("http-route.yaml"));
}

TEST(render, root_images_get_the_baseline_level) {
  auto spec = spec_of(
      R"({"name":"shop","image":"nginx","port":80,"security":{"run_as_non_root":false,"writable_paths":["/var/cache/nginx"]}})");
  auto r = manifest::render(spec, context()).value();
  EXPECT_EQ(json::get_string(object_of(r, "Namespace"), {"metadata", "labels", "pod-security.kubernetes.io/enforce"}),
            "baseline");
  EXPECT_EQ(json::find(object_of(r, "Deployment"), {"spec", "template", "spec", "securityContext", "runAsNonRoot"}), nullptr);
}

TEST(render, errors) {
  auto spec = spec_of(plain);
  spec.port = 0;
  EXPECT_EQ(manifest::render(spec, context()).error().reason(), "InvalidApp");
  auto c = context();
  c.host = "bad host";
  c.app_id = "";
  auto failure = manifest::render(spec_of(plain), c).error();
  EXPECT_EQ(failure.reason(), "InvalidContext");
  EXPECT_EQ(failure.violations().size(), 2u);
  auto unbuilt = spec_of(R"({"name":"shop","port":80,"source":{"repository":"https://github.com/acme/shop"}})");
  EXPECT_EQ(manifest::render(unbuilt, context()).error().reason(), "NoImage");
  c = context();
  c.image = "registry.example.com/acme/shop@sha256:" + std::string(64, 'b');
  EXPECT_TRUE(manifest::render(unbuilt, c).has_value());
  auto leaking = spec_of(R"({"name":"shop","image":"nginx","port":80,"env":[{"name":"A","secret":"x"}]})");
  EXPECT_EQ(manifest::render(leaking, context()).error().reason(), "SecretNotExtracted");
}

TEST(input_hash, equal_exactly_when_what_render_sees_is_equal) {
  auto spec = spec_of(plain);
  auto same = spec_of(R"({"port":8080,"image":"ghcr.io/acme/shop:1.4.2","name":"shop"})");
  EXPECT_EQ(manifest::input_hash(spec, context()), manifest::input_hash(same, context()));
  auto c = context();
  c.revision = 4;
  EXPECT_NE(manifest::input_hash(spec, context()), manifest::input_hash(spec, c));
  same.env.emplace_back().name = "A";
  EXPECT_NE(manifest::input_hash(spec, context()), manifest::input_hash(same, context()));
}
