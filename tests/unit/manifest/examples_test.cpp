// Every example app is a valid request body and renders.
#include <kubeopera/json/read.hpp>
#include <kubeopera/manifest/render.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace kubeopera;

TEST(example_apps, are_valid_and_render) {
  int count = 0;
  for (const auto& e : std::filesystem::directory_iterator(std::filesystem::path(KUBEOPERA_TESTS_DIR) / "../examples/apps")) {
    if (e.path().extension() != ".json") continue;
    ++count;
    std::ostringstream text;
    text << std::ifstream(e.path()).rdbuf();
    auto body = json::read(text.str());
    ASSERT_TRUE(body.has_value()) << e.path() << to_string(body.error());
    auto spec = manifest::read_app_spec(*body);
    ASSERT_TRUE(spec.has_value()) << e.path() << to_string(spec.error());
    auto secrets = manifest::extract_secrets(*spec);
    manifest::render_context context;
    context.app_id = "0190b6f0-0000-7000-8000-000000000001";
    context.revision = 1;
    context.host = spec->domain.value_or(spec->name + "-main.apps.example.com");
    auto r = manifest::render(*spec, context);
    ASSERT_TRUE(r.has_value()) << e.path() << to_string(r.error());
    for (const auto& [name, content] : r->files)
      for (const auto& [key, value] : secrets)
        EXPECT_EQ(content.find(value), std::string::npos) << e.path() << " leaks " << key << " in " << name;
  }
  EXPECT_EQ(count, 6);
}
