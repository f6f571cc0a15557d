// The client against a server of ours and against scripted peers that misbehave.
#include "tests/integration/http/harness.hpp"

#include <atomic>

namespace {

using namespace http_test;

asio::awaitable<http::response> echo(http::request req) {
  http::response res(200, "text/plain", req.method + " " + req.target + " " + req.body);
  for (const auto& [name, value] : req.headers) res.headers.add("Echo-" + name, value);
  res.headers.add("Peer", req.peer);
  co_return res;
}

http::client_options quick(std::string url) {
  http::client_options options(std::move(url));
  options.connect_timeout = 10s;
  options.response_timeout = 10s;
  return options;
}

TEST(client, requests_carry_what_they_should) {
  loop l;
  running_server server(l, echo);
  auto options = quick(server.url() + "/prefix/");
  options.default_headers = {{"User-Agent", "test"}, {"X-Both", "default"}};
  auto client = client_of(l, options);
  http::request req("POST", "/a?b=c", "body");
  req.headers = {{"X-Both", "own"}, {"Content-Length", "999"}, {"Transfer-Encoding", "chunked"}, {"Connection", "close"}};
  auto res = l.run(client->send(std::move(req))).value();
  EXPECT_EQ(res.status, 200);
  EXPECT_EQ(res.body, "POST /prefix/a?b=c body");
  EXPECT_EQ(res.headers.get("echo-x-both"), "own");
  EXPECT_EQ(res.headers.get("Echo-User-Agent"), "test");
  EXPECT_EQ(res.headers.get("Echo-Host"), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(res.headers.get("Echo-Content-Length"), "4");
  EXPECT_FALSE(res.headers.get("Echo-Transfer-Encoding"));
  EXPECT_FALSE(res.headers.get("Echo-Connection"));
}

TEST(client, connections_are_used_again) {
  loop l;
  running_server server(l, echo);
  auto client = client_of(l, quick(server.url()));
  auto first = l.run(client->send(http::request())).value();
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(l.run(client->send(http::request("PUT", "/", "x"))).value().headers.get("Peer"), first.headers.get("Peer"));
  auto head = l.run(client->send(http::request("HEAD", "/"))).value();
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.headers.get("Peer"), first.headers.get("Peer"));
}

TEST(client, what_could_be_read_as_something_else_is_not_sent) {
  loop l;
  auto client = client_of(l, quick("http://127.0.0.1:1"));
  auto reason = [&](http::request req) { return l.run(client->send(std::move(req))).error().reason(); };
  EXPECT_EQ(reason(http::request("GET", "/a b")), "BadRequest");
  EXPECT_EQ(reason(http::request("GET", "/a\r\nX: y")), "BadRequest");
  EXPECT_EQ(reason(http::request("GET", "http://x/")), "BadRequest");
  EXPECT_EQ(reason(http::request("GET", "/#f")), "BadRequest");
  EXPECT_EQ(reason(http::request("G ET", "/")), "BadRequest");
  EXPECT_EQ(reason(http::request("CONNECT", "/")), "BadRequest");
  http::request injected;
  injected.headers.add("X-A", "b\r\nX-Evil: c");
  EXPECT_EQ(reason(std::move(injected)), "BadRequest");
  http::request name;
  name.headers.add("X A", "b");
  EXPECT_EQ(reason(std::move(name)), "BadRequest");
  EXPECT_EQ(reason(http::request()), "ConnectFailed");
}

TEST(client, options_that_cannot_work_are_refused) {
  loop l;
  for (const char* url :
       {"", "ftp://x/", "http://u:p@x/", "http://x:99999/", "http://x:0/", "http://x/?q", "http://0x7f000001/", "127.0.0.1"}) {
    EXPECT_EQ(http::make_client(l.executor(), http::client_options(url)).error().code(), errc::invalid_argument) << url;
  }
  auto options = quick("https://x/");
  options.tls.ca_pem = "not a certificate";
  EXPECT_EQ(http::make_client(l.executor(), options).error().reason(), "BadPem");
}

TEST(client, failures_have_their_reasons) {
  loop l;
  auto failure = [&](http::client_options options) {
    return l.run(client_of(l, std::move(options))->send(http::request())).error();
  };
  EXPECT_EQ(failure(quick("http://nothing.invalid/")).reason(), "DnsFailed");
  scripted_peer silent([](raw_socket& s, int) { s.receive_all(); });
  auto slow = quick(silent.url());
  slow.response_timeout = 100ms;
  auto late = failure(slow);
  EXPECT_EQ(late.code(), errc::deadline_exceeded);
  EXPECT_EQ(late.reason(), "ResponseTimeout");
  scripted_peer rude([](raw_socket& s, int) { s.receive_until("\r\n\r\n"); });
  EXPECT_EQ(failure(quick(rude.url())).reason(), "ConnectionReset");
}

TEST(client, responses_that_cannot_be_trusted_are_refused) {
  const char* bad[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/2 200\r\n\r\n",
      "ICY 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  };
  for (const char* text : bad) {
    loop l;
    scripted_peer peer([&](raw_socket& s, int) {
      s.receive_until("\r\n\r\n");
      s.send(text);
      s.receive_all();
    });
    auto r = l.run(client_of(l, quick(peer.url()))->send(http::request()));
    ASSERT_FALSE(r) << text;
    EXPECT_EQ(r.error().reason(), "MalformedResponse") << text;
  }
}

TEST(client, every_framing_of_a_response_is_read) {
  const char* good[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\nhello",
      "HTTP/1.0 200 OK\r\n\r\nhello",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
  };
  for (const char* text : good) {
    loop l;
    scripted_peer peer([&](raw_socket& s, int) {
      s.receive_until("\r\n\r\n");
      s.send(text);
    });
    auto r = l.run(client_of(l, quick(peer.url()))->send(http::request()));
    ASSERT_TRUE(r) << text << to_string(r.error());
    EXPECT_EQ(r->body, "hello") << text;
  }
}

TEST(client, a_body_that_ends_early_is_no_body) {
  for (const char* text : {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"}) {
    loop l;
    scripted_peer peer([&](raw_socket& s, int) {
      s.receive_until("\r\n\r\n");
      s.send(text);
    });
    EXPECT_EQ(l.run(client_of(l, quick(peer.url()))->send(http::request())).error().reason(), "ConnectionReset");
  }
}

TEST(client, responses_over_the_limit_are_refused) {
  loop l;
  running_server server(l, [](http::request) -> asio::awaitable<http::response> {
    co_return http::response(200, "text/plain", std::string(100'000, 'x'));
  });
  auto options = quick(server.url());
  options.max_response_bytes = 99'999;
  EXPECT_EQ(l.run(client_of(l, options)->send(http::request())).error().reason(), "ResponseTooLarge");
  options.max_response_bytes = 100'000;
  EXPECT_EQ(l.run(client_of(l, options)->send(http::request())).value().body.size(), 100'000u);
}

TEST(client, redirects_are_answers) {
  loop l;
  std::atomic<int> calls{0};
  running_server server(l, [&calls](http::request) -> asio::awaitable<http::response> {
    ++calls;
    http::response res(302);
    res.headers.set("Location", "/elsewhere");
    co_return res;
  });
  EXPECT_EQ(l.run(client_of(l, quick(server.url()))->send(http::request())).value().status, 302);
  EXPECT_EQ(calls, 1);
}

// The first connection answers once and is closed by the peer when the second request comes.
struct stale_peer {
  std::atomic<int> second_requests{0};
  scripted_peer peer{[this](raw_socket& s, int n) {
    s.receive_until("\r\n\r\n");
    s.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(n));
    if (n == 0) {
      if (!s.receive_until("\r\n\r\n").empty()) ++second_requests;
    }
  }};
};

TEST(client, an_idempotent_request_is_repeated_when_a_pooled_connection_dies) {
  loop l;
  stale_peer p;
  auto client = client_of(l, quick(p.peer.url()));
  EXPECT_EQ(l.run(client->send(http::request())).value().body, "0");
  EXPECT_EQ(l.run(client->send(http::request())).value().body, "1");
  EXPECT_EQ(p.second_requests, 1);
}

TEST(client, a_post_that_was_sent_is_never_repeated) {
  loop l;
  stale_peer p;
  auto client = client_of(l, quick(p.peer.url()));
  EXPECT_EQ(l.run(client->send(http::request())).value().body, "0");
  EXPECT_EQ(l.run(client->send(http::request("POST", "/", "x"))).error().reason(), "ConnectionReset");
  EXPECT_EQ(p.second_requests, 1);
}

TEST(client, a_connection_that_was_closed_while_idle_is_not_used) {
  loop l;
  scripted_peer peer([](raw_socket& s, int n) {
    s.receive_until("\r\n\r\n");
    s.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::to_string(n));
  });
  auto client = client_of(l, quick(peer.url()));
  EXPECT_EQ(l.run(client->send(http::request("POST", "/"))).value().body, "0");
  // The peer's end may arrive only after the next request was begun, so a few tries may meet it.
  EXPECT_TRUE(eventually([&] {
    auto r = l.run(client->send(http::request("POST", "/")));
    return r && r->body != "0";
  }));
}

TEST(client, a_refusal_is_read_even_where_the_upload_failed) {
  loop l;
  http::server_options options;
  options.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(1000); };
  running_server server(l, echo, options);
  auto client = client_of(l, quick(server.url()));
  auto res = l.run(client->send(http::request("POST", "/", std::string(8 << 20, 'x'))));
  ASSERT_TRUE(res) << to_string(res.error());
  EXPECT_EQ(res->status, 413);
}

asio::awaitable<void> one_request(std::shared_ptr<http::transport> client, int n, std::atomic<int>& good) {
  auto body = std::string(static_cast<std::size_t>(n) * 97, 'a');
  auto r = co_await client->send(http::request("POST", "/" + std::to_string(n), body));
  if (r && r->body == "POST /" + std::to_string(n) + " " + body) ++good;
}

TEST(client, sixty_four_requests_at_once_on_two_threads) {
  loop l(2);
  running_server server(l, echo);
  auto client = client_of(l, quick(server.url()));
  std::atomic<int> good{0};
  for (int round = 1; round <= 8; ++round) {
    std::vector<background> all;
    for (int n = 0; n < 64; ++n) all.push_back(background::start(l.executor(), one_request(client, n, good)));
    for (auto& b : all) EXPECT_TRUE(l.run(b.join()));
    EXPECT_EQ(good, 64 * round);
  }
}

TEST(client, cancelling_a_request_ends_it) {
  loop l;
  scripted_peer silent([](raw_socket& s, int) { s.receive_all(); });
  auto client = client_of(l, quick(silent.url()));
  auto r = l.run(with_deadline(50ms, client->send(http::request())));
  EXPECT_EQ(r.error().code(), errc::deadline_exceeded);
  EXPECT_EQ(r.error().reason(), "DeadlineExceeded");
}

TEST(policy, refused_addresses_are_never_connected_to) {
  loop l;
  std::atomic<int> calls{0};
  running_server server(l, [&calls](http::request) -> asio::awaitable<http::response> {
    ++calls;
    co_return http::response(204);
  });
  auto options = quick(server.url());
  options.policy = http::public_internet_only();
  EXPECT_EQ(l.run(client_of(l, options)->send(http::request())).error().reason(), "AddressRefused");
  auto by_name = quick("http://localhost:" + std::to_string(server.port()));
  by_name.policy = http::public_internet_only();
  EXPECT_EQ(l.run(client_of(l, by_name)->send(http::request())).error().reason(), "AddressRefused");
  EXPECT_EQ(calls, 0);
  by_name.policy = {};
  EXPECT_EQ(l.run(client_of(l, by_name)->send(http::request())).value().status, 204);
}

TEST(connect_to, reaches_a_name_that_does_not_resolve) {
  loop l;
  running_server server(l, echo);
  auto options = quick("http://team-a.vclusters.svc/");
  options.connect_to = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(l.run(client_of(l, options)->send(http::request())).value().headers.get("Echo-Host"), "team-a.vclusters.svc");
}

TEST(server, draining_lets_requests_end_and_refuses_new_ones) {
  loop l;
  notifier begun, go;
  auto handle = [&](http::request) -> asio::awaitable<http::response> {
    auto ticket = go.ticket();
    begun.notify();
    auto r = co_await go.wait(ticket);
    co_return http::response(r ? 200 : 500);
  };
  running_server server(l, handle);
  auto port = server.port();
  auto ticket = begun.ticket();
  raw_socket busy(port), idle(port);
  EXPECT_TRUE(eventually([&] { return server.get().connections() == 2; }));
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(l.run(begun.wait(ticket)));
  std::thread stopping([&] { server.stop(); });
  EXPECT_EQ(idle.receive(), "");
  go.notify();
  auto answer = busy.receive_all();
  EXPECT_EQ(answer.substr(9, 3), "200");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  stopping.join();
}

TEST(server, draining_cuts_what_does_not_end) {
  loop l;
  http::server_options options;
  options.drain_timeout = 100ms;
  notifier never;
  auto handle = [&](http::request) -> asio::awaitable<http::response> {
    auto r = co_await never.wait(never.ticket());
    co_return http::response(r ? 200 : 500);
  };
  running_server server(l, handle, options);
  raw_socket busy(server.port());
  busy.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.get().connections() == 1; }));
  server.stop();
  EXPECT_EQ(busy.receive(), "");
}

