// The client over a scripted transport: what it sends, what it makes of answers, when it sends again.
#include "src/kube/exchange.hpp"
#include "tests/unit/kube/kit.hpp"

#include <kubeopera/kube/client.hpp>

#include <boost/json/parse.hpp>

#include <cstdlib>
#include <fstream>
#include <unistd.h>

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace kubeopera::kube_test;
using namespace std::chrono_literals;

namespace {

struct fixture : testing::Test {
  std::shared_ptr<scripted_transport> wire = std::make_shared<scripted_transport>();
  jumping_clock time;
  std::shared_ptr<client> make(client_options options = client_options()) {
    options.time = &time;
    options.random = [] { return std::uint64_t{0}; };  // the least jitter: one tick
    return make_client(wire, std::move(options));
  }
};

using client_test = fixture;

const char* const a_map = R"({"metadata":{"name":"a","namespace":"ns","resourceVersion":"5"}})";

std::string status(int code, const char* reason) {
  return R"({"kind":"Status","status":"Failure","message":"no","reason":")" + std::string(reason) + R"(","code":)" +
         std::to_string(code) + "}";
}

}  // namespace

TEST_F(client_test, get_sends_credentials_and_reads_the_object) {
  client_options options;
  options.bearer_token = "t0k";
  wire->then(200, a_map);
  auto got = run(make(options)->get(types::config_maps(), {"ns", "a"}));
  ASSERT_TRUE(got);
  EXPECT_EQ(resource_version_of(*got), "5");
  auto s = wire->last();
  EXPECT_EQ(s.method + " " + s.target, "GET /api/v1/namespaces/ns/configmaps/a");
  EXPECT_EQ(s.headers.get("Authorization"), "Bearer t0k");
  EXPECT_EQ(s.headers.get("Accept"), "application/json");
  EXPECT_EQ(s.headers.get("User-Agent"), "kubeopera");
}

TEST_F(client_test, a_token_that_would_break_the_header_is_never_sent) {
  client_options options;
  options.bearer_token = "a\r\nX-Evil: 1";
  auto got = run(make(options)->get(types::config_maps(), {"ns", "a"}));
  EXPECT_EQ(got.error().reason(), "InvalidToken");
  EXPECT_TRUE(wire->all().empty());
}

namespace {

// A pod's token file, written as its kubelet would.
class token_file {
 public:
  token_file() {
    char pattern[] = "/tmp/kubeopera-token-XXXXXX";
    int fd = ::mkstemp(pattern);
    if (fd >= 0) ::close(fd);
    path_ = pattern;
  }
  ~token_file() { ::unlink(path_.c_str()); }
  void write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  client_options options() const {
    client_options o;
    o.bearer_token_file = path_;
    return o;
  }

 private:
  std::string path_;
};

}  // namespace

TEST_F(client_test, a_token_file_is_read_anew_once_a_minute) {
  token_file file;
  file.write("first\n");
  auto c = make(file.options());
  auto token = [&] {
    wire->then(200, a_map);
    EXPECT_TRUE(run(c->get(types::config_maps(), {"ns", "a"})));
    return wire->last().headers.get("Authorization").value_or("");
  };
  EXPECT_EQ(token(), "Bearer first");
  file.write("second");
  EXPECT_EQ(token(), "Bearer first");
  time.advance(std::chrono::minutes(1));
  EXPECT_EQ(token(), "Bearer second");
  for (const auto* unusable : {"", "a\r\nX-Evil: 1"}) {  // half written, or no token: the last one stays
    file.write(unusable);
    time.advance(std::chrono::minutes(1));
    EXPECT_EQ(token(), "Bearer second");
  }
}

TEST_F(client_test, a_refused_token_that_was_renewed_is_read_at_once) {
  token_file file;
  file.write("old");
  auto c = make(file.options());
  wire->then(200, a_map);
  EXPECT_TRUE(run(c->get(types::config_maps(), {"ns", "a"})));
  file.write("new");
  wire->then(401, status(401, "Unauthorized")).then(200, a_map);
  EXPECT_TRUE(run(c->get(types::config_maps(), {"ns", "a"})));
  EXPECT_EQ(wire->last().headers.get("Authorization"), "Bearer new");
  // The same token again: it is the caller's to know.
  wire->then(401, status(401, "Unauthorized"));
  auto got = run(c->get(types::config_maps(), {"ns", "a"}));
  EXPECT_EQ(got.error().code(), errc::unauthenticated);
  EXPECT_EQ(wire->all().size(), 4u);
  // raw() hands the refusal on; what is sent next has the new token.
  file.write("newest");
  wire->then(401, status(401, "Unauthorized")).then(200, a_map);
  auto refused = run(c->raw(http::request("GET", "/version")));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 401);
  EXPECT_TRUE(run(c->get(types::config_maps(), {"ns", "a"})));
  EXPECT_EQ(wire->last().headers.get("Authorization"), "Bearer newest");
}

