// What we render and the CRDs we define, put to the API server: strict field validation, structural schema checks, Pod Security
// admission, and pods that really come up.
#include "tests/unit/testing/sim_rig.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/manifest/render.hpp>
#include <kubeopera/manifest/resources.hpp>
#include <kubeopera/yaml/write.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace kubeopera;
using namespace kubeopera::testing_rig;
namespace fs = std::filesystem;

namespace {

json::value load(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return json::read(text.str()).value();
}

manifest::rendered render(const json::value& app, manifest::render_context context) {
  auto spec = manifest::read_app_spec(app).value();
  manifest::extract_secrets(spec);
  if (context.app_id.empty()) {
    context.app_id = "0190b6f0-0000-7000-8000-000000000001";
    context.revision = 1;
    context.host = spec.domain.value_or(spec.name + "-main.apps.example.com");
  }
  auto r = manifest::render(spec, context);
  EXPECT_TRUE(r.has_value()) << to_string(r.error());
  return r.value();
}

std::string path_of(const json::object& o) {
  static const std::map<std::string, std::string> plurals{{"Namespace", "namespaces"},
                                                          {"ServiceAccount", "serviceaccounts"},
                                                          {"Service", "services"},
                                                          {"Deployment", "deployments"},
                                                          {"Ingress", "ingresses"},
                                                          {"NetworkPolicy", "networkpolicies"},
                                                          {"HorizontalPodAutoscaler", "horizontalpodautoscalers"},
                                                          {"PodDisruptionBudget", "poddisruptionbudgets"}};
  std::string version(json::get_string(o, {"apiVersion"}));
  std::string ns(json::get_string(o, {"metadata", "namespace"}));
  return (version == "v1" ? "/api/" : "/apis/") + version + (ns.empty() ? "" : "/namespaces/" + ns) + "/" +
         plurals.at(std::string(json::get_string(o, {"kind"}))) + "/" + std::string(json::get_string(o, {"metadata", "name"}));
}

// Server-side apply of one file as it stands in the fleet repository; unknown and duplicate fields are errors.
http::response apply_file(rig& r, const json::object& o, const std::string& yaml_text) {
  http::request req("PATCH", path_of(o) + "?fieldManager=flux&force=true&fieldValidation=Strict", yaml_text);
  req.headers.set("Content-Type", "application/apply-patch+yaml");
  auto answer = r.l.wait(r.client->raw(std::move(req)));
  EXPECT_TRUE(answer.has_value()) << to_string(answer.error());
  return answer ? std::move(*answer) : http::response(0);
}

void apply_all(rig& r, const manifest::rendered& out) {
  for (const auto& o : out.objects) {
    auto answer = apply_file(r, o, yaml::write(o));
    EXPECT_TRUE(answer.status == 200 || answer.status == 201)
        << json::get_string(o, {"kind"}) << " " << answer.status << " " << answer.body;
    EXPECT_FALSE(answer.headers.get("Warning").has_value())
        << json::get_string(o, {"kind"}) << " " << *answer.headers.get("Warning");
  }
}

bool available(rig& r, const std::string& app, std::int64_t at_least) {
  auto d = r.get(kube::types::deployments(), app, app);
  return d && json::get_int(*d, {"status", "availableReplicas"}) >= at_least;
}

void create_crds(rig& r) {
  for (const auto& crd : manifest::crds()) {
    auto made = r.l.wait(r.client->create(kube::types::custom_resource_definitions(), crd));
    ASSERT_TRUE(made.has_value()) << to_string(made.error());
    std::string name(kube::name_of(*made));
    ASSERT_TRUE(r.eventually([&] {
      auto now = r.get(kube::types::custom_resource_definitions(), "", name);
      return now && kube::condition_true(*now, "Established");
    })) << name;
    auto now = r.get(kube::types::custom_resource_definitions(), "", name);
    EXPECT_EQ(kube::find_condition(*now, "NonStructuralSchema"), nullptr) << name;
  }
}

kube::object app_object(const manifest::app_resource_spec& spec) {
  auto o = kube::make_object(kube::types::kubeopera_apps(), {"default", "shop"});
  o["spec"] = json::encode(spec);
  return o;
}

manifest::app_resource_spec app_spec_of(const fs::path& golden) {
  manifest::app_resource_spec s;
  s.app_id = "0190b6f0-0000-7000-8000-000000000001";
  s.tenant_id = "0190b6f0-0000-7000-8000-00000000000a";
  s.cloudspace = "main";
  s.tenant_ref = "acme-main";
  s.revision = 1;
  s.host = "shop-main.apps.example.com";
  s.actor = "someone@example.com";
  s.request_id = "r-1";
  s.app = manifest::read_app_spec(load(golden).at("app")).value();
  return s;
}

const fs::path golden_dir = fs::path(KUBEOPERA_TESTS_DIR) / "golden/manifest";

}  // namespace

