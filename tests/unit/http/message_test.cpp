// Header fields.
#include <kubeopera/http/message.hpp>

#include <gtest/gtest.h>

namespace {

using kubeopera::http::fields;

TEST(fields, names_compare_without_case_and_keep_their_spelling) {
  fields f = {{"Content-Type", "a"}, {"X-A", "1"}, {"x-a", "2"}};
  EXPECT_EQ(f.get("content-type"), "a");
  EXPECT_EQ(f.get("X-a"), "1");
  EXPECT_EQ(f.count("x-A"), 2u);
  EXPECT_FALSE(f.get("x-b"));
  EXPECT_EQ(f.count("x_a"), 0u);
  EXPECT_EQ(f.begin()->first, "Content-Type");
}

TEST(fields, set_leaves_one_value_in_place_and_erase_none) {
  fields f = {{"A", "1"}, {"B", "2"}, {"a", "3"}};
  f.set("a", "9");
  EXPECT_EQ(f.count("A"), 1u);
  EXPECT_EQ(f.begin()->second, "9");
  f.set("C", "new");
  EXPECT_EQ(f.get("c"), "new");
  f.erase("a");
  EXPECT_EQ(f.count("A"), 0u);
  EXPECT_EQ(f.count("B"), 1u);
  EXPECT_FALSE(f.empty());
}

}  // namespace
