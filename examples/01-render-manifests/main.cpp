// From an app's definition to production-ready manifests, without a cluster.
#include <kubeopera/manifest/render.hpp>

#include <cstdio>

int main() {
  namespace manifest = kubeopera::manifest;
  manifest::app_spec app;
  app.name = "web";
  app.image = "ghcr.io/acme/web:1.4.2";
  app.port = 8080;
  app.autoscaling = manifest::autoscaling_settings{2, 6, 70};

  manifest::render_context where;
  where.app_id = "0190a3b4-0000-7000-8000-000000000000";
  where.revision = 1;
  where.host = "web.example.com";

  auto out = manifest::render(app, where);
  if (!out) {
    std::puts(to_string(out.error()).c_str());
    return 1;
  }
  for (const auto& [name, yaml] : out->files) std::printf("%-30s %zu bytes\n", name.c_str(), yaml.size());
  return out->files.contains("horizontal-pod-autoscaler.yaml") ? 0 : 1;
}
