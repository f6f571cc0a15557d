// Header fields.
#include <kubeopera/http/message.hpp>
#include <kubeopera/http/retry_after.hpp>

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

TEST(retry_after, is_a_number_or_a_date_and_at_most_a_minute) {
  using namespace kubeopera::http;
  using std::chrono::seconds;
  auto now = kubeopera::system_time(seconds(784111777));  // Sun, 06 Nov 1994 08:49:37 GMT
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:57 GMT", now), seconds(20));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:07 GMT", now), seconds(0));
  EXPECT_EQ(parse_retry_after("3600", now), seconds(60)) << "a minute is the most that is waited";
  EXPECT_EQ(parse_retry_after("-5", now), seconds(0));
  EXPECT_EQ(parse_retry_after("soon", now), std::nullopt);
  EXPECT_EQ(parse_retry_after("Sun, 31 Feb 1994 08:49:37 GMT", now), std::nullopt);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 0944 08:49:37 GMT", now), seconds(0))
      << "years that the clock's nanoseconds cannot say";
  EXPECT_EQ(parse_retry_after("Thu, 29 Feb 9996 08:49:37 GMT", now), seconds(60));
  EXPECT_EQ(retry_after({{"retry-after", "7"}}, now), seconds(7));
  EXPECT_EQ(retry_after({}, now), std::nullopt);
}