TEST_F(client_test, without_a_token_in_its_file_nothing_is_sent) {
  token_file file;
  auto got = run(make(file.options())->get(types::config_maps(), {"ns", "a"}));
  EXPECT_EQ(got.error().reason(), "NoToken");
  EXPECT_TRUE(wire->all().empty());
}

TEST_F(client_test, a_bad_name_sends_nothing) {
  auto got = run(make()->get(types::config_maps(), {"ns", "../secrets"}));
  EXPECT_EQ(got.error().code(), errc::invalid_argument);
  EXPECT_TRUE(wire->all().empty());
}

TEST_F(client_test, list_asks_for_a_page_and_names_the_kind_of_items) {
  wire->then(200, R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"9","continue":"c/1"},
                      "items":[{"metadata":{"name":"a"}},{"kind":"X","apiVersion":"y/v1"}]})");
  list_options options;
  options.label_selector = "a=b";
  options.resource_version = "0";
  auto page = run(make()->list(types::config_maps(), "ns", options));
  ASSERT_TRUE(page);
  EXPECT_EQ(wire->last().target, "/api/v1/namespaces/ns/configmaps?labelSelector=a%3Db&limit=500&resourceVersion=0");
  EXPECT_EQ(page->continue_token, "c/1");
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->items[0].at("kind"), "ConfigMap");
  EXPECT_EQ(page->items[0].at("apiVersion"), "v1");
  EXPECT_EQ(page->items[1].at("kind"), "X");
}

TEST_F(client_test, list_all_follows_pages_and_starts_over_when_the_token_expired) {
  wire->then(200, R"({"metadata":{"resourceVersion":"9","continue":"c1"},"items":[{"metadata":{"name":"old"}}]})")
      .then(410, status(410, "Expired"))
      .then(200, R"({"metadata":{"resourceVersion":"12","continue":"c2"},"items":[{"metadata":{"name":"a"}}]})")
      .then(200, R"({"metadata":{"resourceVersion":"12"},"items":[{"metadata":{"name":"b"}}]})");
  auto c = make();
  auto all = run(list_all(*c, types::config_maps(), "ns"));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->items.size(), 2u);
  EXPECT_EQ(name_of(all->items[0]), "a");
  EXPECT_EQ(name_of(all->items[1]), "b");
  EXPECT_EQ(all->resource_version, "12");
  EXPECT_EQ(wire->last().target, "/api/v1/namespaces/ns/configmaps?limit=500&continue=c2");
}

TEST_F(client_test, items_null_is_an_empty_list_and_no_items_is_damage) {
  wire->then(200, R"({"metadata":{"resourceVersion":"1"},"items":null})").then(200, R"({"metadata":{}})");
  auto c = make();
  EXPECT_TRUE(run(c->list(types::config_maps(), "ns"))->items.empty());
  EXPECT_EQ(run(c->list(types::config_maps(), "ns")).error().code(), errc::data_loss);
}

TEST_F(client_test, create_posts_to_the_collection_and_fills_in_the_kind) {
  wire->then(201, a_map);
  object o{{"metadata", {{"name", "a"}, {"namespace", "ns"}}}};
  write_options options;
  options.dry_run = true;
  options.strict_validation = true;
  ASSERT_TRUE(run(make()->create(types::config_maps(), o, options)));
  auto s = wire->last();
  EXPECT_EQ(s.method + " " + s.target,
            "POST /api/v1/namespaces/ns/configmaps?fieldManager=kubeopera&dryRun=All&fieldValidation=Strict");
  EXPECT_EQ(s.headers.get("Content-Type"), "application/json");
  auto body = boost::json::parse(s.body).as_object();
  EXPECT_EQ(body.at("kind"), "ConfigMap");
  EXPECT_EQ(body.at("apiVersion"), "v1");
}

TEST_F(client_test, create_with_a_generated_name_needs_a_namespace_only) {
  wire->then(201, a_map);
  object o{{"metadata", {{"generateName", "a-"}, {"namespace", "ns"}}}};
  EXPECT_TRUE(run(make()->create(types::config_maps(), o)));
  object nowhere{{"metadata", {{"generateName", "a-"}}}};
  EXPECT_EQ(run(make()->create(types::config_maps(), nowhere)).error().code(), errc::invalid_argument);
}

