// The pipeline of the router, against a small service of its own.
#include "server/web/router.hpp"

#include "server/web/paging.hpp"
#include "server/web/problem.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/read.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::web;

namespace {

struct thing {
  std::string name;
  int size = 1;
  static void rules(json::rule_set& r) {
    r("name").required().length(1, 5);
    r("size").range(1, 9);
  }
};
KUBEOPERA_DESCRIBE(thing, (name, size))

struct filter {
  std::optional<std::string> color;
  int limit = 50;
  bool deep = false;
  static void rules(json::rule_set& r) { r("limit").range(1, 500); }
};
KUBEOPERA_DESCRIBE(filter, (color, limit, deep))

struct thing_service {
  int created_count = 0;
  task<page<thing>> list_things(call&, query<filter> q) {
    page<thing> p;
    p.items.push_back({q->color.value_or("none"), q->limit % 10});
    p.next_cursor = q->deep ? "x" : "";
    co_return p;
  }
  task<created<thing>> create_thing(call& c, body<thing> b) {
    ++created_count;
    KUBEOPERA_CO_TRY(auto tenant, c.acting_tenant());
    co_return created<thing>{{b->name, b->size}, "/things/" + tenant, "7"};
  }
  task<tagged<thing>> get_thing(call& c) {
    if (c.param("id") == "gone") co_return error(errc::not_found, "ThingNotFound", "no such thing");
    co_return tagged<thing>{{c.param("id"), 1}, c.visible_tenant().value_or("all")};
  }
  task<no_content> delete_thing(call&) {
    co_return error(errc::unavailable, "Down", "the store is down").with_retry_after(std::chrono::seconds(3));
  }
};

class memory_idempotency final : public idempotency {
 public:
  std::map<std::string, std::pair<std::string, std::optional<saved_reply>>> all;
  task<std::optional<saved_reply>> begin(const call&, const std::string& key, const std::string& fingerprint) override {
    auto [it, fresh] = all.try_emplace(key, fingerprint, std::nullopt);
    if (fresh) co_return std::optional<saved_reply>();
    if (it->second.first != fingerprint) co_return error(errc::invalid_argument, "IdempotencyKeyReused", "used");
    if (!it->second.second) co_return error(errc::conflict, "RequestInProgress", "running");
    co_return it->second.second;
  }
  task<void> finish(const call&, const std::string& key, const saved_reply& reply) override {
    all[key].second = reply;
    co_return result<void>();
  }
  task<void> abandon(const call&, const std::string& key) override {
    all.erase(key);
    co_return result<void>();
  }
};

result<identity> who_is(std::string_view token) {
  identity i;
  i.user = std::string(token);
  if (token == "dev")
    i = {"dev", "t1", {"things:read", "things:write"}, false};
  else if (token == "reader")
    i = {"reader", "t1", {"things:read"}, false};
  else if (token == "homeless")
    i = {"homeless", std::nullopt, {"things:read", "things:write"}, false};
  else if (token == "admin")
    i = {"admin", std::nullopt, {}, true};
  else
    return error(errc::unauthenticated, "TokenSignature", "bad token");
  return i;
}

class web_router : public testing::Test {
 protected:
  web_router() {
    service = std::make_shared<thing_service>();
    router_options o;
    o.service = "things";
    o.title = "Things";
    o.authenticate = who_is;
    keys = std::make_shared<memory_idempotency>();
    o.idempotency = keys;
    r = std::make_unique<router>(o);
    table<thing_service> t(service);
    t.get<&thing_service::list_things>("/things", access::needs("things:read"), "List.");
    t.post<&thing_service::create_thing>("/things", access::needs("things:write"), "Create.");
    t.get<&thing_service::get_thing>("/things/{id}", access::needs("things:read"), "Get.");
    t.del<&thing_service::delete_thing>("/things/{id}", access::platform_admin(), "Delete.");
    r->add(t.take());
  }
  http::response send(std::string method, std::string target, std::string token = "", std::string body = "",
                      http::fields more = {}) {
    http::request req(std::move(method), std::move(target), body);
    req.headers = std::move(more);
    if (!token.empty()) req.headers.add("Authorization", "Bearer " + token);
    if (!body.empty() && !req.headers.get("Content-Type")) req.headers.set("Content-Type", "application/json");
    asio::io_context io;
    http::response out;
    spawn(io.get_executor(), keep(std::move(req), out));
    io.run();
    return out;
  }
  static std::string reason(const http::response& r) {
    auto o = json::read_object(r.body);
    return o ? std::string(json::get_string(*o, {"reason"})) : "not json: " + r.body;
  }
  asio::awaitable<void> keep(http::request req, http::response& out) { out = co_await r->handle(std::move(req)); }
  std::shared_ptr<thing_service> service;
  std::shared_ptr<memory_idempotency> keys;
  std::unique_ptr<router> r;
};

}  // namespace

