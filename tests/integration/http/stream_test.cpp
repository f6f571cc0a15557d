// Streaming in both directions, and what happens when one side goes away in the middle.
#include "tests/integration/http/harness.hpp"

#include <kubeopera/http/sse.hpp>

#include <atomic>

namespace {

using namespace http_test;

// Yields count pieces, then waits for ever where endless.
class pieces final : public http::body_source {
 public:
  pieces(int count, std::size_t size, bool endless = false) : left_(count), size_(size), endless_(endless) {}
  ~pieces() override {
    if (destroyed) ++*destroyed;
  }
  task<std::string> next() override {
    if (left_ > 0) {
      --left_;
      co_return std::string(size_, static_cast<char>('a' + left_ % 26));
    }
    if (!endless_) co_return std::string();
    auto r = co_await never_.wait(never_.ticket());
    if (cancelled) ++*cancelled;
    co_return r.error();
  }
  std::atomic<int>* cancelled = nullptr;
  std::atomic<int>* destroyed = nullptr;

 private:
  int left_;
  std::size_t size_;
  bool endless_;
  notifier never_;
};

asio::awaitable<http::response> count_body(http::request req) {
  std::size_t total = req.body.size(), parts = 0;
  if (req.stream) {
    for (;;) {
      auto piece = co_await req.stream->next();
      if (!piece) co_return http::response(599, "text/plain", piece.error().reason());
      if (piece->empty()) break;
      total += piece->size();
      ++parts;
    }
  }
  co_return http::response(200, "text/plain", std::to_string(total) + (parts > 1 ? " in pieces" : ""));
}

http::server_options streaming(std::size_t limit = 64u << 20) {
  http::server_options options;
  options.body_rule_for = [limit](std::string_view, std::string_view target) {
    return http::body_rule(limit, target == "/stream");
  };
  return options;
}

TEST(upload, a_stream_arrives_in_pieces) {
  loop l;
  running_server server(l, count_body, streaming());
  auto client = client_of(l, http::client_options(server.url()));
  for (const char* target : {"/stream", "/whole"}) {
    http::request req("POST", target);
    req.stream = std::make_unique<pieces>(100, 65'536);
    auto res = l.run(client->send(std::move(req))).value();
    EXPECT_EQ(res.body, target == std::string("/stream") ? "6553600 in pieces" : "6553600");
  }
  EXPECT_EQ(l.run(client->send(http::request("POST", "/stream", std::string(1 << 20, 'x')))).value().body, "1048576 in pieces");
}

TEST(upload, a_stream_over_the_limit_is_an_error_to_its_reader) {
  loop l;
  running_server server(l, count_body, streaming(1000));
  auto client = client_of(l, http::client_options(server.url()));
  http::request req("POST", "/stream");
  req.stream = std::make_unique<pieces>(3, 500);
  auto res = l.run(client->send(std::move(req))).value();
  EXPECT_EQ(res.status, 599);
  EXPECT_EQ(res.body, "BodyTooLarge");
}

TEST(upload, a_body_that_is_not_read_closes_the_connection_after_the_answer) {
  loop l;
  running_server server(l, [](http::request) -> asio::awaitable<http::response> { co_return http::response(204); }, streaming());
  raw_socket s(server.port());
  s.send("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
  auto answer = s.receive_all();
  EXPECT_EQ(answer.substr(9, 3), "204");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST(upload, the_client_that_vanishes_is_an_error_to_the_reader) {
  loop l;
  std::atomic<int> failed{0};
  running_server server(
      l,
      [&failed](http::request req) -> asio::awaitable<http::response> {
        auto r = co_await http::read_all(*req.stream, 1000);
        if (!r) ++failed;
        co_return http::response(204);
      },
      streaming());
  raw_socket s(server.port());
  s.send("POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
  s.close();
  EXPECT_TRUE(eventually([&] { return failed == 1; }));
}

TEST(download, pieces_arrive_as_they_are_made) {
  loop l;
  notifier go;
  struct stepwise final : http::body_source {
    explicit stepwise(notifier& n) : go(n), ticket(n.ticket()) {}
    task<std::string> next() override {
      if (step++ == 0) co_return std::string("first");
      if (step == 3) co_return std::string();
      KUBEOPERA_CO_CHECK(co_await go.wait(ticket));
      co_return std::string("second");
    }
    notifier& go;
    std::uint64_t ticket;
    int step = 0;
  };
  running_server server(l, [&go](http::request) -> asio::awaitable<http::response> {
    http::response res(200);
    res.stream = std::make_unique<stepwise>(go);
    co_return res;
  });
  auto client = client_of(l, http::client_options(server.url()));
  auto res = l.run(client->send(http::request(), true)).value();
  EXPECT_EQ(l.run(res.stream->next()).value(), "first");
  go.notify();
  EXPECT_EQ(l.run(res.stream->next()).value(), "second");
  EXPECT_EQ(l.run(res.stream->next()).value(), "");
  EXPECT_EQ(l.run(res.stream->next()).value(), "");
  // The connection went back to the pool.
  l.run(client->send(http::request("HEAD", "/"))).value();
  EXPECT_EQ(server.get().connections(), 1u);
}

TEST(download, a_large_stream_is_whole) {
  loop l;
  running_server server(l, [](http::request req) -> asio::awaitable<http::response> {
    http::response res(200);
    if (req.target == "/sized") res.headers.set("Content-Length", "20000000");
    res.stream = std::make_unique<pieces>(2000, 10'000);
    co_return res;
  });
  auto client = client_of(l, http::client_options(server.url()));
  for (const char* target : {"/chunked", "/sized"}) {
    auto res = l.run(client->send(http::request("GET", target), true)).value();
    EXPECT_EQ(l.run(http::read_all(*res.stream, 1u << 30)).value().size(), 20'000'000u);
    EXPECT_EQ(l.run(client->send(http::request("GET", target))).value().body.size(), 20'000'000u);
  }
}

TEST(download, a_stream_that_fails_is_not_a_short_success) {
  loop l;
  struct failing final : http::body_source {
    task<std::string> next() override {
      if (step++ == 0) co_return std::string("part");
      co_return error(errc::internal, "Broken", "broken");
    }
    int step = 0;
  };
  running_server server(l, [](http::request req) -> asio::awaitable<http::response> {
    http::response res(200);
    if (req.target == "/short") {
      res.headers.set("Content-Length", "50");
      res.stream = std::make_unique<pieces>(2, 10);
    } else if (req.target == "/long") {
      res.headers.set("Content-Length", "5");
      res.stream = std::make_unique<pieces>(2, 10);
    } else {
      res.stream = std::make_unique<failing>();
    }
    co_return res;
  });
  auto client = client_of(l, http::client_options(server.url()));
  for (const char* target : {"/broken", "/short", "/long"}) {
    auto r = l.run(client->send(http::request("GET", target)));
    ASSERT_FALSE(r) << target;
    EXPECT_EQ(r.error().reason(), "ConnectionReset") << target;
  }
  raw_socket old(server.port());
  old.send("GET /broken HTTP/1.0\r\n\r\n");
  old.receive_all();
  EXPECT_TRUE(old.was_reset());
}

TEST(disconnect, the_source_of_a_stream_is_cancelled_and_destroyed) {
  loop l;
  std::atomic<int> cancelled{0}, destroyed{0};
  running_server server(l, [&](http::request) -> asio::awaitable<http::response> {
    http::response res(200);
    auto body = std::make_unique<pieces>(1, 5, true);
    body->cancelled = &cancelled;
    body->destroyed = &destroyed;
    res.stream = std::move(body);
    co_return res;
  });
  auto client = client_of(l, http::client_options(server.url()));
  {
    auto res = l.run(client->send(http::request(), true)).value();
    EXPECT_EQ(l.run(res.stream->next()).value(), "aaaaa");
  }
  EXPECT_TRUE(eventually([&] { return destroyed == 1; }));
  EXPECT_EQ(cancelled, 1);
  EXPECT_TRUE(eventually([&] { return server.get().connections() == 0; }));
}

TEST(disconnect, a_handler_that_takes_long_is_cancelled) {
  loop l;
  std::atomic<int> cancelled{0};
  running_server server(l, [&](http::request) -> asio::awaitable<http::response> {
    auto r = co_await sleep_for(1h);
    if (!r && r.error().code() == errc::cancelled) ++cancelled;
    co_return http::response(204);
  });
  raw_socket s(server.port());
  s.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.get().connections() == 1; }));
  s.close();
  EXPECT_TRUE(eventually([&] { return cancelled == 1; }));
}

TEST(disconnect, requests_sent_during_a_slow_handler_or_a_stream_are_answered_after_it) {
  loop l;
  notifier never;
  std::atomic<int> started{0};
  running_server server(l, [&](http::request req) -> asio::awaitable<http::response> {
    ++started;
    // Slow enough for the server to begin to look whether its client is still there.
    if (req.target == "/slow") {
      auto r = co_await never.wait_for(never.ticket(), 600ms);
      co_return http::response(r && !*r ? 201 : 500);
    }
    http::response res(200);
    if (req.target == "/stream") res.stream = std::make_unique<pieces>(3, 3);
    co_return res;
  });
  raw_socket s(server.port());
  s.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return started == 1; }));
  s.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\nGET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  auto answer = s.receive_all();
  EXPECT_EQ(answer.substr(9, 3), "201");
  EXPECT_NE(answer.find("3\r\nccc\r\n3\r\nbbb\r\n3\r\naaa\r\n0\r\n\r\n"), std::string::npos) << answer;
  EXPECT_EQ(started, 3);
}

