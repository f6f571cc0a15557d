// Watches: framing, decoding, and what each kind of end means.
#include "src/kube/watch.hpp"

#include "tests/unit/kube/kit.hpp"

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace kubeopera::kube_test;

namespace {

std::string line(const char* type, const char* version) {
  return std::string(R"({"type":")") + type + R"(","object":{"kind":"ConfigMap","metadata":{"name":"a","resourceVersion":")" +
         version + "\"}}}\n";
}

// What a watch gives until its end: "added 5", ..., then "end" or the error's code.
asio::awaitable<void> collect(std::unique_ptr<watch_stream> stream, std::vector<std::string>& out) {
  constexpr const char* words[] = {"added", "modified", "deleted", "bookmark"};
  while (true) {
    auto event = co_await stream->next();
    if (!event) {
      out.push_back(std::string(to_string(event.error().code())) + " " + event.error().reason());
      co_return;
    }
    if (!*event) {
      out.push_back("end");
      co_return;
    }
    out.push_back(std::string(words[static_cast<int>((*event)->type)]) + " " + std::string(resource_version_of((*event)->obj)));
  }
}

std::vector<std::string> watch(std::vector<scripted_body::piece> pieces) {
  std::vector<std::string> out;
  jumping_clock time;
  auto stream =
      kube::detail::make_watch_stream(std::make_unique<scripted_body>(std::move(pieces)), std::chrono::minutes(5), time);
  run_body(collect(std::move(stream), out));
  return out;
}

using strings = std::vector<std::string>;

}  // namespace

TEST(framer, lines_come_out_whatever_the_pieces) {
  std::string text = "one\ntwo\r\n\n\nthree\nfour";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    kube::detail::line_framer f;
    strings out;
    for (std::size_t at = 0; at < text.size(); at += size) {
      f.feed(text.substr(at, size));
      while (auto l = *f.next()) out.emplace_back(*l);
    }
    EXPECT_EQ(out, (strings{"one", "two", "three"})) << size;
    EXPECT_TRUE(f.half_line());
  }
}

TEST(framer, long_lines_are_refused_before_they_end) {
  kube::detail::line_framer f(10);
  f.feed("0123456789\n");
  EXPECT_TRUE(*f.next());
  f.feed("01234567890");
  EXPECT_EQ(f.next().error().code(), errc::too_large);
}

TEST(watch, events_in_pieces_then_an_orderly_end) {
  auto text = line("ADDED", "5") + line("MODIFIED", "6") + line("BOOKMARK", "9") + line("DELETED", "10");
  EXPECT_EQ(watch({text}), (strings{"added 5", "modified 6", "bookmark 9", "deleted 10", "end"}));
  std::vector<scripted_body::piece> bytes;
  for (char c : text) bytes.push_back(std::string(1, c));
  EXPECT_EQ(watch(std::move(bytes)), (strings{"added 5", "modified 6", "bookmark 9", "deleted 10", "end"}));
}

TEST(watch, a_half_line_at_the_end_is_a_cut_and_no_event) {
  auto half = line("MODIFIED", "6");
  half.resize(half.size() - 1);
  EXPECT_EQ(watch({line("ADDED", "5"), half}), (strings{"added 5", "unavailable WatchCut"}));
}

TEST(watch, an_error_of_the_transport_comes_through) {
  EXPECT_EQ(watch({line("ADDED", "5"), error(errc::unavailable, "Reset", "connection reset")}),
            (strings{"added 5", "unavailable Reset"}));
}

TEST(watch, an_error_event_with_410_is_gone_and_others_are_what_they_say) {
  EXPECT_EQ(
      watch({std::string(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}})") +
             "\n"}),
      (strings{"gone Expired"}));
  EXPECT_EQ(watch({std::string(R"({"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError"}})") + "\n"}),
            (strings{"unavailable InternalError"}));
}

TEST(watch, what_cannot_be_read_is_damage) {
  for (auto bad :
       {"{\n", "[]\n", "{\"type\":\"ADDED\"}\n", "{\"type\":\"ADDED\",\"object\":[]}\n", "{\"type\":\"NEW\",\"object\":{}}\n"}) {
    EXPECT_EQ(watch({std::string(bad)}), (strings{"data_loss MalformedWatchEvent"})) << bad;
  }
}

TEST(watch, a_server_that_never_ends_it_counts_as_cut) {
  jumping_clock time;
  auto body = std::make_unique<scripted_body>(std::vector<scripted_body::piece>{}, true);
  auto stream = kube::detail::make_watch_stream(std::move(body), std::chrono::milliseconds(20), time);
  strings out;
  run_body(collect(std::move(stream), out));
  EXPECT_EQ(out, (strings{"unavailable WatchCut"}));
}
