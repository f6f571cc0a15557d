// The generator alone.
#include <kubeopera/manifest/render.hpp>

#include <cstdio>

int main() {
  kubeopera::manifest::app_spec app;
  app.name = "web";
  app.image = "ghcr.io/acme/web:1.0";
  app.port = 8080;
  kubeopera::manifest::render_context where;
  where.app_id = "0190a3b4-0000-7000-8000-000000000000";
  where.revision = 1;
  where.host = "web.example.com";
  auto out = kubeopera::manifest::render(app, where);
  if (!out) {
    std::puts(kubeopera::to_string(out.error()).c_str());
    return 1;
  }
  std::printf("%zu files, template %s\n", out->files.size(), out->template_hash.c_str());
  return out->files.contains("kustomization.yaml") ? 0 : 1;
}
