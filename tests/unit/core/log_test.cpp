// The JSON-lines logger: one object a line whatever the values hold.
#include <kubeopera/core/log.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

using namespace kubeopera;

namespace {

// What one call writes, without its time.
std::string line_of(std::initializer_list<field> fields, level lvl = level::info) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  make_json_logger(ends[1], level::info)->log(lvl, "it happened", fields);
  ::close(ends[1]);
  std::string out(65536, '\0');
  auto n = ::read(ends[0], out.data(), out.size());
  ::close(ends[0]);
  out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  auto at = out.find("\"level\"");
  return at == std::string::npos ? out : out.substr(at);
}

const std::string head = R"("level":"info","msg":"it happened")";

}  // namespace

TEST(log, words_and_numbers) {
  EXPECT_EQ(line_of({{"a", "b"}, {"n", 12LL}}), head + ",\"a\":\"b\",\"n\":12}\n");
  EXPECT_EQ(line_of({field::milliseconds("duration_ms", std::chrono::microseconds(1500))}), head + ",\"duration_ms\":1.500}\n");
}

TEST(log, many_fields_in_place_of_one) {
  field_list ids{{"app", "web"}, {"none", ""}, {"revision", "3"}};
  EXPECT_EQ(line_of({field(ids), {"z", "1"}}), head + ",\"app\":\"web\",\"revision\":\"3\",\"z\":\"1\"}\n");
}

TEST(log, a_field_without_a_value_is_left_out) { EXPECT_EQ(line_of({{"a", ""}, {"b", "c"}}), head + ",\"b\":\"c\"}\n"); }

TEST(log, nothing_ends_the_line_early) {
  EXPECT_EQ(line_of({{"a", "x\n{\"msg\":\"forged\"}\t\\"}}),
            head + ",\"a\":\"x\\u000a{\\\"msg\\\":\\\"forged\\\"}\\u0009\\\\\"}\n");
  EXPECT_EQ(line_of({{"a", std::string("\0\x7f", 2)}}), head + ",\"a\":\"\\u0000\\u007f\"}\n");
}

TEST(log, bytes_that_are_not_utf8_are_replaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(line_of({{"a", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"}}), head + ",\"a\":\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"}\n");
  EXPECT_EQ(line_of({{"a", "\xff|\xc3|\xc0\x80|\xed\xa0\x80"}}),
            head + ",\"a\":\"" + bad + "|" + bad + "|" + bad + bad + "|" + bad + bad + bad + "\"}\n");
}

TEST(log, long_values_are_cut) {
  auto line = line_of({{"a", std::string(20000, 'x')}});
  EXPECT_EQ(line, head + ",\"a\":\"" + std::string(8192, 'x') + "...\"}\n");
}

TEST(log, below_the_level_nothing_is_written) { EXPECT_EQ(line_of({{"a", "b"}}, level::debug), ""); }
