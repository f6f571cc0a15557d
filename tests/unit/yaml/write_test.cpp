// The emitter: what it quotes, how it looks, and that what it writes comes back as it was.
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>
#include <kubeopera/yaml/write.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

using namespace kubeopera;

namespace {

std::string from_json(std::string_view text) { return yaml::write(json::read(text).value()); }

}  // namespace

TEST(yaml_write, layout) {
  EXPECT_EQ(
      from_json(
          R"({"apiVersion":"v1","list":[{"name":"a","ports":[80,443]},"x",[1,[2]],[],{}],"empty":{},"none":[],"nil":null,"t":true})"),
      "apiVersion: v1\n"
      "list:\n"
      "- name: a\n"
      "  ports:\n"
      "  - 80\n"
      "  - 443\n"
      "- x\n"
      "- - 1\n"
      "  - - 2\n"
      "- []\n"
      "- {}\n"
      "empty: {}\n"
      "none: []\n"
      "nil: null\n"
      "t: true\n");
  EXPECT_EQ(
      from_json(
          R"({"y":"y","n":"no","a":"","b":"0755","c":"1_000","d":"12:30","e":"2001-12-14","f":"~","g":" x","h":"a: b","i":"a #b","j":"- x","k":"0x10"})"),
      "\"y\": \"y\"\n\"n\": \"no\"\na: \"\"\nb: \"0755\"\nc: \"1_000\"\nd: \"12:30\"\ne: \"2001-12-14\"\nf: \"~\"\ng: \" x\"\n"
      "h: \"a: b\"\ni: \"a #b\"\nj: \"- x\"\nk: \"0x10\"\n");
  EXPECT_EQ(from_json(R"({"a":"one\ntwo\n","b":"one\n two","c":"x\n\n\n","d":" x\ny","e":"x \n \ny","f":["l\nm"]})"),
            "a: |\n  one\n  two\nb: |-\n  one\n   two\nc: |+\n  x\n\n\nd: \" x\\ny\"\ne: \"x \\n \\ny\"\nf:\n- |-\n  l\n  m\n");
  EXPECT_EQ(from_json("[1.5,5.0,1e21,1e-7,-0.5,18446744073709551615]"),
            "- 1.5\n- 5.0\n- 1.0e+21\n- 1.0e-7\n- -0.5\n- 18446744073709551615\n");
  EXPECT_EQ(from_json("\"a\\u0001\\u0085\\u2028\\ufeff\\u007f\\u0000\""), "\"a\\u0001\\u0085\\u2028\\ufeff\\u007f\\u0000\"\n");
  EXPECT_EQ(from_json("{}"), "{}\n");
  EXPECT_EQ(yaml::write(json::object()), "{}\n");
  EXPECT_THROW(yaml::write(json::value(std::numeric_limits<double>::infinity())), std::invalid_argument);
  EXPECT_EQ(yaml::write(json::value("a\xff")), "\"a\xef\xbf\xbd\"\n");
}

namespace {

// Strings made of the pieces that YAML readers stumble over.
std::string awkward(std::mt19937& rng) {
  static const std::vector<std::string> pieces{"a",
                                               "y",
                                               "no",
                                               "~",
                                               "null",
                                               "true",
                                               "0",
                                               "1",
                                               "7",
                                               "08",
                                               "0x",
                                               "_",
                                               ".",
                                               ":",
                                               ": ",
                                               " ",
                                               "  ",
                                               "\t",
                                               "\n",
                                               "\n\n",
                                               "#",
                                               " #",
                                               "-",
                                               "- ",
                                               "---",
                                               "...",
                                               "?",
                                               "? ",
                                               "&",
                                               "*",
                                               "!",
                                               "|",
                                               ">",
                                               "'",
                                               "\"",
                                               "\\",
                                               "%",
                                               "@",
                                               "`",
                                               ",",
                                               "[",
                                               "]",
                                               "{",
                                               "}",
                                               "=",
                                               "<<",
                                               "e",
                                               "E",
                                               "+",
                                               "T",
                                               "Z",
                                               "é",
                                               "\xe2\x82\xac",
                                               "\xf0\x9f\x98\x80",
                                               "\xc2\x85",
                                               "\xe2\x80\xa8",
                                               "\xef\xbb\xbf",
                                               "\x01",
                                               "\x7f",
                                               "\xc2\xa0",
                                               "\r",
                                               "key",
                                               "/path",
                                               ".inf",
                                               ".nan"};
  std::string out;
  auto count = rng() % 6;
  for (unsigned i = 0; i < count; ++i) out += pieces[rng() % pieces.size()];
  if (rng() % 200 == 0) out += std::string(1500, 'k');
  if (rng() % 50 == 0) out += std::string(1, '\0');
  return out;
}

json::value tree(std::mt19937& rng, int depth) {
  auto pick = rng() % 10;
  if (depth > 0 && pick < 3) {
    json::object o;
    for (unsigned i = rng() % 4; i > 0; --i) o[awkward(rng)] = tree(rng, depth - 1);
    return o;
  }
  if (depth > 0 && pick < 5) {
    json::array a;
    for (unsigned i = rng() % 4; i > 0; --i) a.push_back(tree(rng, depth - 1));
    return a;
  }
  switch (pick) {
    case 5:
      return static_cast<std::int64_t>((static_cast<std::uint64_t>(rng()) << 32) | rng());
    case 6:
      return static_cast<double>(static_cast<std::int32_t>(rng())) / 1024.0;
    case 7:
      return rng() % 2 == 0;
    case 8:
      return rng() % 3 == 0 ? json::value(nullptr) : json::value(1e300 / (1 + rng()));
    default:
      return json::value(awkward(rng));
  }
}

}  // namespace

TEST(yaml_write, reading_back_gives_the_same_tree) {
  std::mt19937 rng(20260101);
  for (int i = 0; i < 20'000; ++i) {
    auto v = tree(rng, 4);
    auto text = yaml::write(v);
    auto back = yaml::read(text);
    ASSERT_TRUE(back.has_value()) << text << "\n" << to_string(back.error());
    ASSERT_EQ(json::write(*back), json::write(v)) << text;
    auto go = yaml::read_as_go(text);
    ASSERT_TRUE(go.has_value()) << text << "\n" << to_string(go.error());
  }
}

TEST(yaml_write, two_writes_are_equal_and_plain_strings_stay_plain) {
  std::mt19937 rng(7);
  for (int i = 0; i < 2'000; ++i) {
    auto v = tree(rng, 3);
    ASSERT_EQ(yaml::write(v), yaml::write(yaml::read(yaml::write(v)).value()));
  }
  for (const char* s : {"nginx:1.25", "ghcr.io/acme/web@sha256:0a", "100m", "512Mi", "apps/v1", "a-b.c", "web", "x y",
                        "kubeopera.io/app-id", "/healthz", "http://a"})
    EXPECT_TRUE(yaml::is_plain_safe(s)) << s;
}
