// One description gives reading, writing and schema.
#include <kubeopera/json/codec.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;

namespace {

enum class color { red, delete_ };
KUBEOPERA_DESCRIBE_ENUM(color, red, delete_)

struct inner_thing {
  std::string name;
  int port = 80;
  static void rules(json::rule_set& r) {
    r("name").required().length(1, 5).doc("a name");
    r("port").range(1, 65535);
  }
};
KUBEOPERA_DESCRIBE(inner_thing, (name, port))

struct outer_thing {
  std::optional<color> paint;
  std::vector<inner_thing> list;
  std::map<std::string, std::string> labels;
  std::string password;
  double ratio = 0.5;
  bool on = false;
  static void rules(json::rule_set& r) {
    r("password").write_only();
    r("list").items(2);
  }
};
KUBEOPERA_DESCRIBE(outer_thing, (paint, list, labels, password, ratio, on))

}  // namespace

TEST(json_codec, round_trip_leaves_out_the_empty_and_the_secret) {
  auto v = json::read(R"({"paint":"delete","list":[{"name":"a"}],"labels":{"x":"y"},"password":"p"})").value();
  auto t = json::decode<outer_thing>(v);
  ASSERT_TRUE(t.has_value()) << to_string(t.error());
  EXPECT_EQ(t->paint, color::delete_);
  EXPECT_EQ(t->list[0].port, 80);
  EXPECT_EQ(t->password, "p");
  t->paint.reset();
  EXPECT_EQ(json::write(json::encode(*t)), R"({"list":[{"name":"a","port":80}],"labels":{"x":"y"},"ratio":0.5,"on":false})");
}

TEST(json_codec, every_violation_with_its_pointer) {
  auto v = json::read(R"({"paint":"blue","list":[{"name":"toolong","port":0},{"port":"x"}],"nope":1,"on":1,"labels":{"a/b":2}})")
               .value();
  auto t = json::decode<outer_thing>(v);
  ASSERT_FALSE(t.has_value());
  std::map<std::string, std::string> got;
  auto failure = t.error();
  for (auto& x : failure.violations()) got[x.pointer] = x.message;
  EXPECT_EQ(got["/paint"], "must be one of red, delete");
  EXPECT_EQ(got["/list/0/name"], "its length must be at most 5");
  EXPECT_EQ(got["/list/0/port"], "must be at least 1");
  EXPECT_EQ(got["/list/1/port"], "must be an integer, not a string");
  EXPECT_EQ(got["/list/1/name"], "is required");
  EXPECT_EQ(got["/nope"], "unknown field");
  EXPECT_EQ(got["/on"], "must be a boolean, not an integer");
  EXPECT_EQ(got["/labels/a~1b"], "must be a string, not an integer");
  EXPECT_EQ(got.size(), 8u);
}

TEST(json_codec, integers_and_lists_have_their_bounds) {
  auto why = [](const char* text) {
    auto t = json::decode<outer_thing>(json::read(text).value());
    if (t) return std::string("accepted");
    auto failure = t.error();
    return failure.violations().at(0).pointer + " " + failure.violations().at(0).message;
  };
  EXPECT_EQ(why(R"({"list":[{"name":"a","port":4294967297}]})"), "/list/0/port is out of range");
  EXPECT_EQ(why(R"({"list":[{"name":"a","port":-2147483649}]})"), "/list/0/port is out of range");
  EXPECT_EQ(why(R"({"list":[{"name":"a","port":18446744073709551615}]})"), "/list/0/port is out of range");
  EXPECT_EQ(why(R"({"list":[{"name":"a"},{"name":"b"},{"name":"c"}]})"), "/list must have at most 2 items");
  EXPECT_EQ(why(R"({"list":[{"name":"a"},{"name":"b"}]})"), "accepted");
}

namespace {

struct wide_thing {
  std::int64_t from_one = 1, up_to_five = 0, any = 0;
  static void rules(json::rule_set& r) {
    r("from_one").range(1, INT64_MAX);
    r("up_to_five").range(INT64_MIN, 5);
    r("any").range(INT64_MIN, INT64_MAX);
  }
};
KUBEOPERA_DESCRIBE(wide_thing, (from_one, up_to_five, any))

}  // namespace

TEST(json_codec, the_ends_of_int64_are_no_boundary_in_a_schema) {
  EXPECT_EQ(json::write(json::schema<wide_thing>()),
            R"({"type":"object","properties":{"from_one":{"type":"integer","format":"int64","minimum":1},)"
            R"("up_to_five":{"type":"integer","format":"int64","maximum":5},"any":{"type":"integer","format":"int64"}}})");
  EXPECT_FALSE(json::decode<wide_thing>(json::read(R"({"from_one":0})").value()));
  EXPECT_TRUE(json::decode<wide_thing>(json::read(R"({"from_one":9223372036854775807})").value()));
}

TEST(json_codec, schema_inline_and_named) {
  auto s = json::schema<inner_thing>();
  EXPECT_EQ(json::write(s),
            R"({"type":"object","properties":{"name":{"type":"string","description":"a name","minLength":1,"maxLength":5},)"
            R"("port":{"type":"integer","format":"int32","minimum":1,"maximum":65535}},"required":["name"]})");
  json::schema_set set;
  json::codec<outer_thing>::schema(set);
  EXPECT_TRUE(set.named().contains("InnerThing"));
  EXPECT_TRUE(set.named().contains("OuterThing"));
}
