// What a spec may say. Each refusal has its accepted twin, and names the field.
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/app_spec.hpp>

#include <gtest/gtest.h>

#include <algorithm>

using namespace kubeopera;

namespace {

json::object base() { return json::read_object(R"({"name":"shop","image":"ghcr.io/acme/shop:1.4.2","port":8080})").value(); }

struct refusal {
  std::string patch;    // JSON object of fields that replace those of base()
  const char* pointer;  // of the violation
  std::string twin;
};

void PrintTo(const refusal& r, std::ostream* out) { *out << r.patch; }

json::value patched(std::string_view patch) {
  auto spec = base();
  auto changes = json::read(patch).value();
  for (auto& m : changes.get_object()) spec[m.key()] = m.value();
  return spec;
}

std::vector<std::string> pointers(const json::value& v) {
  std::vector<std::string> out;
  auto r = manifest::read_app_spec(v);
  if (r) return out;
  auto failure = r.error();
  for (const auto& x : failure.violations()) out.push_back(x.pointer);
  return out;
}

std::string digest() { return "sha256:" + std::string(64, 'a'); }

std::vector<refusal> refusals() {
  return {
      {R"({"name":"Shop"})", "/name", R"({"name":"shop-2"})"},
      {R"({"name":"2shop"})", "/name", R"({"name":"shop2"})"},
      {R"({"name":"shop-"})", "/name", R"({"name":"s"})"},
      {R"({"name":"..\/x"})", "/name", R"({"name":"x"})"},
      {R"({"name":"kube-system"})", "/name", R"({"name":"cube"})"},
      {R"({"name":"kube-public"})", "/name", R"({"name":"kubes"})"},
      {R"({"name":"default"})", "/name", R"({"name":"defaults"})"},
      {R"({"name":"flux-system"})", "/name", R"({"name":"flux"})"},
      {R"({"name":")" + std::string(54, 'a') + R"("})", "/name", R"({"name":")" + std::string(53, 'a') + R"("})"},
      {R"({"image":""})", "/image", R"({"image":"","source":{"repository":"https://github.com/a/b"}})"},
      {R"({"image":"nginx latest"})", "/image", R"({"image":"nginx:latest"})"},
      {R"({"image":"Nginx"})", "/image", R"({"image":"nginx"})"},
      {R"({"image":"ghcr.io/a//b"})", "/image", R"({"image":"ghcr.io/a/b"})"},
      {R"({"image":"a/b:"})", "/image", R"({"image":"a/b:1"})"},
      {R"({"image":"a/b@sha256:12"})", "/image", R"({"image":"a/b@)" + digest() + R"("})"},
      {R"({"image":"a/b:1@sha256:zz"})", "/image", R"({"image":"a/b:1@)" + digest() + R"("})"},
      {R"({"image":"reg.io:99999/a"})", "/image", R"({"image":"reg.io:5000/a"})"},
      {R"({"image":"reg.io:05000/a"})", "/image", R"({"image":"reg.io:65535/a"})"},
      {R"({"image":"https://ghcr.io/a"})", "/image", R"({"image":"localhost/a__b.c--d"})"},
      {R"({"image":"{{x}}"})", "/image", R"({"image":"x"})"},
      {R"({"port":0})", "/port", R"({"port":1})"},
      {R"({"port":65536})", "/port", R"({"port":65535})"},
      {R"({"port":"80"})", "/port", R"({"port":80})"},
      {R"({"ports":[{"name":"http","port":9090}]})", "/ports/0/name", R"({"ports":[{"name":"metrics","port":9090}]})"},
      {R"({"ports":[{"name":"a","port":1},{"name":"a","port":2}]})", "/ports/1/name",
       R"({"ports":[{"name":"a","port":1},{"name":"b","port":2}]})"},
      {R"({"ports":[{"name":"a","port":8080}]})", "/ports/0/port", R"({"ports":[{"name":"a","port":8080,"protocol":"UDP"}]})"},
      {R"({"ports":[{"name":"a","port":80}]})", "/ports/0/port", R"({"ports":[{"name":"a","port":81}]})"},
      {R"({"ports":[{"name":"123","port":81}]})", "/ports/0/name", R"({"ports":[{"name":"p123","port":81}]})"},
      {R"({"ports":[{"name":"a","port":81,"protocol":"SCTP"}]})", "/ports/0/protocol",
       R"({"ports":[{"name":"a","port":81,"protocol":"TCP"}]})"},
      {R"({"replicas":201})", "/replicas", R"({"replicas":200})"},
      {R"({"replicas":-1})", "/replicas", R"({"replicas":0})"},
      {R"({"autoscaling":{"min_replicas":3,"max_replicas":2}})", "/autoscaling/max_replicas",
       R"({"autoscaling":{"min_replicas":3,"max_replicas":3}})"},
      {R"({"autoscaling":{"min_replicas":2}})", "/autoscaling/max_replicas", R"({"autoscaling":{"max_replicas":2}})"},
      {R"({"autoscaling":{"max_replicas":2,"cpu_percent":0}})", "/autoscaling/cpu_percent",
       R"({"autoscaling":{"max_replicas":2,"cpu_percent":1}})"},
      {R"({"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]})", "/env/1/name",
       R"({"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]})"},
      {R"({"env":[{"name":"1A","value":"1"}]})", "/env/0/name", R"({"env":[{"name":"A1","value":"1"}]})"},
      {R"({"env":[{"name":"A-B","value":"1"}]})", "/env/0/name", R"({"env":[{"name":"A_B","value":"1"}]})"},
      {R"({"env":[{"name":"KUBERNETES_SERVICE_HOST","value":"1"}]})", "/env/0/name",
       R"({"env":[{"name":"KUBERNETES","value":"1"}]})"},
      {R"({"env":[{"name":"A"}]})", "/env/0", R"({"env":[{"name":"A","value":""}]})"},
      {R"({"env":[{"name":"A","value":"1","secret":"2"}]})", "/env/0", R"({"env":[{"name":"A","secret":"2"}]})"},
      {R"({"env":[{"name":"A","value":"x\u0000"}]})", "/env/0/value", R"({"env":[{"name":"A","value":"x\n"}]})"},
      {R"({"env":[{"name":"A","value":")" + std::string(32769, 'x') + R"("}]})", "/env/0/value",
       R"({"env":[{"name":"A","value":")" + std::string(32768, 'x') + R"("}]})"},
      {R"({"env":[{"name":"A","secret_ref":{"name":"A_b","key":"k"}}]})", "/env/0/secret_ref/name",
       R"({"env":[{"name":"A","secret_ref":{"name":"a-b","key":"k"}}]})"},
      {R"({"env":[{"name":"A","secret_ref":{"name":"a","key":"..\/k"}}]})", "/env/0/secret_ref/key",
       R"({"env":[{"name":"A","secret_ref":{"name":"a","key":".k_K-1"}}]})"},
      {R"({"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}})", "/resources/limits/cpu",
       R"({"resources":{"requests":{"cpu":"1000m"},"limits":{"cpu":"1"}}})"},
      {R"({"resources":{"requests":{"memory":"1Gi"},"limits":{"memory":"1G"}}})", "/resources/limits/memory",
       R"({"resources":{"requests":{"memory":"1G"},"limits":{"memory":"1Gi"}}})"},
      {R"({"resources":{"requests":{"memory":"128m"}}})", "/resources/requests/memory",
       R"({"resources":{"requests":{"memory":"128Mi"}}})"},
      {R"({"resources":{"limits":{"memory":"1Ti"}}})", "/resources/limits/memory",
       R"({"resources":{"limits":{"memory":"512Gi"}}})"},
      {R"({"resources":{"limits":{"cpu":"1E30"}}})", "/resources/limits/cpu", R"({"resources":{"limits":{"cpu":"6.4e1"}}})"},
      {R"({"resources":{"limits":{"cpu":"-1"}}})", "/resources/limits/cpu", R"({"resources":{"limits":{"cpu":"1"}}})"},
      {R"({"resources":{"limits":{"cpu":"0.1n"}}})", "/resources/limits/cpu", R"({"resources":{"limits":{"cpu":"1m"}}})"},
      {R"({"resources":{"limits":{"cpu":1}}})", "/resources/limits/cpu", R"({"resources":{"limits":{"cpu":"1"}}})"},
      {R"({"resources":{"limits":{"nvidia.com/gpu":"1"}}})", "/resources/limits/nvidia.com~1gpu",
       R"({"resources":{"limits":{}}})"},
      {R"({"health":{"readiness":{}}})", "/health/readiness", R"({"health":{"readiness":{"tcp":{}}}})"},
      {R"({"health":{"readiness":{"tcp":{},"http":{}}}})", "/health/readiness", R"({"health":{"readiness":{"http":{}}}})"},
      {R"({"health":{"liveness":{"tcp":{},"success_threshold":2}}})", "/health/liveness/success_threshold",
       R"({"health":{"readiness":{"tcp":{},"success_threshold":2}}})"},
      {R"({"health":{"readiness":{"http":{"path":"healthz"}}}})", "/health/readiness/http/path",
       R"({"health":{"readiness":{"http":{"path":"/healthz"}}}})"},
      {R"({"health":{"readiness":{"http":{"host":"10.0.0.1"}}}})", "/health/readiness/http/host",
       R"({"health":{"readiness":{"http":{"port":9090}}}})"},
      {R"({"health":{"startup":{"exec":{"command":[]}}}})", "/health/startup/exec/command",
       R"({"health":{"startup":{"exec":{"command":["true"]}}}})"},
      {R"({"health":{"readiness":{"tcp":{},"period_seconds":0}}})", "/health/readiness/period_seconds",
       R"({"health":{"readiness":{"tcp":{},"period_seconds":1}}})"},
      {R"({"domain":"localhost"})", "/domain", R"({"domain":"shop.example.com"})"},
      {R"({"domain":"10.0.0.1"})", "/domain", R"({"domain":"10.example.com"})"},
      {R"({"domain":"0x7f.0x1"})", "/domain", R"({"domain":"0x7f.x1"})"},
      {R"({"domain":"*.example.com"})", "/domain", R"({"domain":"xn--bcher-kva.example"})"},
      {R"({"domain":"Shop.example.com"})", "/domain", R"({"domain":"a.b"})"},
      {R"({"source":{"repository":"http://github.com/a/b"}})", "/source/repository",
       R"({"source":{"repository":"https://github.com/a/b.git"}})"},
      {R"({"source":{"repository":"https://user:pass@github.com/a/b"}})", "/source/repository",
       R"({"source":{"repository":"https://git.example.com:8443/~a/b"}})"},
      {R"({"source":{"repository":"https://github.com:0443/a"}})", "/source/repository",
       R"({"source":{"repository":"https://github.com:443/a"}})"},
      {R"({"source":{"repository":"https://github.com/a/../b"}})", "/source/repository",
       R"({"source":{"repository":"https://github.com/a/b"}})"},
      {R"({"source":{"repository":"https://github.com/a/b","dockerfile":"../Dockerfile"}})", "/source/dockerfile",
       R"({"source":{"repository":"https://github.com/a/b","dockerfile":"deploy/Dockerfile.prod"}})"},
      {R"({"source":{"repository":"https://github.com/a/b","context":"/etc"}})", "/source/context",
       R"({"source":{"repository":"https://github.com/a/b","context":"services/shop"}})"},
      {R"({"source":{"repository":"https://github.com/a/b","revision":"--upload-pack=x"}})", "/source/revision",
       R"({"source":{"repository":"https://github.com/a/b","revision":"release/1.2"}})"},
      {R"({"registry_credentials":"A B"})", "/registry_credentials", R"({"registry_credentials":"ghcr"})"},
      {R"({"strategy":{"max_surge":"0"}})", "/strategy/max_surge", R"({"strategy":{"max_surge":"0","max_unavailable":"1"}})"},
      {R"({"strategy":{"max_surge":"101%"}})", "/strategy/max_surge", R"({"strategy":{"max_surge":"100%"}})"},
      {R"({"strategy":{"type":"canary"}})", "/strategy/type", R"({"strategy":{"type":"rolling"}})"},
      {R"({"security":{"run_as_user":0}})", "/security/run_as_user", R"({"security":{"run_as_user":0,"run_as_non_root":false}})"},
      {R"({"security":{"writable_paths":["/proc/x"]}})", "/security/writable_paths/0",
       R"({"security":{"writable_paths":["/var/cache/nginx"]}})"},
      {R"({"security":{"writable_paths":["/a/../etc"]}})", "/security/writable_paths/0",
       R"({"security":{"writable_paths":["/a/etc"]}})"},
      {R"({"security":{"writable_paths":["/a","/a"]}})", "/security/writable_paths/1",
       R"({"security":{"writable_paths":["/a","/b"]}})"},
      {R"({"security":{"privileged":true}})", "/security/privileged", R"({"security":{"read_only_root_filesystem":false}})"},
      {R"({"labels":{"kubeopera.io/app-id":"x"}})", "/labels/kubeopera.io~1app-id", R"({"labels":{"team":"x"}})"},
      {R"({"labels":{"team":"a b"}})", "/labels/team", R"({"labels":{"team":"a_b"}})"},
      {R"({"args":["a\u0000"]})", "/args/0", R"({"args":["a"]})"},
      {R"({"restarted_at":"2026-13-01T00:00:00Z"})", "/restarted_at", R"({"restarted_at":"2026-12-01T00:00:00.123Z"})"},
      {R"({"replica":2})", "/replica", R"({"replicas":2})"},
      {R"({"stopped":1})", "/stopped", R"({"stopped":true})"},
      {R"({"termination_grace_seconds":3601})", "/termination_grace_seconds", R"({"termination_grace_seconds":3600})"},
  };
}

class spec_refusal : public testing::TestWithParam<refusal> {};

TEST_P(spec_refusal, names_the_field_and_has_an_accepted_twin) {
  auto bad = pointers(patched(GetParam().patch));
  EXPECT_TRUE(bad.size() == 1 && bad[0] == GetParam().pointer) << testing::PrintToString(bad);
  auto good = manifest::read_app_spec(patched(GetParam().twin));
  EXPECT_TRUE(good.has_value()) << to_string(good.error());
}

INSTANTIATE_TEST_SUITE_P(specs, spec_refusal, testing::ValuesIn(refusals()));

}  // namespace

TEST(app_spec, everything_that_is_wrong_is_told_at_once) {
  auto bad = pointers(json::read(R"({"name":"X","port":0,"replicas":"2","env":[{"name":"A"},{"name":"A","value":"1"}],"nope":1,
                                     "resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1","memory":"x"}}})")
                          .value());
  std::sort(bad.begin(), bad.end());
  EXPECT_EQ(bad, (std::vector<std::string>{"/env/0", "/env/1/name", "/image", "/name", "/nope", "/port", "/replicas",
                                           "/resources/limits/cpu", "/resources/limits/memory"}));
}

TEST(app_spec, validate_says_the_same_of_a_struct) {
  manifest::app_spec spec;
  auto bad = manifest::validate(spec);
  std::vector<std::string> at;
  for (const auto& v : bad) at.push_back(v.pointer);
  std::sort(at.begin(), at.end());
  EXPECT_EQ(at, (std::vector<std::string>{"/image", "/name", "/port"}));
  spec.name = "shop";
  spec.image = "nginx";
  spec.port = 80;
  EXPECT_TRUE(manifest::validate(spec).empty());
}

TEST(app_spec, a_spec_over_the_size_limit_is_refused) {
  auto spec = base();
  json::array env;
  for (int i = 0; i < 20; ++i) env.push_back(json::object{{"name", "V" + std::to_string(i)}, {"value", std::string(32000, 'x')}});
  spec["env"] = std::move(env);
  EXPECT_EQ(pointers(spec), std::vector<std::string>{""});
}

TEST(app_spec, secrets_are_never_written_and_can_be_moved_out) {
  auto spec =
      manifest::read_app_spec(patched(R"({"env":[{"name":"TOKEN","secret":"s3cret"},{"name":"A","value":"b"}]})")).value();
  EXPECT_EQ(json::write(json::encode(spec)).find("s3cret"), std::string::npos);
  auto values = manifest::extract_secrets(spec);
  EXPECT_EQ(values, (std::map<std::string, std::string>{{"TOKEN", "s3cret"}}));
  ASSERT_TRUE(spec.env[0].secret_ref.has_value());
  EXPECT_EQ(spec.env[0].secret_ref->name, "shop-env");
  EXPECT_EQ(spec.env[0].secret_ref->key, "TOKEN");
  EXPECT_FALSE(spec.env[0].secret.has_value());
  EXPECT_TRUE(manifest::validate(spec).empty());
}
