// What the closed-world reader takes and refuses; each refusal has its accepted twin.
#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;

namespace {

struct refusal {
  std::string text;
  const char* reason;
  const char* pointer;
  std::string twin;
};

void PrintTo(const refusal& r, std::ostream* out) { *out << r.reason << " " << r.text; }

class yaml_refusal : public testing::TestWithParam<refusal> {};

std::vector<refusal> refusals() {
  std::vector<refusal> all{
      {"a: 1\na: 2\n", "DuplicateKey", "/a", "a: 1\nb: 2\n"},
      {"x:\n  - k: 1\n    \"k\": 2\n", "DuplicateKey", "/x/0/k", "x:\n  - k: 1\n    \"l\": 2\n"},
      {"{\"hostPath\": 1, \"host\\x50ath\": 2}", "DuplicateKey", "/hostPath", "{\"hostPath\": 1, \"host\\x51ath\": 2}"},
      {"a: &x 1\n", "Anchor", "/a", "a: 1\n"},
      {"a: &x {b: 1}\n", "Anchor", "/a", "a: {b: 1}\n"},
      {"a: &x\n", "Anchor", "/a", "a:\n"},
      {"&k a: 1\n", "Anchor", "", "a: 1\n"},
      {"&x [*x]\n", "Anchor", "", "[x]\n"},
      {"<<: {a: 1}\n", "MergeKey", "", "\"<<\": {a: 1}\n"},
      {"a: !!binary aGk=\n", "Tag", "/a", "a: !!str aGk=\n"},
      {"a: !foo b\n", "Tag", "/a", "a: b\n"},
      {"a: ! b\n", "Tag", "/a", "a: \"! b\"\n"},
      {"a: !!int \"3\"\n", "Tag", "/a", "a: 3\n"},
      {"a: !!set {b: }\n", "Tag", "/a", "a: !!map {b: }\n"},
      {"%YAML 1.1\n---\na: 1\n", "Directive", "", "---\na: 1\n"},
      {"%TAG ! tag:x,2000:\n---\na: 1\n", "Directive", "", "---\na: 1\n"},
      {"1: a\n", "KeyNotString", "", "\"1\": a\n"},
      {"a:\n  y: 1\n", "KeyNotString", "/a", "a:\n  \"y\": 1\n"},
      {"~: a\n", "KeyNotString", "", "\"~\": a\n"},
      {": a\n", "KeyNotString", "", "x: a\n"},
      {"[a, b]: c\n", "KeyNotString", "", "a: c\n"},
      {"? {a: b}\n: c\n", "KeyNotString", "", "? a\n: c\n"},
      {"a: 1\n---\nb: 2\n", "SecondDocument", "", "---\na: 1\n"},
      {"a: 1\n---\n", "SecondDocument", "", "a: 1\n...\n"},
      {"a: 1\n...\ngarbage\n", "SecondDocument", "", "a: 1\n...\n# comment\n"},
      {"{\"a\":1} x\n", "SecondDocument", "", "{\"a\":1} # x\n"},
      {"a: [b, c\n", "MalformedYaml", "/a/1", "a: [b, c]\n"},
      {"a: \"b\n", "MalformedYaml", "/a", "a: \"b\"\n"},
      {"a: 'b''\n", "MalformedYaml", "/a", "a: 'b'''\n"},
      {"\"a\\\": 1", "MalformedYaml", "", "\"a\\\\\": 1"},
      {"a: !!str \"b\n", "MalformedYaml", "/a", "a: !!str \"b\"\n"},
      {"a: b\nc\n", "MalformedYaml", "", "a: b\nc:\n"},
      {"a: b\n\"c\"\n", "MalformedYaml", "", "a: b\n\"c\" :\n"},
      {"a\n b: c\n", "MalformedYaml", "", "a b: c\n"},
      {"!!str\n", "Tag", "", "!!str b\n"},
      {"a: |#\n  b\n", "MalformedYaml", "/a", "a: | #\n  b\n"},
      {"...\n", "MalformedYaml", "", "a\n...\n"},
      {"?\nc\n: d\n", "MalformedYaml", "", "? c\n: d\n"},
      {"a:\tb\n", "BadCharacter", "", "a: \"\tb\" #\tc\n"},
      {"a:\n\tb\n", "BadCharacter", "", "a: |\n  b\n  c\td\n  \te\nb: 1\n"},
      {"a: b\tc\n", "BadCharacter", "", "a: 'b\tc'\n"},
      {"a: 'b' \t#\n", "BadCharacter", "", "a: 'b' #\t\n"},
      {"a: |\n  \tb\n", "BadCharacter", "", "a: |\n  b\tc\n"},
      {"{a:}\n", "MalformedYaml", "", "{a: }\n"},
      {"{a}\n", "MalformedYaml", "", "{\"a\":1}\n"},
      {"[a,, b]\n", "MalformedYaml", "/1", "[a, ~, b]\n"},
      {"[:a]\n", "MalformedYaml", "/0", "[\":a\"]\n"},
      {"? a\n:\n\nb\n", "MalformedYaml", "", "? a\n:\n\n b\n"},
      {"a:\n'b'\n", "MalformedYaml", "/a", "a:\n 'b'\n"},
      {"a: \"\\\xc3\xa9\"\n", "MalformedYaml", "/a", "a: \"\xc3\xa9\"\n"},
      {"a: \"\\_\"\n", "BadCharacter", "/a", "a: \"\\xa0\"\n"},
      {"a: \"\\N\"\n", "BadCharacter", "/a", "a: \"\\x85\"\n"},
      {"", "MalformedYaml", "", "a: 1"},
      {"# nothing\n", "MalformedYaml", "", "{} # something\n"},
      {"\xef\xbb\xbf"
       "a: 1\n",
       "BadCharacter", "", "a: 1\n"},
      {std::string("a\0:\0 \0001\0", 8), "BadCharacter", "", "a: 1\n"},
      {"a: \"\xff\"\n", "BadCharacter", "", "a: \"\xc3\xbf\"\n"},
      {"a: \"\xc0\xaf\"\n", "BadCharacter", "", "a: /\n"},
      {"a: \"\xed\xa0\x80\"\n", "BadCharacter", "", "a: \"\xed\x9f\xbf\"\n"},
      {"a: b\x07\n", "BadCharacter", "", "a: \"b\\x07\"\n"},
      {"a: b\r\n", "BadCharacter", "", "a: b\n"},
      {"a: \"b\xe2\x80\xa8\"\n", "BadCharacter", "", "a: \"b\\u2028\"\n"},
      {"a: \"b\xc2\x85\"\n", "BadCharacter", "", "a: \"b\\x85\"\n"},
      {"a: 18446744073709551616\n", "NumberOutOfRange", "/a", "a: 18446744073709551615\n"},
      {"a: -9223372036854775809\n", "NumberOutOfRange", "/a", "a: -9223372036854775808\n"},
      {"a: 1.5e+999\n", "NumberOutOfRange", "/a", "a: 1.5e+99\n"},
      {"a: .inf\n", "NumberOutOfRange", "/a", "a: \".inf\"\n"},
      {"a: .NaN\n", "NumberOutOfRange", "/a", "a: \".NaN\"\n"},
  };
  for (const char* word : {"y",
                           "Y",
                           "yes",
                           "Yes",
                           "YES",
                           "n",
                           "no",
                           "NO",
                           "on",
                           "On",
                           "off",
                           "OFF",
                           "=",
                           "0755",
                           "-0755",
                           "08",
                           "0o17",
                           "0b1",
                           "1_000",
                           "0x_f",
                           "-0x10",
                           "12:30",
                           "1:2:3",
                           "12:30.5",
                           "1e3",
                           "1E5",
                           "1.5e3",
                           ".5",
                           "-.5",
                           "1.",
                           "+1.",
                           "01.5",
                           "1_0.5",
                           "2001-12-14",
                           "2001-12-14T21:59:43Z",
                           "2001-1-1 1:02:03"})
    all.push_back({"a: " + std::string(word) + "\n", "AmbiguousScalar", "/a", "a: \"" + std::string(word) + "\"\n"});
  return all;
}

TEST_P(yaml_refusal, has_reason_and_pointer_and_an_accepted_twin) {
  auto r = yaml::read(GetParam().text);
  ASSERT_FALSE(r.has_value()) << json::write(*r);
  EXPECT_EQ(r.error().code(), errc::invalid_argument);
  EXPECT_EQ(r.error().reason(), GetParam().reason) << to_string(r.error());
  ASSERT_EQ(r.error().violations().size(), 1u);
  EXPECT_EQ(r.error().violations()[0].pointer, GetParam().pointer) << to_string(r.error());
  auto twin = yaml::read(GetParam().twin);
  EXPECT_TRUE(twin.has_value()) << GetParam().twin << to_string(twin.error());
}

INSTANTIATE_TEST_SUITE_P(inputs, yaml_refusal, testing::ValuesIn(refusals()));

std::string as_json(std::string_view text) {
  auto r = yaml::read(text);
  return r ? json::write(*r) : to_string(r.error());
}

}  // namespace