TEST_F(client_test, writes_have_the_right_method_path_and_type) {
  auto c = make();
  auto o = config_map("a", "5");
  for (int i = 0; i < 6; ++i) wire->then(200, a_map);
  write_options status_of;
  status_of.subresource = "status";
  ASSERT_TRUE(run(c->replace(types::config_maps(), o, status_of)));
  EXPECT_EQ(wire->last().method + " " + wire->last().target,
            "PUT /api/v1/namespaces/ns/configmaps/a/status?fieldManager=kubeopera");
  EXPECT_EQ(boost::json::parse(wire->last().body).at("metadata").at("resourceVersion"), "5");

  write_options forced;
  forced.force = true;
  forced.field_manager = "me";
  ASSERT_TRUE(run(c->apply(types::config_maps(), o, forced)));
  EXPECT_EQ(wire->last().method + " " + wire->last().target,
            "PATCH /api/v1/namespaces/ns/configmaps/a?fieldManager=me&force=true");
  EXPECT_EQ(wire->last().headers.get("Content-Type"), "application/apply-patch+yaml");

  struct row {
    patch_kind kind;
    const char* type;
  };
  for (auto r :
       {row{patch_kind::merge, "application/merge-patch+json"}, row{patch_kind::json_patch, "application/json-patch+json"},
        row{patch_kind::strategic, "application/strategic-merge-patch+json"}}) {
    ASSERT_TRUE(run(c->patch(types::config_maps(), {"ns", "a"}, r.kind, json::object{{"data", nullptr}}, forced)));
    EXPECT_EQ(wire->last().headers.get("Content-Type"), r.type);
    EXPECT_EQ(wire->last().target, "/api/v1/namespaces/ns/configmaps/a?fieldManager=me") << "force is for apply alone";
  }
}

TEST_F(client_test, remove_sends_delete_options) {
  wire->then(200, R"({"kind":"Status","status":"Success"})");
  delete_options options;
  options.propagation = "Foreground";
  options.uid = "u1";
  ASSERT_TRUE(run(make()->remove(types::config_maps(), {"ns", "a"}, options)));
  auto body = boost::json::parse(wire->last().body);
  EXPECT_EQ(wire->last().method, "DELETE");
  EXPECT_EQ(body.at("kind"), "DeleteOptions");
  EXPECT_EQ(body.at("propagationPolicy"), "Foreground");
  EXPECT_EQ(body.at("preconditions").at("uid"), "u1");
}

TEST_F(client_test, logs_build_the_query_and_stream) {
  wire->then_stream({std::string("line 1\n"), std::string("line 2\n")});
  log_options options;
  options.container = "web";
  options.follow = true;
  options.tail_lines = 10;
  options.limit_bytes = 1 << 20;
  auto body = run(make()->logs({"ns", "p"}, options));
  ASSERT_TRUE(body);
  EXPECT_EQ(wire->last().target, "/api/v1/namespaces/ns/pods/p/log?container=web&follow=true&tailLines=10&limitBytes=1048576");
  EXPECT_TRUE(wire->last().stream);
  EXPECT_EQ(*run(http::read_all(**body, 1000)), "line 1\nline 2\n");
  options.container = "web&x=1";
  EXPECT_EQ(run(make()->logs({"ns", "p"}, options)).error().code(), errc::invalid_argument);
}

TEST_F(client_test, a_refused_stream_reads_its_status) {
  wire->then([](const sent&) {
    http::response r(400);
    r.stream = http::make_body(status(400, "BadRequest"));
    return result<http::response>(std::move(r));
  });
  auto body = run(make()->logs({"ns", "p"}, log_options()));
  EXPECT_EQ(body.error().code(), errc::invalid_argument);
  EXPECT_EQ(body.error().message(), "no");
}

TEST_F(client_test, raw_sends_what_it_is_given_and_calls_a_404_a_success) {
  wire->then(404, "{}");
  auto c = make();
  auto r = run(c->raw(http::request("GET", "/version?x=1")));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->status, 404);
  EXPECT_EQ(wire->last().target, "/version?x=1");
  for (auto target : {"version", "//evil/x", "/a b", "/a\r\nX: y"}) {
    EXPECT_EQ(run(c->raw(http::request("GET", target))).error().reason(), "InvalidTarget") << target;
  }
}

TEST_F(client_test, an_answer_that_is_no_json_is_damage) {
  wire->then(200, "<html>").then(200, "[]");
  auto c = make();
  EXPECT_EQ(run(c->get(types::config_maps(), {"ns", "a"})).error().code(), errc::data_loss);
  EXPECT_EQ(run(c->get(types::config_maps(), {"ns", "a"})).error().code(), errc::data_loss);
}

