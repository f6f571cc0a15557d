// Event streams: what is encoded is decoded, at every split; data cannot start a field of its own.
#include <kubeopera/http/sse.hpp>

#include <gtest/gtest.h>

namespace {

using namespace kubeopera;
using namespace kubeopera::http;

std::vector<sse_event> decode(std::string_view text) {
  sse_decoder decoder;
  std::vector<sse_event> out;
  EXPECT_TRUE(decoder.feed(text, out));
  return out;
}

TEST(encoder, writes_fields_in_order) {
  sse_event event("status", "hello");
  event.id = 7;
  EXPECT_EQ(encode_sse(event), "id: 7\nevent: status\ndata: hello\n\n");
  EXPECT_EQ(encode_sse(sse_event("", "")), "data: \n\n");
}

TEST(encoder, line_breaks_cannot_inject_fields) {
  EXPECT_EQ(encode_sse(sse_event("", "a\nevent: evil\r\rid: 9\r\n")),
            "data: a\ndata: event: evil\ndata: \ndata: id: 9\ndata: \n\n");
  EXPECT_EQ(encode_sse(sse_event("a\nid: 1\r", "x")), "event: aid: 1\ndata: x\n\n");
}

TEST(decoder, reads_back_what_was_encoded_at_every_split) {
  std::vector<sse_event> in = {{"a", "one"}, {"", "two\nlines\n"}, {"b", ""}, {"", " leading space"}, {"", "caf\xc3\xa9"}};
  in[1].id = 12;
  std::string text;
  for (const auto& e : in) text += encode_sse(e);
  text.insert(text.find("event: b"), std::string(sse_ping()));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    sse_decoder decoder;
    std::vector<sse_event> out;
    ASSERT_TRUE(decoder.feed(text.substr(0, cut), out));
    ASSERT_TRUE(decoder.feed(text.substr(cut), out));
    ASSERT_EQ(out.size(), in.size()) << cut;
    for (std::size_t i = 0; i < in.size(); ++i) {
      EXPECT_EQ(out[i].type, in[i].type) << cut;
      EXPECT_EQ(out[i].data, in[i].data) << cut;
    }
    EXPECT_EQ(decoder.last_event_id(), "12");
  }
}

TEST(decoder, follows_the_standard) {
  EXPECT_EQ(decode("data: a\r\ndata: b\r\r\n\ndata:c\n\n").size(), 2u);
  EXPECT_EQ(decode("data: a\rdata: b\r\rdata:c\n\n").front().data, "a\nb");
  EXPECT_TRUE(decode("data: unfinished\n").empty());
  EXPECT_TRUE(decode("event: only\n\n").empty());
  EXPECT_EQ(decode("event: gone\n\ndata: x\n\n").front().type, "");
  EXPECT_EQ(decode("data\n\n").front().data, "");
  EXPECT_EQ(decode("data:  two\n\n").front().data, " two");
  EXPECT_EQ(decode("\xef\xbb\xbf"
                   "data: bom\n\n")
                .front()
                .data,
            "bom");
  EXPECT_EQ(decode(":comment\nunknown: x\ndata: y\n\n").front().data, "y");
  EXPECT_EQ(decode("id: 5\ndata: a\n\ndata: b\n\n").back().id, 5u);
  EXPECT_FALSE(decode("id: x5\ndata: a\n\n").front().id);
  sse_decoder decoder;
  std::vector<sse_event> out;
  ASSERT_TRUE(decoder.feed("retry: 1500\nretry: x\n", out));
  EXPECT_EQ(decoder.retry_ms(), 1500u);
}

TEST(decoder, an_event_over_the_limit_is_an_error) {
  sse_decoder decoder(100);
  std::vector<sse_event> out;
  std::string small = "data: " + std::string(80, 'a') + "\n\n";
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(decoder.feed(small, out));
  EXPECT_TRUE(decoder.feed("data: " + std::string(60, 'a') + "\n", out));
  EXPECT_EQ(decoder.feed("data: " + std::string(60, 'a') + "\n", out).error().reason(), "EventTooLarge");
  sse_decoder endless(100);
  EXPECT_FALSE(endless.feed(std::string(101, 'x'), out));
}

TEST(last_event_id, is_digits_only) {
  EXPECT_EQ(parse_last_event_id("0").value(), 0u);
  EXPECT_EQ(parse_last_event_id("18446744073709551615").value(), 18446744073709551615u);
  for (const char* text : {"", " 1", "1 ", "-1", "+1", "1.0", "0x1", "18446744073709551616", "1\n2"})
    EXPECT_FALSE(parse_last_event_id(text)) << text;
}

TEST(channel, a_reader_too_far_behind_is_cut_off) {
  sse_channel_options options;
  options.max_queued_bytes = 100;
  sse_channel channel(options);
  EXPECT_TRUE(channel.send(sse_event("", std::string(80, 'x'))));
  EXPECT_FALSE(channel.closed());
  EXPECT_FALSE(channel.send(sse_event("", std::string(80, 'x'))));
  EXPECT_TRUE(channel.closed());
  EXPECT_FALSE(channel.send(sse_event("", "")));
}

TEST(channel, has_one_reader_whose_end_closes_it) {
  sse_channel channel;
  {
    auto reader = channel.reader();
    EXPECT_THROW(channel.reader(), std::logic_error);
    EXPECT_TRUE(channel.send(sse_event("", "x")));
  }
  EXPECT_FALSE(channel.send(sse_event("", "x")));
  EXPECT_TRUE(channel.closed());
}

}  // namespace