TEST(disconnect, a_reader_that_does_not_read_is_cut_off) {
  loop l;
  std::atomic<int> destroyed{0};
  http::server_options options;
  options.write_timeout = 300ms;
  running_server server(
      l,
      [&](http::request) -> asio::awaitable<http::response> {
        http::response res(200);
        auto body = std::make_unique<pieces>(1'000'000, 65'536);
        body->destroyed = &destroyed;
        res.stream = std::move(body);
        co_return res;
      },
      options);
  raw_socket s(server.port());
  s.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return destroyed == 1; }));
}

TEST(timeouts, a_stream_that_pauses_too_long_is_an_error) {
  loop l;
  running_server server(l, [](http::request) -> asio::awaitable<http::response> {
    http::response res(200);
    res.stream = std::make_unique<pieces>(1, 5, true);
    co_return res;
  });
  http::client_options options(server.url());
  options.stream_idle_timeout = 100ms;
  options.response_timeout = 50ms;  // only up to the head
  auto res = l.run(client_of(l, options)->send(http::request(), true)).value();
  EXPECT_EQ(l.run(res.stream->next()).value(), "aaaaa");
  EXPECT_EQ(l.run(res.stream->next()).error().reason(), "StreamTimeout");
  EXPECT_FALSE(l.run(res.stream->next()));
}