TEST_F(web_router, identity_decides_before_anything_else) {
  EXPECT_EQ(send("GET", "/things").status, 401);
  EXPECT_EQ(send("GET", "/things", "nobody").status, 401);
  EXPECT_EQ(reason(send("GET", "/things", "homeless")), "TenantMissing");
  EXPECT_EQ(send("POST", "/things", "reader", "{}").status, 403);
  EXPECT_EQ(send("DELETE", "/things/1", "dev").status, 403);
  EXPECT_EQ(send("GET", "/things", "reader").status, 200);
  http::fields two{{"Authorization", "Bearer dev"}, {"Authorization", "Bearer admin"}};
  EXPECT_EQ(send("GET", "/things", "", "", two).status, 401);
  EXPECT_EQ(send("GET", "/things", "", "", {{"Authorization", "bearer dev"}}).status, 401);
}

TEST_F(web_router, query_and_body_errors_name_their_place) {
  auto q = send("GET", "/things?limit=x&nope=1&deep=maybe", "dev");
  EXPECT_EQ(q.status, 400);
  for (const char* p : {"\"?limit\"", "\"?nope\"", "\"?deep\""}) EXPECT_NE(q.body.find(p), std::string::npos) << q.body;
  EXPECT_EQ(send("GET", "/things?limit=501", "dev").status, 400);
  EXPECT_EQ(send("GET", "/things?limit=1&limit=2", "dev").status, 400);
  auto b = send("POST", "/things", "dev", R"({"name":"toolong","extra":1})");
  EXPECT_EQ(b.status, 400);
  EXPECT_NE(b.body.find("/name"), std::string::npos);
  EXPECT_NE(b.body.find("/extra"), std::string::npos);
  EXPECT_EQ(reason(send("POST", "/things", "dev", R"({"name":"a","name":"b"})")), "DuplicateKey");
  EXPECT_EQ(send("POST", "/things", "dev", "name=a", {{"Content-Type", "text/plain"}}).status, 415);
  EXPECT_EQ(service->created_count, 0);
}

TEST_F(web_router, a_body_is_json_in_utf8_and_nothing_else) {
  const std::string body = R"({"name":"a"})";
  for (const char* good : {"application/json", "APPLICATION/JSON", "application/json; charset=utf-8",
                           "application/json ; charset=\"UTF-8\"", "application/merge-patch+json"})
    EXPECT_EQ(send("POST", "/things", "dev", body, {{"Content-Type", good}}).status, 201) << good;
  EXPECT_EQ(send("POST", "/things", "dev", body, {{"Content-Type", "application/json"}, {"Content-Encoding", "identity"}}).status,
            201);
  auto before = service->created_count;
  for (const char* bad : {"application/json; charset=utf-16", "application/json; a=b", "application/jsonx", "text/json", ""})
    EXPECT_EQ(send("POST", "/things", "dev", body, {{"Content-Type", bad}}).status, 415) << bad;
  EXPECT_EQ(send("POST", "/things", "dev", body, {{"Content-Type", "application/json"}, {"Content-Encoding", "gzip"}}).status,
            415);
  auto nul = send("POST", "/things", "dev", R"({"name":"a\u0000"})");
  EXPECT_EQ(nul.status, 400);
  EXPECT_NE(nul.body.find("\"/name\""), std::string::npos) << nul.body;
  auto key = send("POST", "/things", "dev", R"({"name":"a","x":[{"\u0000":1}]})");
  EXPECT_NE(key.body.find("\"/x/0\""), std::string::npos) << key.body;
  EXPECT_EQ(service->created_count, before);
}

