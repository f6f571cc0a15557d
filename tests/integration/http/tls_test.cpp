// TLS on loopback with an authority of our own: who is trusted, which certificate is served, whose certificate is asked for.
#include "tests/integration/http/harness.hpp"

#include <kubeopera/crypto/pki.hpp>

namespace {

using namespace http_test;

asio::awaitable<http::response> describe(http::request req) {
  http::response res(200, "text/plain", req.tls ? "tls" : "plain");
  res.headers.set("Sni", req.sni);
  if (!req.client_certificate.empty()) {
    auto facts = crypto::read_certificate_der(req.client_certificate).value();
    res.headers.set("Client", facts.common_name);
  }
  co_return res;
}

http::tls_identity identity(const crypto::key_pair& pair) { return {pair.certificate, pair.private_key}; }

struct tls : testing::Test {
  crypto::key_pair ca = crypto::make_ca().value();
  crypto::key_pair leaf = crypto::issue_server(ca, {"api.example.org", "*.apps.example.org"}, {"127.0.0.1"}).value();
  std::shared_ptr<http::server_tls> config = std::make_shared<http::server_tls>();
  loop l;
  http::server_options server_options() {
    if (config->identity.certificate_pem.empty()) config->identity = identity(leaf);
    http::server_options options;
    options.tls = config;
    return options;
  }
  // A client that asks for name and is led to port.
  http::client_options options(const std::string& name, std::uint16_t port) {
    http::client_options out("https://" + name + ":" + std::to_string(port));
    out.connect_to = "127.0.0.1:" + std::to_string(port);
    out.tls.ca_pem = ca.certificate;
    out.connect_timeout = 10s;
    out.response_timeout = 10s;
    return out;
  }
  result<http::response> get(http::client_options o) { return l.run(client_of(l, std::move(o))->send(http::request())); }
  void expect_tls_failure(const result<http::response>& r, std::string_view words) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code(), errc::unavailable);
    EXPECT_EQ(r.error().reason(), "TlsFailed") << to_string(r.error());
    EXPECT_NE(r.error().message().find(words), std::string::npos) << r.error().message();
  }
};

TEST_F(tls, names_and_addresses_of_the_certificate_are_accepted) {
  running_server server(l, describe, server_options());
  auto by_name = get(options("api.example.org", server.port())).value();
  EXPECT_EQ(by_name.body, "tls");
  EXPECT_EQ(by_name.headers.get("Sni"), "api.example.org");
  EXPECT_EQ(get(options("shop.apps.example.org", server.port())).value().status, 200);
  auto by_address = get(options("127.0.0.1", server.port())).value();
  EXPECT_EQ(by_address.headers.get("Sni"), "");
}

TEST_F(tls, other_names_are_refused) {
  running_server server(l, describe, server_options());
  for (const char* name : {"www.example.org", "a.b.apps.example.org", "apps.example.org", "localhost"}) {
    expect_tls_failure(get(options(name, server.port())), "hostname mismatch");
  }
  auto address = options("127.0.0.2", server.port());
  expect_tls_failure(get(address), "IP address mismatch");
}

TEST_F(tls, the_common_name_is_no_name) {
  crypto::leaf_options o;
  o.common_name = "api.example.org";
  config->identity = identity(crypto::issue(ca, o).value());
  running_server server(l, describe, server_options());
  expect_tls_failure(get(options("api.example.org", server.port())), "mismatch");
}

TEST_F(tls, another_authority_is_refused) {
  running_server server(l, describe, server_options());
  auto o = options("api.example.org", server.port());
  o.tls.ca_pem = crypto::make_ca().value().certificate;
  expect_tls_failure(get(o), "");
  auto system_roots = options("api.example.org", server.port());
  system_roots.tls.ca_pem.clear();
  expect_tls_failure(get(system_roots), "");
  auto both = options("api.example.org", server.port());
  both.tls.ca_pem = crypto::make_ca().value().certificate + ca.certificate;
  EXPECT_TRUE(get(both));
}

