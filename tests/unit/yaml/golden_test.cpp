// Our YAML against what Go and PyYAML were seen to read; see tests/golden/yaml/README.md.
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>
#include <kubeopera/yaml/write.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace kubeopera;

namespace {

std::string slurp(const char* name) {
  std::ifstream in(std::filesystem::path(KUBEOPERA_TESTS_DIR) / "golden/yaml" / name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace

TEST(yaml_golden, the_emitter_writes_what_go_and_pyyaml_read_back) {
  auto corpus = json::read(slurp("corpus.json"));
  ASSERT_TRUE(corpus.has_value()) << to_string(corpus.error());
  auto text = slurp("written.yaml");
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(yaml::write(*corpus), text);
  auto back = yaml::read(text);
  ASSERT_TRUE(back.has_value()) << to_string(back.error());
  EXPECT_EQ(json::write(*back), json::write(*corpus));
}

TEST(yaml_golden, reading_as_go_gives_what_go_gave) {
  auto cases = json::read(slurp("go-reads.json"));
  ASSERT_TRUE(cases.has_value()) << to_string(cases.error());
  ASSERT_GT(cases->get_array().size(), 100u);
  for (const auto& c : cases->get_array()) {
    auto text = std::string(json::as_view(c.at("yaml")));
    auto ours = yaml::read_as_go(text);
    if (c.at("json").is_null()) {
      EXPECT_FALSE(ours.has_value()) << text;
      continue;
    }
    ASSERT_TRUE(ours.has_value()) << text << to_string(ours.error());
    EXPECT_EQ(json::write_canonical(*ours), json::write_canonical(json::read(json::as_view(c.at("json"))).value())) << text;
  }
}
