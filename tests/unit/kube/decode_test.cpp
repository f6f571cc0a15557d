// The fast reader against the careful one: same documents, and the same things refused.
#include "src/kube/decode.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::kube;
using kube::detail::decode_style;
using kube::detail::decoder;

namespace {

result<watch_event> event(std::string text, decode_style style = decode_style()) {
  text.reserve(text.size() + decoder::padding());
  decoder d;
  return d.event(text, style);
}

decode_style packed() {
  decode_style s;
  s.packed = true;
  s.managed_fields = false;
  return s;
}

}  // namespace

TEST(decode, reads_what_the_careful_reader_reads) {
  for (const std::string text :
       {R"({})",
        R"({"a":null,"b":true,"c":false,"d":0,"e":-1,"f":9223372036854775807,"g":18446744073709551615,"h":1.5,"i":1e300})",
        R"({"a":{"b":{"c":[[],{},[1,[2,[3]]],"x"]}},"é":"\u00e9\n\t\"\\\/ \ud83d\ude00"})",
        R"({"\u006detadata":{"name":"a"},"spec":{"managedFields":[1]}})", R"({"metadata":null})", R"({"metadata":5})"}) {
    decoder d;
    auto fast = d.document(text);
    ASSERT_TRUE(fast) << text;
    EXPECT_EQ(*fast, *json::read_object(text)) << text;
  }
}

TEST(decode, refuses_what_is_no_object) {
  for (const std::string text :
       {"", " ", "[]", "1", "{", "{\"a\":}", "{\"a\":1}}", "{\"a\":1} x", "{\"a\":01}", "{\"a\":\"\x01\"}", "{\"a\":\"\xff\"}",
        "{'a':1}", "{\"a\":nul}", "{\"a\":NaN}", "{\"a\":1,}", "\xef\xbb\xbf{"}) {
    decoder d;
    auto r = d.document(text);
    ASSERT_FALSE(r) << text;
    EXPECT_EQ(r.error().code(), errc::data_loss);
  }
  std::string deep(300, '['), end(300, ']');
  decoder d;
  EXPECT_FALSE(d.document("{\"a\":" + deep + end + "}"));
  EXPECT_TRUE(d.document("{}")) << "and works on after that";
}

TEST(decode, integers_beyond_64_bits_are_doubles) {
  const std::string text =
      R"({"a":18446744073709551616,"b":-9223372036854775809,"c":[100000000000000000000,-100000000000000000000],)"
      R"("d":18446744073709551615,"e":-9223372036854775808,"f":"18446744073709551616 \" 18446744073709551616","g":1.5e3})";
  decoder d;
  auto r = d.document(text);
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->at("a"), 18446744073709551616.0);
  EXPECT_EQ(r->at("b"), -9223372036854775808.0);
  EXPECT_EQ(r->at("c"), (json::array{1e20, -1e20}));
  EXPECT_EQ(r->at("d"), 18446744073709551615u);
  EXPECT_EQ(r->at("e"), INT64_MIN);
  EXPECT_EQ(r->at("f"), "18446744073709551616 \" 18446744073709551616");
  EXPECT_EQ(r->at("g"), 1500.0);
  auto seen = event(R"({"type":"ADDED","object":{"n":100000000000000000000}})", packed());
  ASSERT_TRUE(seen) << to_string(seen.error());
  EXPECT_EQ(seen->obj.at("n"), 1e20);
  for (const std::string wrong :
       {R"({"a":01844674407370955161600})", R"({"a":18446744073709551616.})", R"({"a":--18446744073709551616})"})
    EXPECT_FALSE(d.document(wrong)) << wrong;
}

TEST(decode, of_duplicate_keys_the_last_one_counts) {
  decoder d;
  auto r = d.document(R"({"a":1,"b":2,"a":3})");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->at("a"), 3);
  EXPECT_EQ(r->size(), 2u);
}

TEST(decode, managed_fields_are_left_out_of_the_metadata_alone) {
  auto text =
      R"({"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"x":1}],"uid":"u"},"spec":{"metadata":{"managedFields":[2]},"managedFields":3}}})";
  auto kept = event(text);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->obj.at("metadata").as_object().contains("managedFields"));
  auto without = event(text, packed());
  ASSERT_TRUE(without);
  EXPECT_EQ(json::write(without->obj),
            R"({"metadata":{"name":"a","uid":"u"},"spec":{"metadata":{"managedFields":[2]},"managedFields":3}})");
}

TEST(decode, packed_objects_outlive_the_decoder_and_can_be_copied) {
  json::object copy;
  {
    auto e = event(
        R"({"object":{"metadata":{"name":"a","labels":{"a-rather-long-key":"and a value that is longer than any small string"}}},"type":"MODIFIED"})",
        packed());
    ASSERT_TRUE(e);
    EXPECT_EQ(e->type, event_type::modified);
    copy = e->obj;
  }
  EXPECT_EQ(copy.at("metadata").at("labels").at("a-rather-long-key"), "and a value that is longer than any small string");
}

// Their block of memory is sized for what was read; a change takes more.
TEST(decode, packed_objects_can_be_changed_after_all) {
  decoder d;
  auto r = d.list(R"({"items":[{"metadata":{"name":"a","annotations":{}},"spec":{"list":[1,2,3]}}]})", types::pods(), packed());
  ASSERT_TRUE(r);
  auto plain = *json::read_object(json::write(r->items[0]));
  for (auto* o : {&r->items[0], &plain}) {
    for (int i = 0; i < 200; ++i) {
      json::ensure_object(json::ensure_object(*o, "metadata"), "annotations")["key-" + std::to_string(i)] = std::string(i, 'x');
      json::ensure_array(json::ensure_object(*o, "spec"), "list").emplace_back(std::to_string(i) + " is a string of some length");
    }
  }
  EXPECT_EQ(r->items[0], plain);
  auto moved = std::move(r->items[0]);
  r->items.clear();
  EXPECT_EQ(moved, plain);
}

TEST(decode, lists) {
  decoder d;
  auto r = d.list(R"({"kind":"PodList","metadata":{"resourceVersion":"7","continue":"c","remainingItemCount":3},"items":[
      {"metadata":{"name":"a","managedFields":[]}},{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}]})",
                  types::pods(), packed());
  ASSERT_TRUE(r);
  EXPECT_EQ(r->resource_version, "7");
  EXPECT_EQ(r->continue_token, "c");
  ASSERT_EQ(r->items.size(), 2u);
  EXPECT_EQ(r->items[0].at("kind"), "Pod");
  EXPECT_FALSE(r->items[0].at("metadata").as_object().contains("managedFields"));
  EXPECT_EQ(name_of(r->items[1]), "b");
  EXPECT_TRUE(d.list(R"({"items":[]})", types::pods())->items.empty());
  for (auto bad : {R"({"items":[1]})", R"({"items":{}})", R"({})", R"([])"}) EXPECT_FALSE(d.list(bad, types::pods())) << bad;
}

TEST(decode, what_stands_behind_an_event_is_not_read) {
  std::string two = "{\"type\":\"DELETED\",\"object\":{\"a\":1}}\n{\"type\":\"ADDED\",\"object\":{\"b\":2}}\n";
  two.reserve(two.size() + decoder::padding());
  decoder d;
  auto first = d.event(std::string_view(two).substr(0, two.find('\n')));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->type, event_type::deleted);
  EXPECT_EQ(first->obj, (json::object{{"a", 1}}));
}