TEST_F(client_test, throttled_requests_wait_as_told_and_go_again) {
  wire->then(429, status(429, "TooManyRequests"), {{"Retry-After", "2"}})
      .then(503, "", {{"Retry-After", "600"}})
      .then(200, a_map);
  ASSERT_TRUE(run(make()->create(types::config_maps(), config_map("a", ""))));
  ASSERT_EQ(time.slept().size(), 2u);
  EXPECT_GT(time.slept()[0], 2s);
  EXPECT_LT(time.slept()[0], 3s);
  EXPECT_GT(time.slept()[1], 60s) << "ten minutes are capped to one";
  EXPECT_LT(time.slept()[1], 61s);
}

TEST_F(client_test, a_post_is_not_sent_again_unless_the_answer_says_that_nothing_was_done) {
  for (auto [code, retry_after] : {std::pair{500, true}, {504, true}, {503, false}, {429, false}, {409, true}}) {
    http::fields headers;
    if (retry_after) headers.add("Retry-After", "1");
    wire->then(code, "", headers);
    auto before = wire->all().size();
    EXPECT_FALSE(run(make()->create(types::config_maps(), config_map("a", ""))));
    EXPECT_EQ(wire->all().size(), before + 1) << code;
  }
}

TEST_F(client_test, reads_go_again_on_any_5xx_that_says_when) {
  wire->then(504, R"({"kind":"Status","reason":"Timeout","code":504,"details":{"retryAfterSeconds":1}})").then(200, a_map);
  EXPECT_TRUE(run(make()->get(types::config_maps(), {"ns", "a"})));
  wire->then(500, "");
  EXPECT_EQ(run(make()->get(types::config_maps(), {"ns", "a"})).error().code(), errc::unavailable);
}

TEST_F(client_test, retries_end_after_max_retries_and_give_the_last_answer) {
  client_options options;
  options.max_retries = 2;
  for (int i = 0; i < 3; ++i) wire->then(429, status(429, "TooManyRequests"), {{"Retry-After", "1"}});
  auto r = run(make(options)->get(types::config_maps(), {"ns", "a"}));
  EXPECT_EQ(r.error().code(), errc::resource_exhausted);
  EXPECT_EQ(r.error().retry_after(), 1s);
  EXPECT_EQ(wire->all().size(), 3u);
}

TEST_F(client_test, the_budget_is_shared_by_all_calls_and_fills_again) {
  client_options options;
  options.retry_budget = 1;
  auto c = make(options);
  // Waits move this clock, so a wait of a tick leaves the budget as good as empty.
  wire->then(429, "").then(429, "");
  EXPECT_FALSE(run(c->get(types::config_maps(), {"ns", "a"})));
  EXPECT_EQ(wire->all().size(), 2u) << "one retry was all";
  wire->then(429, "");
  EXPECT_FALSE(run(c->get(types::config_maps(), {"ns", "a"})));
  EXPECT_EQ(wire->all().size(), 3u) << "none left";
  time.advance(2s);
  wire->then(429, "").then(200, a_map);
  EXPECT_TRUE(run(c->get(types::config_maps(), {"ns", "a"})));
}

TEST(retry, jitter_grows_and_is_drawn_from_the_whole_range) {
  error e(errc::resource_exhausted, "TooManyRequests", "");
  constexpr auto most = ~std::uint64_t{0};
  EXPECT_LE(kube::detail::decide_retry("GET", 429, e, 0, most).wait, 500ms);
  EXPECT_LE(kube::detail::decide_retry("GET", 429, e, 3, most).wait, 4s);
  EXPECT_LE(kube::detail::decide_retry("GET", 429, e, 60, most).wait, 30s);
  EXPECT_GT(kube::detail::decide_retry("GET", 429, e, 0, 0).wait, 0s);
  EXPECT_FALSE(kube::detail::decide_retry("GET", 404, e, 0, 0).again);
  EXPECT_FALSE(kube::detail::decide_retry("PATCH", 504, std::move(e).with_retry_after(1s), 0, 0).again);
}

TEST_F(client_test, a_transport_error_comes_back_as_it_is) {
  wire->then([](const sent&) { return result<http::response>(error(errc::unavailable, "ConnectFailed", "refused")); });
  auto r = run(make()->get(types::config_maps(), {"ns", "a"}));
  EXPECT_EQ(r.error().reason(), "ConnectFailed");
}
