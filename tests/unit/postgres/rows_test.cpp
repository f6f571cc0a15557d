// Parameters in text form and identifiers.
#include "src/postgres/connection.hpp"

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::postgres;

TEST(param, text_forms) {
  EXPECT_EQ(param(42).text(), "42");
  EXPECT_EQ(param(std::int64_t{-9'000'000'000}).text(), "-9000000000");
  EXPECT_EQ(param(true).text(), "t");
  EXPECT_EQ(param("x").text(), "x");
  EXPECT_EQ(param(std::nullopt).text(), std::nullopt);
  EXPECT_EQ(param(std::optional<std::string>()).text(), std::nullopt);
  EXPECT_EQ(param(system_time(std::chrono::microseconds(1'500'000))).text(), "1970-01-01T00:00:01.500000Z");
}

TEST(param, arrays_quote_every_element) {
  EXPECT_EQ(param(std::vector<std::string>{}).text(), "{}");
  EXPECT_EQ(param(std::vector<std::string>{"a", "", "NULL", "b,c", "d\"e\\f"}).text(), R"({"a","","NULL","b,c","d\"e\\f"})");
}

TEST(rows, empty_rows_have_nothing) {
  rows r;
  EXPECT_EQ(r.size(), 0u);
  EXPECT_EQ(r.affected(), 0u);
  EXPECT_THROW(r.text(0, "a"), std::out_of_range);
}

TEST(identifier, quotes) { EXPECT_EQ(quote_identifier("a\"b"), "\"a\"\"b\""); }