// Waits until it is cancelled, then does op: what starts after a cancellation must not wait for anything.
template <class T>
asio::awaitable<void> after_the_cancellation(notifier& begun, task<T> op, std::optional<result<T>>& out) {
  begun.notify();
  auto slept = co_await sleep_for(std::chrono::hours(1));
  out.emplace(co_await std::move(op));
  static_cast<void>(slept);
}

template <class T>
std::optional<result<T>> cancelled_before(loop& l, task<T> op) {
  notifier begun;
  auto ticket = begun.ticket();
  std::optional<result<T>> out;
  auto work = background::start(l.executor(), after_the_cancellation(begun, std::move(op), out));
  EXPECT_TRUE(l.run(begun.wait(ticket)));
  work.stop();
  EXPECT_TRUE(l.run(work.join()));
  return out;
}

TEST(cancellation, is_noticed_by_what_starts_after_it) {
  loop l;
  running_server server(l, echo);
  auto client = client_of(l, quick("http://127.0.0.1:" + std::to_string(server.port()) + "/"));
  ASSERT_TRUE(l.run(client->send(http::request())));  // a connection that is open already
  auto sent = cancelled_before(l, client->send(http::request()));
  ASSERT_TRUE(sent && !*sent);
  EXPECT_EQ(sent->error().code(), errc::cancelled);
  auto second = http::server::listen(l.executor(), {}, echo);
  ASSERT_TRUE(second);
  auto served = cancelled_before(l, (*second)->run());
  ASSERT_TRUE(served && !*served);
  EXPECT_EQ(served->error().code(), errc::cancelled);
}

