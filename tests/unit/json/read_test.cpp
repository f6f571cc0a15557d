// What the closed-world reader takes and refuses; each refusal has its accepted twin.
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;

struct refusal {
  const char* text;
  const char* reason;
  const char* pointer;
  const char* twin;
};

class json_read : public testing::TestWithParam<refusal> {};

TEST_P(json_read, refuses_with_reason_and_pointer) {
  auto r = json::read(GetParam().text);
  ASSERT_FALSE(r.has_value()) << GetParam().text;
  EXPECT_EQ(r.error().reason(), GetParam().reason);
  ASSERT_EQ(r.error().violations().size(), 1u);
  EXPECT_EQ(r.error().violations()[0].pointer, GetParam().pointer);
  EXPECT_TRUE(json::read(GetParam().twin).has_value());
}

INSTANTIATE_TEST_SUITE_P(
    inputs, json_read,
    testing::Values(refusal{R"({"a":1,"a":2})", "DuplicateKey", "/a", R"({"a":1,"b":2})"},
                    refusal{R"({"a":{"b":1,"\u0062":2}})", "DuplicateKey", "/a/b", R"({"a":{"b":1,"c":2}})"},
                    refusal{R"([1,18446744073709551616])", "NumberOutOfRange", "/1", R"([1,18446744073709551615])"},
                    refusal{R"({"x":1e999})", "NumberOutOfRange", "/x", R"({"x":1e99})"},
                    refusal{R"({"x":01})", "MalformedJson", "/x", R"({"x":1})"},
                    refusal{"{\"x\":\"\xff\"}", "MalformedJson", "/x", R"({"x":"y"})"},
                    refusal{"\xef\xbb\xbf{}", "MalformedJson", "", "{}"}, refusal{"{} x", "MalformedJson", "", "{} \n"},
                    refusal{R"({"x":NaN})", "MalformedJson", "/x", R"({"x":null})"}));

TEST(json_limits, depth_nodes_and_bytes) {
  json::limits lim;
  lim.max_depth = 3;
  EXPECT_TRUE(json::read("[[[1]]]", lim).has_value());
  EXPECT_EQ(json::read("[[[[1]]]]", lim).error().reason(), "TooDeep");
  std::string deep(200000, '[');
  EXPECT_EQ(json::read(deep).error().reason(), "TooDeep");
  lim.max_nodes = 4;
  EXPECT_TRUE(json::read("[1,2,3]", lim).has_value());
  EXPECT_EQ(json::read("[1,2,3,4]", lim).error().reason(), "TooManyNodes");
  lim.max_bytes = 5;
  EXPECT_EQ(json::read("[1,2,3]", lim).error().code(), errc::too_large);
}

TEST(json_write, canonical_and_numbers_like_go) {
  EXPECT_EQ(json::write(json::read("[1e20,-9223372036854775808.0]").value()), "[1e+20,-9.223372036854776e+18]");
  auto v = json::read(R"({"b":[1,-2,1.5,1e21,1e-7,0.000001],"a":"x\u0001\n"})").value();
  EXPECT_EQ(json::write_canonical(v), R"({"a":"x\u0001\n","b":[1,-2,1.5,1e+21,1e-7,0.000001]})");
  EXPECT_EQ(json::write(v), R"({"b":[1,-2,1.5,1e+21,1e-7,0.000001],"a":"x\u0001\n"})");
}

TEST(json_find, pointers) {
  auto v = json::read(R"({"a/b":[{"~":7}]})").value();
  ASSERT_NE(json::find_pointer(v, "/a~1b/0/~0"), nullptr);
  EXPECT_EQ(json::find_pointer(v, "/a~1b/0/~0")->get_int64(), 7);
  EXPECT_EQ(json::find_pointer(v, "/a~1b/1"), nullptr);
}

TEST(json_read, doubles_are_the_nearest_ones) {
  for (double d : {1.7976486231569999e+308, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 0.1,
                   123456789.123456789e-200, 9007199254740993.5, 7.2057594037927933e16}) {
    auto v = json::read(json::write(json::array{d}));
    ASSERT_TRUE(v.has_value());
    EXPECT_EQ(json::write(*v), json::write(json::array{d}));
  }
  EXPECT_EQ(json::read("1e-400").value(), 0.0);
  EXPECT_EQ(json::read("[-0.0e5]").value().at(0), 0.0);
  EXPECT_FALSE(json::read("1.7976931348623159e308"));
  EXPECT_FALSE(json::read("-1e400"));
}