TEST_F(tls, expired_and_future_certificates_are_refused) {
  crypto::leaf_options o;
  o.dns_names = {"api.example.org"};
  o.not_before = std::chrono::system_clock::now() - 48h;
  o.valid_for = std::chrono::hours(24);
  config->identity = identity(crypto::issue(ca, o).value());
  {
    running_server server(l, describe, server_options());
    expect_tls_failure(get(options("api.example.org", server.port())), "expired");
  }
  o.not_before = std::chrono::system_clock::now() + 24h;
  config->identity = identity(crypto::issue(ca, o).value());
  running_server server(l, describe, server_options());
  expect_tls_failure(get(options("api.example.org", server.port())), "not yet valid");
}

TEST_F(tls, a_client_certificate_does_not_make_a_server) {
  crypto::leaf_options o;
  o.dns_names = {"api.example.org"};
  o.server = false;
  o.client = true;
  config->identity = identity(crypto::issue(ca, o).value());
  running_server server(l, describe, server_options());
  expect_tls_failure(get(options("api.example.org", server.port())), "purpose");
}

TEST_F(tls, the_server_name_override_is_verified_and_sent) {
  running_server server(l, describe, server_options());
  auto o = options("vc.ns.svc", server.port());
  expect_tls_failure(get(o), "hostname mismatch");
  o.tls.server_name = "api.example.org";
  EXPECT_EQ(get(o).value().headers.get("Sni"), "api.example.org");
}

TEST_F(tls, certificates_are_picked_by_name) {
  auto shop = std::make_shared<http::tls_identity>(identity(crypto::issue_server(ca, {"shop.example.com"}).value()));
  config->by_name = [shop](std::string_view name) -> std::shared_ptr<const http::tls_identity> {
    return name == "shop.example.com" ? shop : nullptr;
  };
  running_server server(l, describe, server_options());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(get(options("shop.example.com", server.port())).value().headers.get("Sni"), "shop.example.com");
    EXPECT_TRUE(get(options("api.example.org", server.port())));
  }
  expect_tls_failure(get(options("other.example.com", server.port())), "mismatch");
}

TEST_F(tls, a_changed_certificate_is_served_at_once) {
  std::mutex mutex;
  auto current = std::make_shared<const http::tls_identity>(identity(crypto::issue_server(ca, {"old.example.com"}).value()));
  config->by_name = [&](std::string_view) {
    std::lock_guard lock(mutex);
    return current;
  };
  running_server server(l, describe, server_options());
  EXPECT_TRUE(get(options("old.example.com", server.port())));
  {
    std::lock_guard lock(mutex);
    current = std::make_shared<const http::tls_identity>(identity(crypto::issue_server(ca, {"new.example.com"}).value()));
  }
  EXPECT_TRUE(get(options("new.example.com", server.port())));
  expect_tls_failure(get(options("old.example.com", server.port())), "mismatch");
}

TEST_F(tls, client_certificates_are_asked_for_verified_and_optional) {
  auto client_ca = crypto::make_ca().value();
  auto user = crypto::issue_client(client_ca, "jane", {"ops"}).value();
  config->client_ca_pem = client_ca.certificate;
  // The identity picked by name must ask for client certificates too.
  auto shop = std::make_shared<http::tls_identity>(identity(crypto::issue_server(ca, {"shop.example.com"}).value()));
  config->by_name = [shop](std::string_view name) -> std::shared_ptr<const http::tls_identity> {
    return name == "shop.example.com" ? shop : nullptr;
  };
  running_server server(l, describe, server_options());
  for (const char* name : {"api.example.org", "shop.example.com"}) {
    auto o = options(name, server.port());
    EXPECT_FALSE(get(o).value().headers.get("Client"));
    o.tls.certificate_pem = user.certificate;
    o.tls.private_key_pem = user.private_key;
    EXPECT_EQ(get(o).value().headers.get("Client"), "jane") << name;
    auto stranger = crypto::issue_client(crypto::make_ca().value(), "eve").value();
    o.tls.certificate_pem = stranger.certificate;
    o.tls.private_key_pem = stranger.private_key;
    EXPECT_FALSE(get(o)) << name;
  }
}

TEST_F(tls, plain_text_to_a_tls_port_and_the_reverse_fail_quickly) {
  {
    running_server server(l, describe, server_options());
    http::client_options o(server.url());
    EXPECT_EQ(get(o).error().code(), errc::unavailable);
  }
  running_server server(l, describe);
  auto r = get(options("api.example.org", server.port()));
  EXPECT_EQ(r.error().reason(), "TlsFailed");
}

