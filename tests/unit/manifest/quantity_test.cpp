// Quantities: exactness, rounding, canonical form.
#include <kubeopera/manifest/quantity.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;
using manifest::quantity;

namespace {
quantity q(std::string_view text) { return quantity::parse(text).value(); }
}  // namespace

TEST(quantity, canonical_forms_as_kubernetes_prints_them) {
  for (auto [in, out] : std::initializer_list<std::pair<const char*, const char*>>{
           {"0", "0"},       {"1", "1"},         {"100m", "100m"},
           {"1000m", "1"},   {"1500m", "1500m"}, {"0.5", "500m"},
           {".5", "500m"},   {"5.", "5"},        {"1000", "1k"},
           {"1024", "1024"}, {"1024Ki", "1Mi"},  {"1.5Gi", "1536Mi"},
           {"1Ki", "1Ki"},   {"0.5Ki", "512"},   {"0.0001Ki", "102400u"},
           {"1e3", "1e3"},   {"1E3", "1e3"},     {"12e-3", "12e-3"},
           {"1E", "1E"},     {"2Ei", "2Ei"},     {"-1", "-1"},
           {"+5", "5"},      {"0.1n", "1n"},     {"1u", "1u"},
           {"100k", "100k"}, {"1000k", "1M"},    {"123456789n", "123456789n"},
           {"1.1Ki", "1127"}})
    EXPECT_EQ(q(in).str(), out) << in;
}

TEST(quantity, refuses_what_is_none) {
  for (const char* in : {"", "m", ".", "1mm", "1 ", " 1", "1 Gi", "1gi", "1KI", "1K", "e3", "1e", "1e+", "1e1.5", "0x10", "--1",
                         "1,5", "NaN", "inf", "1e99", "1Eii", "999999999999999999999999999999999999999999", "1e1000", "1e0003",
                         // 2^128 + 1, which 128 bits would take for 1
                         "340282366920938463463374607431768211457"})
    EXPECT_FALSE(quantity::parse(in).has_value()) << in;
  EXPECT_EQ(quantity::parse("1gi").error().reason(), "InvalidQuantity");
}

TEST(quantity, compares_exactly_across_units) {
  EXPECT_LT(q("999m"), q("1"));
  EXPECT_EQ(q("1Gi"), q("1073741824"));
  EXPECT_LT(q("1G"), q("1Gi"));
  EXPECT_LT(q("-1"), q("0"));
  EXPECT_LT(q("9007199254740992"), q("9007199254740993"));  // 2^53 and its neighbour
  EXPECT_LT(q("0.999999999"), q("1"));
  EXPECT_EQ(q("1.1Ki").units(), 1127);  // 1126.4, rounded up
  EXPECT_EQ(q("1m").units(), 1);
  EXPECT_EQ(q("-1500m").units(), -2);
  EXPECT_EQ(q("2").milli(), 2000);
  EXPECT_EQ(q("1e20").units(), INT64_MAX);
}

TEST(quantity, adds) {
  auto sum = q("0");
  for (int i = 0; i < 10; ++i) sum += q("100m");
  EXPECT_EQ(sum, q("1"));
  EXPECT_EQ(sum.str(), "1");
  auto bytes = q("1Gi");
  bytes += q("512Mi");
  EXPECT_EQ(bytes.str(), "1536Mi");
}
