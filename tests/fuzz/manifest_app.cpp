// App specs from JSON: what is accepted is accepted when it is written again, and renders to YAML that says the same.
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/render.hpp>
#include <kubeopera/yaml/read.hpp>

using namespace kubeopera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto v = json::read(as_text(data, size));
  if (!v) return 0;
  auto spec = manifest::read_app_spec(*v);
  if (!spec) {
    auto e = spec.error();
    KUBEOPERA_PROPERTY(!e.violations().empty());
    for (const auto& one : e.violations()) KUBEOPERA_PROPERTY(one.pointer.empty() || one.pointer.front() == '/');
    return 0;
  }
  manifest::extract_secrets(*spec);
  KUBEOPERA_PROPERTY(manifest::validate(*spec).empty());
  auto text = json::write_canonical(json::encode(*spec));
  auto again = manifest::read_app_spec(json::read(text).value());
  KUBEOPERA_PROPERTY(again && json::write_canonical(json::encode(*again)) == text);
  manifest::render_context context;
  context.app_id = "0190a3b4-0000-7000-8000-000000000000";
  context.revision = 1;
  context.host = "shop.example.com";
  auto out = manifest::render(*spec, context);
  KUBEOPERA_PROPERTY(out || out.error().reason() == "NoImage");
  if (!out) return 0;
  for (const auto& [name, file] : out->files) KUBEOPERA_PROPERTY(yaml::read_all(file).has_value());
  KUBEOPERA_PROPERTY(manifest::render(*again, context)->content_hash == out->content_hash);
  return 0;
}