TEST_F(tls, a_silent_client_is_dropped_in_the_handshake) {
  auto o = server_options();
  o.head_timeout = 200ms;
  running_server server(l, describe, o);
  raw_socket s(server.port());
  EXPECT_EQ(s.receive(), "");
  EXPECT_TRUE(eventually([&] { return server.get().connections() == 0; }));
}

TEST_F(tls, a_silent_server_is_a_connect_timeout) {
  scripted_peer silent([](raw_socket& s, int) { s.receive_all(); });
  auto o = options("api.example.org", silent.port());
  o.connect_timeout = 100ms;
  EXPECT_EQ(get(o).error().reason(), "ConnectTimeout");
}

TEST_F(tls, pems_that_do_not_fit_make_no_server_and_no_client) {
  config->identity = {leaf.certificate, ca.private_key};
  http::server_options o;
  o.tls = config;
  EXPECT_EQ(http::server::listen(l.executor(), o, describe).error().reason(), "BadPem");
  auto c = options("api.example.org", 1);
  c.tls.certificate_pem = leaf.certificate;
  EXPECT_EQ(http::make_client(l.executor(), c).error().reason(), "BadPem");
  c.tls.private_key_pem = ca.private_key;
  EXPECT_EQ(http::make_client(l.executor(), c).error().reason(), "BadPem");
}

// Large bodies and streams in both directions, many at once, over TLS.
class zeros final : public http::body_source {
 public:
  task<std::string> next() override { co_return left_-- > 0 ? std::string(50'000, '0') : std::string(); }

 private:
  int left_ = 40;
};

asio::awaitable<http::response> echo_stream(http::request req) {
  http::response res(200);
  if (req.method == "GET")
    res.stream = std::make_unique<zeros>();
  else
    res.body = std::to_string(req.body.size());
  co_return res;
}

asio::awaitable<void> both_ways(std::shared_ptr<http::transport> client, std::atomic<int>& good) {
  http::request up("PUT", "/");
  up.stream = std::make_unique<zeros>();
  auto put = co_await client->send(std::move(up));
  auto get = co_await client->send(http::request(), true);
  if (!put || put->body != "2000000" || !get) co_return;
  auto body = co_await http::read_all(*get->stream, 1u << 30);
  if (body && body->size() == 2'000'000) ++good;
}

TEST_F(tls, streams_travel_both_ways_many_at_once) {
  auto so = server_options();
  so.body_rule_for = [](std::string_view, std::string_view) { return http::body_rule(4u << 20); };
  running_server server(l, echo_stream, so);
  auto co = options("api.example.org", server.port());
  co.connect_timeout = co.response_timeout = 10s;
  auto client = client_of(l, co);
  std::atomic<int> good{0};
  std::vector<background> all;
  for (int i = 0; i < 16; ++i) all.push_back(background::start(l.executor(), both_ways(client, good)));
  for (auto& b : all) EXPECT_TRUE(l.run(b.join()));
  EXPECT_EQ(good, 16);
  // After a stream was watched for its reader's leaving the connection is still usable.
  auto peers = server.get().connections();
  EXPECT_TRUE(l.run(client->send(http::request("PUT", "/", "x"))));
  EXPECT_LE(server.get().connections(), peers);
}

TEST_F(tls, a_reader_that_leaves_cancels_the_stream) {
  std::atomic<int> cancelled{0};
  struct endless final : http::body_source {
    explicit endless(std::atomic<int>& n) : count(n) {}
    task<std::string> next() override {
      if (first) {
        first = false;
        co_return std::string("x");
      }
      auto r = co_await sleep_for(1h);
      if (!r) ++count;
      co_return error(errc::cancelled, "Cancelled", "gone");
    }
    std::atomic<int>& count;
    bool first = true;
  };
  running_server server(
      l,
      [&](http::request) -> asio::awaitable<http::response> {
        http::response res(200);
        res.stream = std::make_unique<endless>(cancelled);
        co_return res;
      },
      server_options());
  {
    auto client = client_of(l, options("api.example.org", server.port()));
    auto res = l.run(client->send(http::request(), true)).value();
    EXPECT_EQ(l.run(res.stream->next()).value(), "x");
  }
  EXPECT_TRUE(eventually([&] { return cancelled == 1; }));
}

}  // namespace
