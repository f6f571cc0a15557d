// What a server must refuse on the wire, said over raw sockets; each refusal beside the request that is accepted.
#include "tests/integration/http/harness.hpp"

#include <kubeopera/json/read.hpp>

#include <atomic>

namespace {

using namespace http_test;

struct framing : testing::Test {
  loop l;
  std::atomic<int> handled{0};
  running_server server{l, [this](http::request req) -> asio::awaitable<http::response> {
                          ++handled;
                          http::response res(200, "text/plain", req.method + " " + req.target + " [" + req.body + "]");
                          co_return res;
                        }};
  std::string exchange(std::string_view text) {
    raw_socket s(server.port());
    s.send(text);
    return s.receive_all();
  }
};

std::string status(const std::string& response) { return response.size() < 12 ? "none" : response.substr(9, 3); }

struct bad_case {
  const char* name;
  std::string text;
  const char* status;
};

std::vector<bad_case> bad_cases() {
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n", post = "POST / HTTP/1.1\r\nHost: x\r\n";
  return {
      {"te and cl", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"cl twice", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"},
      {"cl twice the same", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400"},
      {"cl list", post + "Content-Length: 5,5\r\n\r\nhello", "400"},
      {"cl plus", post + "Content-Length: +5\r\n\r\nhello", "400"},
      {"cl minus", post + "Content-Length: -5\r\n\r\nhello", "400"},
      {"cl hex", post + "Content-Length: 0x5\r\n\r\nhello", "400"},
      {"cl space", post + "Content-Length: 5 5\r\n\r\nhello", "400"},
      {"cl empty", post + "Content-Length: \r\n\r\n", "400"},
      {"cl of 19 digits", post + "Content-Length: 1000000000000000000\r\n\r\nhello", "400"},
      {"cl overflow", post + "Content-Length: 18446744073709551621\r\n\r\nhello", "400"},
      {"te xchunked", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400"},
      {"te list", post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "400"},
      {"te gzip", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400"},
      {"te twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"te identity then chunked", post + "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"te vertical tab",
       post + "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"te quoted", post + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", "400"},
      {"te in 1.0", "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"folded", get + "A: b\r\n c\r\n\r\n", "400"},
      {"folded te", post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "400"},
      {"folded first line", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", "400"},
      {"space before colon", get + "A : b\r\n\r\n", "400"},
      {"te space before colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400"},
      {"no colon", get + "A\r\n\r\n", "400"},
      {"empty name", get + ": b\r\n\r\n", "400"},
      {"name with control", get + std::string("A\x01: b\r\n\r\n"), "400"},
      {"bare lf in header", get + "A: b\nC: d\r\n\r\n", "400"},
      {"bare lf request line", "GET / HTTP/1.1\nHost: x\r\n\r\n", "400"},
      {"all lf", "GET / HTTP/1.1\nHost: x\n\n", "400"},
      {"bare cr", get + "A: b\rC: d\r\n\r\n", "400"},
      {"nul in header", get + std::string("A: b\0c\r\n\r\n", 10), "400"},
      {"control in value", get + "A: b\x07\r\n\r\n", "400"},
      {"no host", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"two hosts", get + "Host: y\r\n\r\n", "400"},
      {"host empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "400"},
      {"host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400"},
      {"host with a user", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", "400"},
      {"host list", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "400"},
      {"host port empty", "GET / HTTP/1.1\r\nHost: a:\r\n\r\n", "400"},
      {"host port long", "GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n", "400"},
      {"host bracket open", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "400"},
      {"host bracket no address", "GET / HTTP/1.1\r\nHost: [x]\r\n\r\n", "400"},
      {"te underscore", post + "Transfer_Encoding: chunked\r\nContent-Length: 1\r\n\r\nx", "400"},
      {"cl underscore", post + "Content_Length: 1\r\n\r\nx", "400"},
      {"cl dot", post + "content.length: 1\r\n\r\nx", "400"},
      {"absolute form", "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"no slash", "GET index HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"control in target", "GET /a\x01 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"space in target", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"tab in request line", "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"raw utf-8 target", "GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"bad method", "G@T / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"no version", "GET /\r\nHost: x\r\n\r\n", "400"},
      {"lower case version", "GET / http/1.1\r\nHost: x\r\n\r\n", "400"},
      {"leading empty line", "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"http/2", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", "505"},
      {"h2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
      {"connect", "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", "405"},
      {"expect other", post + "Expect: tea\r\nContent-Length: 1\r\n\r\nx", "417"},
      {"head too large", get + "A: " + std::string(40'000, 'a') + "\r\n\r\n", "431"},
      {"line without end", "GET /" + std::string(40'000, 'a'), "431"},
      {"body too large", post + "Content-Length: 1048577\r\n\r\n", "413"},
      {"get body too large", get + "Content-Length: 1048577\r\n\r\n", "413"},
      {"chunk size empty", post + "Transfer-Encoding: chunked\r\n\r\n\r\n\r\n", "400"},
      {"chunk size not hex", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", "400"},
      {"chunk size 0x", post + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", "400"},
      {"chunk size minus", post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", "400"},
      {"chunk size space", post + "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", "400"},
      {"chunk size 17 digits", post + "Transfer-Encoding: chunked\r\n\r\n00000000000000005\r\nhello\r\n0\r\n\r\n", "400"},
      {"chunk size 16 digits", post + "Transfer-Encoding: chunked\r\n\r\n0000000000000005\r\nhello\r\n0\r\n\r\n", "400"},
      {"chunk size overflow", post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "400"},
      {"chunk over limit", post + "Transfer-Encoding: chunked\r\n\r\n100001\r\n" + std::string(0x100001, 'x') + "\r\n0\r\n\r\n",
       "413"},
      {"chunk bare lf", post + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", "400"},
      {"chunk size without lf", post + "Transfer-Encoding: chunked\r\n\r\n5\rXhello\r\n0\r\n\r\n", "400"},
      {"chunk data without cr", post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\n0\r\n\r\n", "400"},
      {"chunk data without lf", post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\rX0\r\n\r\n", "400"},
      {"trailer without lf", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\rX\r\n", "400"},
      {"end without lf", post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\rX", "400"},
      {"chunk data not ended", post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n", "400"},
      {"chunk data lf", post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", "400"},
      {"chunk extension long",
       post + "Transfer-Encoding: chunked\r\n\r\n5;a=" + std::string(1100, 'b') + "\r\nhello\r\n0\r\n\r\n", "400"},
      {"chunk extension lf", post + "Transfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n", "400"},
      {"trailer folded", post + "Transfer-Encoding: chunked\r\n\r\n0\r\n x\r\n\r\n", "400"},
      {"trailers long", post + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: " + std::string(9000, 'b') + "\r\n\r\n", "400"},
      {"too many headers",
       get +
           [] {
             std::string all;
             for (int i = 0; i < 128; ++i) all += "A: b\r\n";
             return all;
           }() +
           "\r\n",
       "431"},
  };
}

TEST_F(framing, ambiguous_requests_are_refused_and_the_connection_closed) {
  for (const auto& c : bad_cases()) {
    auto before = handled.load();
    // What follows would be the smuggled request.
    auto answer = exchange(c.text + "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(status(answer), c.status) << c.name << "\n" << answer;
    EXPECT_EQ(handled, before) << c.name;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << c.name;
    auto body = answer.find("\r\n\r\n");
    if (body == std::string::npos) continue;
    auto problem = json::read_object(answer.substr(body + 4));
    ASSERT_TRUE(problem) << c.name << "\n" << answer;
    EXPECT_FALSE(json::get_string(*problem, {"reason"}).empty());
    EXPECT_NE(answer.find("Content-Type: application/problem+json\r\n"), std::string::npos) << c.name;
  }
}

TEST_F(framing, plain_requests_are_served) {
  const std::string end = "Connection: close\r\n\r\n";
  const std::pair<std::string, std::string> cases[] = {
      {"GET /a?b=c HTTP/1.1\r\nHost: x\r\n" + end, "GET /a?b=c []"},
      {"GET / HTTP/1.0\r\n\r\n", "GET / []"},
      {"POST / HTTP/1.1\r\nhOST:x\r\nContent-Length: 5\r\n" + end + "hello", "POST / [hello]"},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n" + end, "POST / []"},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n" + end +
           "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: gone\r\n\r\n",
       "POST / [hello]"},
      {"PATCH / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + end + "000000000000005\r\nhello\r\n0\r\n\r\n",
       "PATCH / [hello]"},
      {"GET / HTTP/1.1\r\nHost: x\r\nX-A:\t v \r\nX-B: caf\xc3\xa9\r\n" + end, "GET / []"},
  };
  for (const auto& [text, body] : cases) {
    auto answer = exchange(text);
    EXPECT_EQ(status(answer), "200") << text;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n" + body)) << answer;
  }
}

TEST_F(framing, as_many_headers_as_are_allowed_are_taken) {
  std::string all;
  for (int i = 0; i < 126; ++i) all += "A: b\r\n";
  EXPECT_EQ(status(exchange("GET / HTTP/1.1\r\nHost: x\r\n" + all + "Connection: close\r\n\r\n")), "200");
}

TEST_F(framing, every_form_of_a_host_is_taken) {
  for (std::string host : {"x", "x:1", "a-b.example:65535", "127.0.0.1", "[::1]", "[::ffff:1.2.3.4]:80", "a_b"})
    EXPECT_EQ(status(exchange("GET / HTTP/1.1\r\nHost: " + host + "\r\nA_B: c\r\nConnection: close\r\n\r\n")), "200") << host;
}

TEST_F(framing, every_split_of_a_request_gives_the_same_answer) {
  const std::string text =
      "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n";
  raw_socket s(server.port());
  for (std::size_t cut = 1; cut < text.size(); ++cut) {
    s.send(text.substr(0, cut));
    s.send(text.substr(cut));
    auto answer = s.receive_until("[abcde]");
    ASSERT_EQ(status(answer), "200") << cut;
  }
}

TEST_F(framing, pipelined_requests_are_answered_in_order) {
  auto answer = exchange(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
      "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  auto one = answer.find("GET /1 []"), two = answer.find("POST /2 [hi]"), three = answer.find("GET /3 []");
  ASSERT_NE(three, std::string::npos) << answer;
  EXPECT_LT(one, two);
  EXPECT_LT(two, three);
}

TEST_F(framing, head_gets_the_length_and_no_body) {
  auto answer = exchange("HEAD /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status(answer), "200");
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(framing, a_body_is_asked_for_where_the_client_waits) {
  raw_socket s(server.port());
  s.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(s.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  s.send("hello");
  EXPECT_NE(s.receive_until("[hello]").find("200 OK"), std::string::npos);
}

TEST_F(framing, http_1_0_keeps_the_connection_only_when_asked) {
  raw_socket s(server.port());
  s.send("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(s.receive_until("GET /1 []").find("Connection: keep-alive\r\n"), std::string::npos);
  s.send("GET /2 HTTP/1.0\r\n\r\n");
  EXPECT_NE(s.receive_all().find("GET /2 []"), std::string::npos);
  EXPECT_TRUE(s.ended());
}

TEST(limits, a_slow_head_is_told_so_and_an_idle_connection_closed) {
  loop l;
  http::server_options options;
  options.head_timeout = 200ms;
  options.idle_timeout = 300ms;
  running_server server(l, [](http::request) -> asio::awaitable<http::response> { co_return http::response(204); }, options);
  raw_socket slow(server.port());
  slow.send("GET / HTTP/1.1\r\nHo");
  EXPECT_EQ(status(slow.receive_all()), "408");
  raw_socket idle(server.port());
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_TRUE(idle.ended());
  raw_socket body(server.port());
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(status(body.receive_all()), "408");
}

TEST(limits, connections_over_the_limit_are_closed) {
  loop l;
  http::server_options options;
  options.max_connections = 1;
  running_server server(l, [](http::request) -> asio::awaitable<http::response> { co_return http::response(204); }, options);
  raw_socket first(server.port());
  first.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(status(first.receive_until("\r\n\r\n")), "204");
  raw_socket second(server.port());
  EXPECT_EQ(second.receive(), "");
  first.close();
  EXPECT_TRUE(eventually([&] { return server.get().connections() == 0; }));
}

TEST(limits, body_rules_are_asked_for_each_request) {
  loop l;
  http::server_options options;
  options.body_rule_for = [](std::string_view method, std::string_view target) {
    return http::body_rule(method == "PUT" && target == "/big" ? 100 : 3);
  };
  running_server server(l, [](http::request) -> asio::awaitable<http::response> { co_return http::response(204); }, options);
  auto say = [&](const std::string& line) {
    raw_socket s(server.port());
    s.send(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nabcd");
    return status(s.receive_all());
  };
  EXPECT_EQ(say("PUT /big"), "204");
  EXPECT_EQ(say("PUT /small"), "413");
}

TEST(handlers, an_exception_becomes_500_and_the_server_goes_on) {
  loop l;
  running_server server(l, [](http::request req) -> asio::awaitable<http::response> {
    if (req.target == "/throw") throw std::runtime_error("secret detail");
    http::response res(req.target == "/bad" ? 99 : 200);
    if (req.target == "/inject") res.headers.add("X-A", "b\r\nSet-Cookie: c");
    co_return res;
  });
  for (const char* target : {"/throw", "/bad", "/inject"}) {
    raw_socket s(server.port());
    s.send(std::string("GET ") + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    auto answer = s.receive_all();
    EXPECT_EQ(status(answer), "500") << target;
    EXPECT_EQ(answer.find("secret"), std::string::npos);
    EXPECT_EQ(answer.find("Set-Cookie"), std::string::npos);
  }
  raw_socket s(server.port());
  s.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status(s.receive_all()), "200");
}

}  // namespace
