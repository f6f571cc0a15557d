// A route is a row: method, path, access, handler, one sentence. All five are mandatory.
//
//   table<api_service> t;
//   t.get<&api_service::list_apps>("/api/v1/apps", access::needs("apps:read"), "List apps.");
//
// Handlers are members: task<R> f(call&), optionally followed by query<Q> and body<B>. From their types come parsing, the
// 400 with pointers, and the OpenAPI document. R is a described struct, page<T>, created<T>, accepted<T>, tagged<T>,
// no_content or http::response (streams).
#pragma once

#include "server/web/call.hpp"

#include <kubeopera/json/codec.hpp>
#include <kubeopera/json/write.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::web {

template <class T>
struct query {
  T value{};
  const T* operator->() const { return &value; }
};
template <class T>
struct body {
  T value{};
  const T* operator->() const { return &value; }
};
template <class T>
struct page {
  std::vector<T> items;
  std::string next_cursor;
};
template <class T>
struct tagged {
  T value{};
  std::string etag;
};
/// 201 with Location and ETag.
template <class T>
struct created {
  T value{};
  std::string location;
  std::string etag;
};
/// 202.
template <class T>
struct accepted {
  T value{};
};
struct no_content {};

/// One row, type-erased.
struct route {
  std::string method;
  std::string path;  ///< "/api/v1/apps/{appId}"
  web::access access = web::access::platform_admin();
  std::string summary;
  std::string operation_id;
  std::function<task<http::response>(call&)> run;
  // For OpenAPI.
  json::object (*query_schema)(json::schema_set&) = nullptr;
  json::object (*body_schema)(json::schema_set&) = nullptr;
  json::object (*reply_schema)(json::schema_set&) = nullptr;
  int success = 200;
  bool paged = false;
  bool stream = false;  ///< answers with text/event-stream or bytes
};

namespace detail {

/// Reads the query string into the members of a described struct. Errors: invalid_argument with pointers "?name".
result<json::object> query_object(const call& c, const json::object& schema);
/// Errors: invalid_argument for every query parameter; for routes that take none.
result<void> no_query(const call& c);
result<json::value> body_value(const call& c);
std::string operation_name(std::string_view pretty);

template <auto F>
std::string handler_name() {
  return operation_name(__PRETTY_FUNCTION__);
}

template <class T>
result<query<T>> read_query(const call& c) {
  static const json::object schema = json::schema<T>();
  KUBEOPERA_TRY(auto o, query_object(c, schema));
  auto decoded = json::decode<T>(o);
  if (!decoded) {
    auto e = decoded.error();
    std::vector<violation> all;
    for (const auto& v : e.violations()) all.push_back({"?" + (v.pointer.empty() ? v.pointer : v.pointer.substr(1)), v.message});
    return error(errc::invalid_argument, "InvalidQuery", "the query string is not valid").with_violations(std::move(all));
  }
  return query<T>{std::move(*decoded)};
}

template <class T>
result<body<T>> read_body(const call& c) {
  KUBEOPERA_TRY(auto v, body_value(c));
  KUBEOPERA_TRY(auto decoded, json::decode<T>(v));
  return body<T>{std::move(decoded)};
}

http::response json_response(int status, const json::value& v, const std::string& etag = {});

template <class R>
struct reply;

template <class T>
struct reply {
  static constexpr int status = 200;
  static http::response make(const T& v) { return json_response(200, json::encode(v)); }
  static json::object schema(json::schema_set& s) { return json::codec<T>::schema(s); }
};
template <class T>
struct reply<tagged<T>> {
  static constexpr int status = 200;
  static http::response make(const tagged<T>& v) { return json_response(200, json::encode(v.value), v.etag); }
  static json::object schema(json::schema_set& s) { return json::codec<T>::schema(s); }
};
template <class T>
struct reply<created<T>> {
  static constexpr int status = 201;
  static http::response make(const created<T>& v) {
    auto r = json_response(201, json::encode(v.value), v.etag);
    if (!v.location.empty()) r.headers.set("Location", v.location);
    return r;
  }
  static json::object schema(json::schema_set& s) { return json::codec<T>::schema(s); }
};
template <class T>
struct reply<accepted<T>> {
  static constexpr int status = 202;
  static http::response make(const accepted<T>& v) { return json_response(202, json::encode(v.value)); }
  static json::object schema(json::schema_set& s) { return json::codec<T>::schema(s); }
};
template <class T>
struct reply<page<T>> {
  static constexpr int status = 200;
  static http::response make(const page<T>& p) {
    json::object o;
    o["items"] = json::encode(p.items);
    o["next_cursor"] = p.next_cursor.empty() ? json::value() : json::value(p.next_cursor);
    return json_response(200, o);
  }
  static json::object schema(json::schema_set& s) {
    json::object items{{"type", "array"}, {"items", json::codec<T>::schema(s)}};
    json::object cursor{{"type", json::array{"string", "null"}}};
    return {{"type", "object"}, {"properties", json::object{{"items", std::move(items)}, {"next_cursor", std::move(cursor)}}}};
  }
};
template <>
struct reply<no_content> {
  static constexpr int status = 204;
  static http::response make(const no_content&) { return http::response(204); }
  static json::object schema(json::schema_set&) { return {}; }
};
template <>
struct reply<http::response> {
  static constexpr int status = 200;
  static json::object schema(json::schema_set&) { return {}; }
};

template <class R>
result<http::response> finish(result<R> r) {
  if (!r) return r.error();
  if constexpr (std::is_same_v<R, http::response>)
    return std::move(*r);
  else
    return reply<R>::make(*r);
}

template <class F>
struct handler_traits;
template <class S, class R>
struct handler_traits<task<R> (S::*)(call&)> {
  using reply_type = R;
  static void describe(route&) {}
  static task<http::response> run(S& s, task<R> (S::*f)(call&), call& c) {
    KUBEOPERA_CO_CHECK(no_query(c));
    auto r = co_await (s.*f)(c);
    co_return finish<R>(std::move(r));
  }
};
template <class S, class R, class Q>
struct handler_traits<task<R> (S::*)(call&, query<Q>)> {
  using reply_type = R;
  static void describe(route& r) {
    r.query_schema = [](json::schema_set&) { return json::schema<Q>(); };
  }
  static task<http::response> run(S& s, task<R> (S::*f)(call&, query<Q>), call& c) {
    KUBEOPERA_CO_TRY(auto q, read_query<Q>(c));
    auto r = co_await (s.*f)(c, std::move(q));
    co_return finish<R>(std::move(r));
  }
};
template <class S, class R, class B>
struct handler_traits<task<R> (S::*)(call&, body<B>)> {
  using reply_type = R;
  static void describe(route& r) {
    r.body_schema = [](json::schema_set& s) { return json::codec<B>::schema(s); };
  }
  static task<http::response> run(S& s, task<R> (S::*f)(call&, body<B>), call& c) {
    KUBEOPERA_CO_CHECK(no_query(c));
    KUBEOPERA_CO_TRY(auto b, read_body<B>(c));
    auto r = co_await (s.*f)(c, std::move(b));
    co_return finish<R>(std::move(r));
  }
};

template <class R>
inline constexpr bool is_page = false;
template <class T>
inline constexpr bool is_page<page<T>> = true;

}  // namespace detail