TEST(echo, a_request_stream_may_become_the_response_stream) {
  loop l;
  running_server server(
      l,
      [](http::request req) -> asio::awaitable<http::response> {
        http::response res(200);
        res.stream = std::move(req.stream);
        co_return res;
      },
      streaming());
  auto client = client_of(l, http::client_options(server.url()));
  http::request req("POST", "/stream", std::string(100'000, 'z'));
  EXPECT_EQ(l.run(client->send(std::move(req))).value().body, std::string(100'000, 'z'));
}

TEST(sse, events_travel_and_the_channel_notices_the_reader_leaving) {
  loop l;
  http::sse_channel channel;
  running_server server(l, [&](http::request) -> asio::awaitable<http::response> { co_return http::make_sse_response(channel); });
  auto client = client_of(l, http::client_options(server.url()));
  auto res = l.run(client->send(http::request(), true)).value();
  EXPECT_EQ(res.headers.get("Content-Type"), "text/event-stream");
  auto reader = std::make_unique<http::sse_reader>(std::move(res.stream));
  http::sse_event out("status", "line one\nline two");
  out.id = 41;
  EXPECT_TRUE(channel.send(out));
  auto in = l.run(reader->next()).value();
  ASSERT_TRUE(in);
  EXPECT_EQ(in->type, "status");
  EXPECT_EQ(in->data, "line one\nline two");
  EXPECT_EQ(in->id, 41u);
  reader.reset();
  EXPECT_TRUE(l.run(with_deadline(2s, channel.wait_closed())));
  EXPECT_FALSE(channel.send(out));
}

}  // namespace