TEST(yaml_read, what_both_versions_type_alike) {
  EXPECT_EQ(as_json("[null, Null, NULL, ~, ]"), "[null,null,null,null]");
  EXPECT_EQ(as_json("{a: , b: true, c: False, d: TRUE}"), R"({"a":null,"b":true,"c":false,"d":true})");
  EXPECT_EQ(as_json("[0, -0, 12, -7, +3, 0x1F, 1.5, -0.25, 1.5e+3, 2.0e-3]"), "[0,0,12,-7,3,31,1.5,-0.25,1500,0.002]");
  EXPECT_EQ(
      as_json("[1.2.3, 10.0.0.1, nginx:1.25, 8080:80, 100m, 1Gi, 1e, e3, -, --x, 0xZZ, yep, nULL, v1, 2001-12, a b]"),
      R"(["1.2.3","10.0.0.1","nginx:1.25","8080:80","100m","1Gi","1e","e3","-","--x","0xZZ","yep","nULL","v1","2001-12","a b"])");
}

TEST(yaml_read, styles) {
  EXPECT_EQ(as_json("a: |\n  x\n   y\n\n  z\nb: >-\n  one\n  two\nc: 'it''s'\nd: \"t\\tu\\u00e9\"\n"),
            R"({"a":"x\n y\n\nz\n","b":"one two","c":"it's","d":"t\tué"})");
  EXPECT_EQ(as_json("- - 1\n  - 2\n- k: v\n  l: [m, {o: p}]\n"), R"([[1,2],{"k":"v","l":["m",{"o":"p"}]}])");
  EXPECT_EQ(as_json("plain over\n  two lines\n"), R"("plain over two lines")");
}

TEST(yaml_read, escapes) {
  EXPECT_EQ(as_json(R"("\x41\xe9\u20ac\U0001f600\0\a\e\/\\\t\ ")"),
            "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\\u0000\\u0007\\u001b/\\\\\\t \"");
  EXPECT_EQ(json::write(*yaml::read_as_go(R"(["\_", "x\_y"])")), "[\"\xc2\xa0\",\"x\xc2\xa0y\"]");
}

TEST(yaml_read, limits) {
  yaml::limits lim;
  lim.max_depth = 3;
  EXPECT_TRUE(yaml::read("[[[1]]]", lim).has_value());
  EXPECT_EQ(yaml::read("[[[[1]]]]", lim).error().reason(), "TooDeep");
  EXPECT_EQ(yaml::read("[[[[1]]]]", lim).error().violations()[0].pointer, "/0/0/0");
  lim.max_nodes = 4;
  EXPECT_TRUE(yaml::read("[1, 2, 3]", lim).has_value());
  EXPECT_EQ(yaml::read("[1, 2, 3, 4]", lim).error().reason(), "TooManyNodes");
  EXPECT_EQ(yaml::read("{a: 1, b: 2}", lim).error().reason(), "TooManyNodes");
  lim.max_bytes = 5;
  EXPECT_EQ(yaml::read("[1, 2, 3]", lim).error().code(), errc::too_large);
  EXPECT_FALSE(yaml::read(std::string(100'000, '[')).has_value());
  EXPECT_FALSE(yaml::read(std::string(100'000, '{')).has_value());
  std::string list;
  for (int i = 0; i < 50'000; ++i) list += "- - ";
  EXPECT_FALSE(yaml::read(list).has_value());
}

TEST(yaml_read, line_and_column_are_told) {
  auto r = yaml::read("a: 1\nb:\n  c: yes\n");
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().violations()[0].pointer, "/b/c");
  EXPECT_EQ(r.error().violations()[0].message.substr(0, 18), "line 3, column 6: ");
}

TEST(yaml_read_all, documents) {
  auto all = yaml::read_all("---\na: 1\n---\n# empty\n---\nb: 2\n...\n---\n- 3\n");
  ASSERT_TRUE(all.has_value()) << to_string(all.error());
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ(json::write((*all)[2]), "[3]");
  EXPECT_TRUE(yaml::read_all("")->empty());
  EXPECT_EQ(yaml::read_all("{a: 1} x").error().reason(), "MalformedYaml");
  EXPECT_EQ(yaml::read_all("a: 1\n...\nb: 2\n").error().reason(), "MalformedYaml");
  EXPECT_EQ(yaml::read_all("a: 1\n---\nb: y\n").error().reason(), "AmbiguousScalar");
  EXPECT_FALSE(yaml::read_all("]").has_value());
  EXPECT_FALSE(yaml::read_all("a: 1\n---\n}\n").has_value());
}

TEST(yaml_read_as_go, reads_as_the_api_server_does) {
  auto go = [](std::string_view text) {
    auto r = yaml::read_as_go(text);
    return r ? json::write_canonical(*r) : to_string(r.error());
  };
  EXPECT_EQ(go("metadata:\n  name: y\ndata:\n  yes: \"no\"\n"), R"({"data":{"true":"no"},"metadata":{"name":true}})");
  EXPECT_EQ(go("a: &x {b: 1, c: 2}\nd: *x\ne:\n  <<: *x\n  c: 3\n"),
            R"({"a":{"b":1,"c":2},"d":{"b":1,"c":2},"e":{"b":1,"c":3}})");
  EXPECT_EQ(go("a: [0755, 0o17, 0b11, 1_000, 0x1F, 1e3, .5, 12:30, 2001-12-14, 1.5, 08, ~]"),
            R"({"a":[493,15,3,1000,31,1000,0.5,"12:30","2001-12-14",1.5,8,null]})");
  EXPECT_EQ(go("a: 1\n---\nb: 2\n"), R"({"a":1})");
  EXPECT_EQ(go("1: a\n1.5: b\n"), R"({"1":"a","1.5":"b"})");
  EXPECT_EQ(go("a: !!binary aGk=\nb: !!str 12\n"), R"({"a":"hi","b":"12"})");
  EXPECT_EQ(go("{\"a\": \"\\ud83d\\ude00\"}"), "{\"a\":\"\xf0\x9f\x98\x80\"}");
  std::vector<std::string> duplicates;
  EXPECT_EQ(json::write(*yaml::read_as_go("a: 1\nb:\n  c: 2\n  c: 3\n", &duplicates)), R"({"a":1,"b":{"c":3}})");
  ASSERT_EQ(duplicates.size(), 1u);
  EXPECT_EQ(duplicates[0], "line 4: key \"c\" already set in map");
}

TEST(yaml_read_as_go, explosions_end_in_errors) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    auto name = "a" + std::to_string(i);
    bomb += name + ": &" + name + " [";
    for (int k = 0; k < 9; ++k) bomb += (k ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_EQ(yaml::read_as_go(bomb).error().reason(), "TooManyNodes");
  EXPECT_FALSE(yaml::read_as_go("&a [*a]").has_value());
  EXPECT_FALSE(yaml::read_as_go("a: *nowhere").has_value());
  EXPECT_FALSE(yaml::read_as_go(std::string(100'000, '[')).has_value());
}
