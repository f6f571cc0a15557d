// An API server without controllers, called directly: each request runs to its end on the test's thread.
#pragma once

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace kubeopera::testing_rig {

struct answer {
  int status = 0;
  http::fields headers;
  json::object body;
  std::string text;
  std::unique_ptr<http::body_source> stream;
  std::string at(std::initializer_list<std::string_view> path) const { return std::string(json::get_string(body, path)); }
  std::int64_t number(std::initializer_list<std::string_view> path, std::int64_t missing = -1) const {
    return json::get_int(body, path, missing);
  }
  std::string reason() const { return at({"reason"}); }
};

class api_rig {
 public:
  explicit api_rig(testing::api_server_options options = testing::api_server_options()) : server(std::move(options)) {}
  testing::api_server server;
  std::string token = "admin";

  answer get(const std::string& path) { return call("GET", path); }
  answer post(const std::string& path, const std::string& body) { return call("POST", path, body, "application/json"); }
  answer put(const std::string& path, const std::string& body) { return call("PUT", path, body, "application/json"); }
  answer merge(const std::string& path, const std::string& body) {
    return call("PATCH", path, body, "application/merge-patch+json");
  }
  answer strategic(const std::string& path, const std::string& body) {
    return call("PATCH", path, body, "application/strategic-merge-patch+json");
  }
  answer apply(const std::string& path, const std::string& manager, const std::string& body, bool force = false) {
    return call("PATCH", path + "?fieldManager=" + manager + (force ? "&force=true" : ""), body, "application/apply-patch+yaml");
  }
  answer remove(const std::string& path, const std::string& body = {}) { return call("DELETE", path, body, "application/json"); }

  answer call(const std::string& method, const std::string& path, const std::string& body = {}, const std::string& type = {}) {
    http::request r(method, path, body);
    if (!token.empty()) r.headers.set("Authorization", "Bearer " + token);
    if (!type.empty()) r.headers.set("Content-Type", type);
    return send(std::move(r));
  }

  answer send(http::request r) {
    answer out;
    run(fill(server.handler(), std::move(r), &out));
    if (auto o = json::read_object(out.text)) out.body = std::move(*o);
    return out;
  }

  /// The next piece of a stream; empty at its end or, after a second, where none comes.
  std::string next(answer& a) {
    std::string out;
    run(read(a.stream.get(), &out));
    return out;
  }

 private:
  static asio::awaitable<void> fill(http::handler h, http::request r, answer* out) {
    http::response got = co_await h(std::move(r));
    out->status = got.status;
    out->headers = got.headers;
    out->text = std::move(got.body);
    out->stream = std::move(got.stream);
  }
  static asio::awaitable<void> read(http::body_source* source, std::string* out) {
    auto piece = co_await with_deadline(std::chrono::seconds(1), source->next());
    *out = piece ? *piece : "error " + piece.error().reason();
  }
  void run(asio::awaitable<void> body) {
    asio::io_context io;
    spawn(io.get_executor(), std::move(body));
    io.run();
  }
};

inline const std::string maps = "/api/v1/namespaces/default/configmaps";
inline const std::string deployments = "/apis/apps/v1/namespaces/default/deployments";

inline std::string deployment(const std::string& name, int replicas = 1, const std::string& image = "nginx:1.27") {
  return R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":")" + name + R"("},"spec":{"replicas":)" +
         std::to_string(replicas) +
         R"(,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{)" +
         R"("containers":[{"name":"c","image":")" + image + R"("}]}}}})";
}

}  // namespace kubeopera::testing_rig