TEST_F(web_router, headers_of_one_value_are_not_there_twice) {
  for (const char* name : {"Content-Type", "Content-Encoding", "Idempotency-Key", "If-Match", "Last-Event-ID"}) {
    EXPECT_EQ(reason(send("GET", "/things", "dev", "", {{name, "a"}, {name, "a"}})), "DuplicateHeader") << name;
    EXPECT_EQ(send("GET", "/things", "dev", "", {{name, "a"}}).status, 200) << name;
  }
}

TEST_F(web_router, queries_are_refused_where_there_is_none_to_give) {
  auto get = send("GET", "/things/x?verbose=1&acting_tenant=t9", "dev");
  EXPECT_EQ(get.status, 400);
  EXPECT_NE(get.body.find("\"?verbose\""), std::string::npos) << get.body;
  EXPECT_EQ(get.body.find("acting_tenant"), std::string::npos) << get.body;
  EXPECT_EQ(reason(send("POST", "/things?dry_run=true", "dev", R"({"name":"a"})")), "InvalidQuery");
  EXPECT_EQ(service->created_count, 0);
}

TEST_F(web_router, created_has_location_and_etag) {
  auto r1 = send("POST", "/things", "dev", R"({"name":"a"})");
  EXPECT_EQ(r1.status, 201);
  EXPECT_EQ(r1.headers.get("Location"), "/things/t1");
  EXPECT_EQ(r1.headers.get("ETag"), "\"7\"");
  EXPECT_EQ(r1.body, R"({"name":"a","size":1})");
}

TEST_F(web_router, acting_tenant_is_for_administrators_only) {
  EXPECT_EQ(send("POST", "/things?acting_tenant=t9", "dev", R"({"name":"a"})").headers.get("Location"), "/things/t1");
  EXPECT_EQ(send("POST", "/things?acting_tenant=t9", "admin", R"({"name":"a"})").headers.get("Location"), "/things/t9");
  EXPECT_EQ(send("POST", "/things", "admin", R"({"name":"a"})").status, 400);
  EXPECT_EQ(send("POST", "/things?acting_tenant=", "admin", R"({"name":"a"})").status, 400);
  EXPECT_EQ(send("POST", "/things?acting_tenant=a&acting_tenant=b", "admin", R"({"name":"a"})").status, 400);
  for (const std::string id : {std::string("a%20b"), std::string("%C3%A4"), std::string(64, 'a')})
    EXPECT_EQ(send("POST", "/things?acting_tenant=" + id, "admin", R"({"name":"a"})").status, 400) << id;
  EXPECT_EQ(send("POST", "/things?acting_tenant=" + std::string(63, 'a'), "admin", R"({"name":"a"})").status, 201);
  EXPECT_EQ(send("GET", "/things/x?acting_tenant=t9", "dev").headers.get("ETag"), "\"t1\"");
  EXPECT_EQ(send("GET", "/things/x", "admin").headers.get("ETag"), "\"all\"");
}

TEST_F(web_router, paths_and_methods) {
  EXPECT_EQ(send("GET", "/nothing", "dev").status, 404);
  auto m = send("PUT", "/things", "dev");
  EXPECT_EQ(m.status, 405);
  EXPECT_EQ(m.headers.get("Allow"), "GET, POST");
  EXPECT_EQ(send("GET", "/things/../things", "dev").status, 400);
  EXPECT_EQ(send("GET", "/things/a%2fb", "dev").status, 400);
  EXPECT_EQ(send("GET", "/things/", "dev").status, 404);
  EXPECT_EQ(reason(send("GET", "/things/gone", "dev")), "ThingNotFound");
}

TEST_F(web_router, unavailable_carries_retry_after_and_request_ids_come_back) {
  auto r1 = send("DELETE", "/things/1", "admin", "", {{"X-Request-Id", "abc-1"}});
  EXPECT_EQ(r1.status, 503);
  EXPECT_EQ(r1.headers.get("Retry-After"), "3");
  EXPECT_EQ(r1.headers.get("X-Request-Id"), "abc-1");
  auto forged = send("GET", "/things", "dev", "", {{"X-Request-Id", "a b"}});
  EXPECT_EQ(forged.headers.get("X-Request-Id")->size(), 36u);
  auto longest = send("GET", "/things", "dev", "", {{"X-Request-Id", std::string(64, 'a')}});
  EXPECT_EQ(longest.headers.get("X-Request-Id")->size(), 64u);
  auto longer = send("GET", "/things", "dev", "", {{"X-Request-Id", std::string(65, 'a')}});
  EXPECT_EQ(longer.headers.get("X-Request-Id")->size(), 36u);
}