TEST(manifests_on_the_api_server, every_golden_app_is_taken_without_a_warning) {
  int count = 0;
  for (const auto& e : fs::directory_iterator(golden_dir)) {
    auto input = load(e.path() / "input.json");
    auto context = json::decode<manifest::render_context>(input.at("context")).value();
    context.traffic = manifest::traffic_kind::ingress;  // Gateway API is not part of the server
    rig r;
    auto out = render(input.at("app"), context);
    // Root images are below the level that the namespace warns about: their warning is wanted.
    bool root = out.files.at("namespace.yaml").find("enforce: baseline") != std::string::npos;
    if (!root) apply_all(r, out);
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(manifests_on_the_api_server, pods_of_the_examples_pass_pod_security_and_come_up) {
  rig r;
  for (const char* name : {"1-plain-image", "2-autoscaling-probes", "4-custom-domain"}) {
    auto app = load(fs::path(KUBEOPERA_TESTS_DIR) / "../examples/apps" / (std::string(name) + ".json"));
    apply_all(r, render(app, {}));
    std::string app_name(json::as_view(app.at("name")));
    EXPECT_TRUE(r.eventually([&] { return available(r, app_name, 1); })) << name;
  }
}

TEST(manifests_on_the_api_server, applying_again_changes_nothing) {
  rig r;
  auto out = render(load(fs::path(KUBEOPERA_TESTS_DIR) / "../examples/apps/4-custom-domain.json"), {});
  apply_all(r, out);
  std::map<std::string, std::string> before;
  auto version = [&](const json::object& o) {
    auto answer = r.l.wait(r.client->raw(http::request("GET", path_of(o))));
    auto now = json::read_object(answer->body).value();
    // Controllers write status meanwhile; what must not move is what was applied.
    now.erase("status");
    auto& m = now["metadata"].get_object();
    m.erase("resourceVersion");
    m.erase("managedFields");
    if (auto* a = m.if_contains("annotations")) a->get_object().erase("deployment.kubernetes.io/revision");
    return json::write_canonical(now);
  };
  for (const auto& o : out.objects) before[path_of(o)] = version(o);
  apply_all(r, out);
  for (const auto& o : out.objects) EXPECT_EQ(version(o), before[path_of(o)]) << path_of(o);
}

TEST(crds_on_the_api_server, take_a_full_app_and_give_it_back_as_it_was) {
  rig r;
  create_crds(r);
  auto spec = app_spec_of(golden_dir / "everything/input.json");
  kube::write_options strict;
  strict.strict_validation = true;
  auto made = r.l.wait(r.client->create(kube::types::kubeopera_apps(), app_object(spec), strict));
  ASSERT_TRUE(made.has_value()) << to_string(made.error());
  auto back = json::decode<manifest::app_resource_spec>(made->at("spec"));
  ASSERT_TRUE(back.has_value()) << to_string(back.error());
  EXPECT_EQ(json::write_canonical(json::encode(*back)), json::write_canonical(json::encode(spec)));

  manifest::app_resource_status status;
  status.observedGeneration = 1;
  status.phase = "Ready";
  status.commit = std::string(40, 'a');
  auto& c = status.conditions.emplace_back();
  c.type = "Ready";
  c.status = "True";
  c.reason = "Applied";
  c.lastTransitionTime = "2026-01-31T12:00:00Z";
  c.observedGeneration = 1;
  auto with_status = *made;
  with_status["status"] = json::encode(status);
  kube::write_options sub = strict;
  sub.subresource = "status";
  auto stored = r.l.wait(r.client->replace(kube::types::kubeopera_apps(), with_status, sub));
  ASSERT_TRUE(stored.has_value()) << to_string(stored.error());
  EXPECT_EQ(json::write_canonical(stored->at("status")), json::write_canonical(json::encode(status)));
  EXPECT_EQ(kube::generation_of(*stored), 1);
}

TEST(crds_on_the_api_server, refuse_what_the_structs_refuse) {
  rig r;
  create_crds(r);
  auto spec = app_spec_of(golden_dir / "plain/input.json");
  spec.app.port = 0;
  spec.app.name = "Not A Label";
  spec.revision = 0;
  auto made = r.l.wait(r.client->create(kube::types::kubeopera_apps(), app_object(spec)));
  ASSERT_FALSE(made.has_value());
  auto failure = made.error();
  EXPECT_EQ(failure.code(), errc::invalid_argument);
  EXPECT_EQ(failure.violations().size(), 3u) << to_string(failure);
  auto unknown = app_object(app_spec_of(golden_dir / "plain/input.json"));
  json::ensure_object(json::ensure_object(unknown, "spec"), "app")["replica"] = 2;
  kube::write_options strict;
  strict.strict_validation = true;
  EXPECT_FALSE(r.l.wait(r.client->create(kube::types::kubeopera_apps(), unknown, strict)).has_value());
}

TEST(crds_on_the_api_server, take_a_tenant) {
  rig r;
  create_crds(r);
  manifest::tenant_resource_spec spec;
  spec.tenant_id = "0190b6f0-0000-7000-8000-00000000000a";
  spec.cloudspace = "main";
  spec.display_name = "Acme";
  spec.quota.cpu = "8";
  spec.quota.pods = 50;
  auto o = kube::make_object(kube::types::kubeopera_tenants(), {"default", "acme-main"});
  o["spec"] = json::encode(spec);
  kube::write_options strict;
  strict.strict_validation = true;
  auto made = r.l.wait(r.client->create(kube::types::kubeopera_tenants(), o, strict));
  ASSERT_TRUE(made.has_value()) << to_string(made.error());
}