TEST(server, a_port_in_use_is_an_error) {
  loop l;
  running_server server(l, echo);
  http::server_options options;
  options.port = server.port();
  auto second = http::server::listen(l.executor(), options, echo);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason(), "AddressInUse");
  options.address = "localhost";
  EXPECT_EQ(http::server::listen(l.executor(), options, echo).error().reason(), "BadAddress");
}

TEST(local_transport, calls_the_handler_in_process) {
  loop l;
  auto t = http::make_local_transport([](http::request req) -> asio::awaitable<http::response> {
    if (req.target == "/throw") throw std::runtime_error("x");
    http::response res(201, "text/plain", req.method + req.target);
    if (req.target == "/stream") res.stream = http::make_body(std::exchange(res.body, std::string()));
    co_return res;
  });
  EXPECT_EQ(l.run(t->send(http::request("GET", "/a"))).value().body, "GET/a");
  EXPECT_EQ(l.run(t->send(http::request("HEAD", "/a"))).value().body, "");
  EXPECT_EQ(l.run(t->send(http::request("GET", "/stream"))).value().body, "GET/stream");
  auto streamed = l.run(t->send(http::request("GET", "/a"), true)).value();
  EXPECT_EQ(l.run(http::read_all(*streamed.stream, 100)).value(), "GET/a");
  EXPECT_EQ(l.run(t->send(http::request("GET", "/throw"))).error().code(), errc::internal);
}

}  // namespace