TEST_F(web_router, idempotency_key_runs_once) {
  http::fields key{{"Idempotency-Key", "k1"}};
  auto first = send("POST", "/things", "dev", R"({"name":"a"})", key);
  auto again = send("POST", "/things", "dev", R"({"name":"a"})", key);
  EXPECT_EQ(service->created_count, 1);
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.headers.get("Location"), first.headers.get("Location"));
  EXPECT_EQ(reason(send("POST", "/things", "dev", R"({"name":"b"})", key)), "IdempotencyKeyReused");
  EXPECT_EQ(send("POST", "/things", "dev", R"({"name":"a"})", {{"Idempotency-Key", std::string(201, 'x')}}).status, 400);
  EXPECT_EQ(send("POST", "/things", "dev", R"({"name":"a"})", {{"Idempotency-Key", std::string(200, 'x')}}).status, 201);
  for (const char* bad : {"", "\xff", "a\tb", "\x7f"})
    EXPECT_EQ(reason(send("POST", "/things", "dev", R"({"name":"a"})", {{"Idempotency-Key", bad}})), "InvalidIdempotencyKey")
        << bad;
}

TEST_F(web_router, documents_and_health) {
  EXPECT_EQ(send("GET", "/healthz").body, "ok\n");
  EXPECT_EQ(send("GET", "/readyz").status, 200);
  auto doc = json::read_object(send("GET", "/openapi.json").body);
  ASSERT_TRUE(doc.has_value());
  EXPECT_EQ(json::get_string(*doc, {"paths", "/things", "post", "operationId"}), "create_thing");
  EXPECT_EQ(json::get_string(*doc, {"paths", "/things/{id}", "delete", "x-required-permission"}), "platform_admin");
  EXPECT_NE(json::find(*doc, {"components", "schemas", "Thing"}), nullptr);
  auto page = send("GET", "/docs").body;
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

struct code_row {
  errc code;
  int status;
};
class web_status : public testing::TestWithParam<code_row> {};
TEST_P(web_status, of_each_error_code) {
  EXPECT_EQ(status_of(GetParam().code), GetParam().status);
  auto r = problem_response(error(GetParam().code, "Some", "words").with_violation("/a", "b"), "rid");
  EXPECT_EQ(r.status, GetParam().status);
  auto o = json::read_object(r.body).value();
  EXPECT_EQ(json::get_int(o, {"status"}), GetParam().status);
  EXPECT_EQ(json::get_string(o, {"code"}), to_string(GetParam().code));
  EXPECT_EQ(json::get_string(o, {"request_id"}), "rid");
  if (GetParam().status == 500) EXPECT_EQ(r.body.find("words"), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(all, web_status,
                         testing::Values(code_row{errc::invalid_argument, 400}, code_row{errc::unauthenticated, 401},
                                         code_row{errc::permission_denied, 403}, code_row{errc::not_found, 404},
                                         code_row{errc::already_exists, 409}, code_row{errc::conflict, 409},
                                         code_row{errc::failed_precondition, 412}, code_row{errc::gone, 410},
                                         code_row{errc::too_large, 413}, code_row{errc::resource_exhausted, 429},
                                         code_row{errc::unsupported, 501}, code_row{errc::unavailable, 503},
                                         code_row{errc::deadline_exceeded, 504}, code_row{errc::cancelled, 499},
                                         code_row{errc::data_loss, 500}, code_row{errc::internal, 500}));

TEST(web_paging, cursors_round_trip_and_refuse_others) {
  auto c = encode_cursor({"a", "b"});
  EXPECT_EQ(decode_cursor(c, 2).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(decode_cursor(c, 1));
  EXPECT_FALSE(decode_cursor("!!", 1));
  EXPECT_FALSE(decode_cursor(c + "=", 2));
  for (const char* other : {R"([1,"b"])", R"([null,"b"])", R"([["a"],"b"])", R"({"a":"b"})"})
    EXPECT_FALSE(decode_cursor(crypto::base64url_encode(other), 2)) << other;
}
