// What is counted and logged of a request, and what never is.
#include "server/web/router.hpp"

#include <kubeopera/json/read.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::web;

namespace {

struct kept_log final : logger {
  std::vector<std::map<std::string, std::string>> lines;
  void log(level lvl, std::string_view message, std::initializer_list<field> fields) override {
    auto& line = lines.emplace_back();
    line["level"] = lvl == level::error ? "error" : lvl == level::info ? "info" : lvl == level::debug ? "debug" : "warn";
    line["msg"] = message;
    for (const auto& f : fields) {
      if (!f.more) line[std::string(f.key)] = f.value;
      if (f.more)
        for (const auto& [k, v] : *f.more) line[k] = v;
    }
  }
};

struct endless final : http::body_source {
  task<std::string> next() override { co_return std::string("x"); }
};

struct reply {
  std::string word;
  static void rules(json::rule_set&) {}
};
KUBEOPERA_DESCRIBE(reply, (word))

struct odd_service {
  task<reply> get_thing(call& c) {
    c.about = {{"app", "web"}, {"thing_id", "not this one"}};
    co_return reply{"hello"};
  }
  task<reply> break_thing(call&) { co_return error(errc::internal, "Broken", "it broke").with_detail("the cause"); }
  task<http::response> stream_thing(call&) {
    http::response r(200);
    r.stream = std::make_unique<endless>();
    co_return std::move(r);
  }
};

struct web_telemetry : testing::Test {
  kept_log log;
  metrics all;
  std::unique_ptr<router> r;

  web_telemetry() {
    router_options o;
    o.service = "things";
    o.authenticate = [](std::string_view) -> result<identity> { return identity{"ann", "t1", {"things:read"}, false}; };
    o.log = &log;
    o.stats = &all;
    r = std::make_unique<router>(o);
    table<odd_service> t(std::make_shared<odd_service>());
    t.get<&odd_service::get_thing>("/things/{thingId}", access::needs("things:read"), "Get.");
    t.post<&odd_service::break_thing>("/things/{thingId}/break", access::needs("things:read"), "Break.");
    t.get<&odd_service::stream_thing>("/stream", access::open(), "Stream.");
    r->add(t.take());
  }
  http::response send(std::string method, std::string target, http::fields headers = {}) {
    http::request req(std::move(method), std::move(target));
    req.headers = std::move(headers);
    req.headers.add("Authorization", "Bearer s3cr3t-token");
    asio::io_context io;
    http::response out;
    spawn(io.get_executor(), keep(std::move(req), out));
    io.run();
    return out;
  }
  asio::awaitable<void> keep(http::request req, http::response& out) { out = co_await r->handle(std::move(req)); }
  std::string everything() const {
    std::string out;
    for (const auto& line : log.lines)
      for (const auto& [k, v] : line) out += k + "=" + v + "\n";
    return out;
  }
};

const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

}  // namespace

TEST_F(web_telemetry, a_line_and_a_count_for_each_request) {
  send("GET", "/things/7", {{"X-Request-Id", "rid-1"}});
  ASSERT_EQ(log.lines.size(), 1u);
  auto& l = log.lines[0];
  EXPECT_EQ(l["msg"], "request");
  EXPECT_EQ(l["level"], "info");
  EXPECT_EQ(l["request_id"], "rid-1");
  EXPECT_EQ(l["route"], "/things/{thingId}");
  EXPECT_EQ(l["method"], "GET");
  EXPECT_EQ(l["tenant_id"], "t1");
  EXPECT_EQ(l["actor"], "ann");
  EXPECT_EQ(l["thing_id"], "7");
  EXPECT_EQ(l["app"], "web");
  EXPECT_EQ(l["trace_id"].size(), 32u);
  auto text = all.expose();
  EXPECT_NE(text.find("kubeopera_http_requests_total{service=\"things\",method=\"GET\",route=\"/things/{thingId}\",status="),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("kubeopera_http_requests_in_flight{service=\"things\"} 0"), std::string::npos);
  EXPECT_NE(
      text.find("kubeopera_http_request_duration_seconds_count{service=\"things\",method=\"GET\",route=\"/things/{thingId}\"} 1"),
      std::string::npos);
}

TEST_F(web_telemetry, secrets_and_paths_stay_out) {
  send("GET", "/things/7?password=hunter2");
  send("GET", "/token-in-a-path/hunter2");
  send("BREW", "/things/7");
  for (const char* secret : {"hunter2", "s3cr3t-token", "token-in-a-path"}) {
    EXPECT_EQ(everything().find(secret), std::string::npos) << secret;
    EXPECT_EQ(all.expose().find(secret), std::string::npos) << secret;
  }
  EXPECT_EQ(log.lines[1]["route"], "unmatched");
  EXPECT_EQ(log.lines[2]["method"], "other");
  EXPECT_EQ(all.expose().find("BREW"), std::string::npos);
}

TEST_F(web_telemetry, failures_are_errors_with_their_reason) {
  send("POST", "/things/7/break");
  auto& l = log.lines.at(0);
  EXPECT_EQ(l["level"], "error");
  EXPECT_EQ(l["msg"], "request failed");
  EXPECT_EQ(l["status"], "500");
  EXPECT_EQ(l["reason"], "Broken");
  EXPECT_NE(l["error"].find("the cause"), std::string::npos);
  EXPECT_NE(all.expose().find("status=\"5xx\"} 1"), std::string::npos);
  send("GET", "/nothing");
  EXPECT_EQ(log.lines.at(1)["level"], "info");
  EXPECT_EQ(log.lines.at(1)["reason"], "NotFound");
}

TEST_F(web_telemetry, probes_are_not_worth_a_line) {
  for (const char* path : {"/healthz", "/livez", "/readyz", "/metrics"}) {
    EXPECT_EQ(send("GET", path).status, 200) << path;
    EXPECT_EQ(log.lines.back()["level"], "debug") << path;
    EXPECT_EQ(log.lines.back()["route"], path);
  }
}

TEST_F(web_telemetry, open_streams_are_counted) {
  {
    auto open = send("GET", "/stream");
    EXPECT_NE(all.expose().find("kubeopera_http_streams_open{service=\"things\"} 1"), std::string::npos);
    EXPECT_EQ(log.lines.back()["stream"], "true");
  }
  EXPECT_NE(all.expose().find("kubeopera_http_streams_open{service=\"things\"} 0"), std::string::npos);
}

TEST_F(web_telemetry, goes_on_in_the_callers_trace) {
  auto answer = std::string(*send("GET", "/things/7", {{"traceparent", parent}}).headers.get("traceparent"));
  EXPECT_EQ(answer.substr(0, 36), parent.substr(0, 36));
  EXPECT_NE(answer, parent);
  EXPECT_EQ(log.lines.back()["trace_id"], parent.substr(3, 32));
}

TEST_F(web_telemetry, what_is_no_traceparent_begins_a_new_trace) {
  for (const http::fields& headers : {http::fields{{"traceparent", "nonsense\r\n"}},
                                      http::fields{{"traceparent", parent}, {"traceparent", parent}}, http::fields{}}) {
    auto answer = std::string(*send("GET", "/things/7", headers).headers.get("traceparent"));
    EXPECT_TRUE(parse_traceparent(answer)) << answer;
    EXPECT_NE(answer.substr(3, 32), parent.substr(3, 32));
  }
}
