// Thousands of damaged documents: what the closed-world reader still takes, the lax reader must read as the same values, and the
// emitter must write so that it comes back the same.
#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>
#include <kubeopera/yaml/write.hpp>

#include <gtest/gtest.h>

#include <random>

using namespace kubeopera;

namespace {

const std::vector<std::string> seeds{
    "apiVersion: v1\nkind: Service\nmetadata:\n  name: \"y\"\n  labels:\n    team: payments\nspec:\n  ports:\n  - name: http\n   "
    " port: 80\n"
    "  - {name: metrics, port: 9090}\n",
    "a: |\n  x\n   y\n\n  z\nb: >-\n  one\n  two\nc: 'it''s'\nd: \"t\\tu\\u00e9\"\ne: plain over\n  two lines\n",
    "- - 1\n  - 2.5\n- k: v\n  l: [m, {o: p}, \"q\"]\n-\n  r: ~\n# end\n", "? a\n: b\n? \"c\"\n:\n  d: e\n",
    "--- # start\n{a: [b, c], d: {e: f}, \"g\": 'h'}\n...\n"};

const std::vector<std::string> pieces{
    "a",   "b:", ": ", ":",   " ",   "  ",  "\n", "\n  ", "\n\n", "- ", "-", "? ",     "#",    " # c", "[",    "]",       "{",
    "}",   ",",  "'",  "\"",  "\\",  "|",   ">",  "|-\n", "&x ",  "*x", "!", "!!str ", "<<: ", "%",    "@",    "yes",     "0755",
    "1e3", "~",  "12", "1.5", "---", "...", "\t", "é",    "\r",   "=",  "_", "0x1",    "null", "true", "\xff", "\xc2\x85"};

std::string mutant(std::mt19937& rng) {
  auto text = seeds[rng() % seeds.size()];
  for (auto n = 1 + rng() % 3; n > 0; --n) {
    auto at = rng() % (text.size() + 1);
    const auto& piece = pieces[rng() % pieces.size()];
    switch (rng() % 3) {
      case 0:
        text.insert(at, piece);
        break;
      case 1:
        text.erase(at, rng() % 4);
        break;
      default:
        text.replace(at, rng() % 4, piece);
        break;
    }
  }
  return text;
}

}  // namespace

TEST(yaml_mutants, what_is_taken_means_the_same_to_every_reader_of_ours) {
  std::mt19937 rng(4711);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto text = mutant(rng);
    auto strict = yaml::read(text);
    if (!strict) {
      auto failure = strict.error();
      EXPECT_FALSE(failure.reason().empty());
      EXPECT_NE(failure.reason(), "internal") << text;
      continue;
    }
    ++taken;
    auto lax = yaml::read_as_go(text);
    ASSERT_TRUE(lax.has_value()) << text << "\n" << to_string(lax.error());
    EXPECT_EQ(json::write_canonical(*lax), json::write_canonical(*strict)) << text;
    auto again = yaml::read(yaml::write(*strict));
    ASSERT_TRUE(again.has_value()) << text << "\n" << to_string(again.error());
    EXPECT_EQ(json::write_canonical(*again), json::write_canonical(*strict)) << text;
  }
  EXPECT_GT(taken, 2'000);
}