/// The routes of one service, in the order of its documentation.
template <class S>
class table {
 public:
  explicit table(std::shared_ptr<S> service) : service_(std::move(service)) {}

  template <auto F>
  table& get(std::string path, access a, std::string summary) {
    return add<F>("GET", std::move(path), std::move(a), std::move(summary));
  }
  template <auto F>
  table& post(std::string path, access a, std::string summary) {
    return add<F>("POST", std::move(path), std::move(a), std::move(summary));
  }
  template <auto F>
  table& put(std::string path, access a, std::string summary) {
    return add<F>("PUT", std::move(path), std::move(a), std::move(summary));
  }
  template <auto F>
  table& patch(std::string path, access a, std::string summary) {
    return add<F>("PATCH", std::move(path), std::move(a), std::move(summary));
  }
  template <auto F>
  table& del(std::string path, access a, std::string summary) {
    return add<F>("DELETE", std::move(path), std::move(a), std::move(summary));
  }

  std::vector<route> take() { return std::move(rows_); }

 private:
  template <auto F>
  table& add(std::string method, std::string path, access a, std::string summary) {
    using traits = detail::handler_traits<decltype(F)>;
    using R = typename traits::reply_type;
    route r;
    r.method = std::move(method);
    r.path = std::move(path);
    r.access = std::move(a);
    r.summary = std::move(summary);
    r.operation_id = detail::handler_name<F>();
    r.success = detail::reply<R>::status;
    r.reply_schema = &detail::reply<R>::schema;
    r.paged = detail::is_page<R>;
    r.stream = std::is_same_v<R, http::response>;
    traits::describe(r);
    auto service = service_;
    r.run = [service](call& c) { return traits::run(*service, F, c); };
    rows_.push_back(std::move(r));
    return *this;
  }

  std::shared_ptr<S> service_;
  std::vector<route> rows_;
};

}  // namespace kubeopera::inline v1::web
