// zlib reads what the small compressor writes, whatever it was given.
#include "src/gitops/small_deflate.hpp"

#include "src/gitops/tree.hpp"

#include <gtest/gtest.h>

#include <random>
#include <zlib.h>

using namespace kubeopera::gitops::detail;

namespace {

std::string inflated(const std::string& stream, std::size_t expected) {
  std::string out(expected + 1, '\0');
  auto size = static_cast<uLongf>(out.size());
  auto used = static_cast<uLong>(stream.size());
  EXPECT_EQ(uncompress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(stream.data()), &used), Z_OK);
  EXPECT_EQ(used, stream.size()) << "there is more than the stream";
  out.resize(size);
  return out;
}

void round_trip(const std::string& content) {
  for (auto* compress : {append_small_deflate, append_tree_deflate}) {
    std::string stream = "before";
    compress(stream, content);
    ASSERT_TRUE(stream.starts_with("before"));
    ASSERT_EQ(inflated(stream.substr(6), content.size()), content) << content.size() << " bytes";
  }
}

}  // namespace

TEST(small_deflate, every_byte_and_every_small_size) {
  round_trip("");
  for (int b = 0; b < 256; ++b)
    for (std::size_t n : {1u, 2u, 3u, 4u, 5u, 300u}) round_trip(std::string(n, static_cast<char>(b)));
}

// Every length of a match at many distances, up to the window and beyond.
TEST(small_deflate, every_match_length_and_distances_to_the_windows_end) {
  std::mt19937 random(1);
  for (std::size_t distance : {4u, 5u, 8u, 9u, 33u, 256u, 257u, 1000u, 4097u, 32767u, 32768u, 32769u, 40000u}) {
    std::string noise(distance, '\0');
    for (auto& c : noise) c = static_cast<char>(random());
    for (std::size_t length = 3; length <= 262; length += distance > 300 ? 37 : 1)
      round_trip(noise + noise.substr(0, std::min(length, distance)) + static_cast<char>(random()));
  }
}

TEST(small_deflate, random_mixtures_up_to_the_largest_input) {
  std::mt19937 random(2);
  for (int i = 0; i < 400; ++i) {
    std::string text;
    auto size = i < 20 ? max_small_deflate - static_cast<std::size_t>(i) : random() % 6000;
    unsigned letters = 1 + random() % 255;
    while (text.size() < size) {
      if (text.size() > 10 && random() % 3 == 0)
        text += text.substr(random() % text.size(), random() % 300);
      else
        text.push_back(static_cast<char>(random() % letters));
    }
    text.resize(size);
    round_trip(text);
  }
}

TEST(small_deflate, makes_trees_and_manifests_smaller) {
  std::mt19937 random(3);
  std::string tree, text;
  for (int i = 0; i < 256; ++i) {
    oid id;
    for (auto& b : id.bytes) b = static_cast<unsigned char>(random());
    char name[3];
    std::snprintf(name, sizeof name, "%02x", i);
    append_tree_entry(tree, mode_directory, name, id);
    text += "  - name: SETTING_" + std::to_string(i) + "\n    value: \"" + std::to_string(random() % 1000) + "\"\n";
  }
  std::string small_tree, small_text;
  append_tree_deflate(small_tree, tree);
  round_trip(tree);
  append_small_deflate(small_text, text);
  EXPECT_LT(small_tree.size(), tree.size() * 83 / 100);
  EXPECT_LT(small_text.size(), text.size() * 40 / 100);
}
