// Times as text.
#include <kubeopera/core/clock.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;

TEST(rfc3339, is_read_and_written_back) {
  for (const char* text : {"2026-02-28T12:34:56Z", "1970-01-01T00:00:00Z", "2262-01-01T00:00:00Z", "1700-01-01T00:00:00Z"})
    EXPECT_EQ(format_rfc3339(parse_rfc3339(text).value()), text);
  EXPECT_EQ(parse_rfc3339("2026-01-01T01:00:00+01:00").value(), parse_rfc3339("2026-01-01T00:00:00Z").value());
  EXPECT_LT(parse_rfc3339("2026-01-01T00:00:00.1Z").value(), parse_rfc3339("2026-01-01T00:00:00.2Z").value());
}

TEST(rfc3339, refuses_days_that_are_none) {
  for (const char* text : {"2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-01T24:00:00Z",
                           "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+24:00",
                           "2026-01-01T00:00:00.Z", "2026-01-01", "infinity", ""})
    EXPECT_FALSE(parse_rfc3339(text)) << text;
}

TEST(rfc3339, times_beyond_the_clock_are_its_ends) {
  auto last = parse_rfc3339("9999-12-31T23:59:59.999999999Z");
  auto first = parse_rfc3339("0001-01-01T00:00:00Z");
  ASSERT_TRUE(last && first);
  EXPECT_GT(*last, parse_rfc3339("2262-01-01T00:00:00Z").value());
  EXPECT_LT(*first, parse_rfc3339("1700-01-01T00:00:00Z").value());
}
