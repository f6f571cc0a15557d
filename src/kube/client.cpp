// The typed client: resource types and keys into calls, answers into objects.
#include "src/kube/decode.hpp"
#include "src/kube/exchange.hpp"
#include "src/kube/uri.hpp"
#include "src/kube/watch.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/client.hpp>

namespace kubeopera::inline v1::kube {
namespace {

using detail::plan;
using detail::query;
using shared_exchanger = std::shared_ptr<detail::exchanger>;

constexpr const char* json_type = "application/json";

// A thread's reader keeps its buffers; an answer that would make them large gets one of its own.
detail::decoder& reader_for(std::size_t bytes, std::optional<detail::decoder>& own) {
  thread_local detail::decoder kept;
  return bytes <= (1u << 20) ? kept : own.emplace();
}

result<void> check_size(const std::string& body, std::size_t most) {
  if (body.size() <= most) return {};
  return error(errc::too_large, "ResponseTooLarge", "the API server's answer is over " + std::to_string(most) + " bytes");
}

task<object> object_call(shared_exchanger shared, result<plan> call) {
  if (!call) co_return call.error();
  KUBEOPERA_CO_TRY(auto answer, co_await detail::exchange(shared, std::move(*call)));
  KUBEOPERA_CO_CHECK(check_size(answer.body, shared->options().max_response));
  std::optional<detail::decoder> own;
  auto& reader = reader_for(answer.body.size(), own);
  co_return reader.document(std::move(answer.body));
}

task<void> void_call(shared_exchanger shared, result<plan> call) {
  if (!call) co_return call.error();
  KUBEOPERA_CO_CHECK(co_await detail::exchange(shared, std::move(*call)));
  co_return result<void>();
}

detail::decode_style style_of(bool for_cache) {
  detail::decode_style style;
  style.packed = for_cache;
  style.managed_fields = !for_cache;
  return style;
}

task<object_list> list_call(shared_exchanger shared, result<plan> call, resource_type type, bool for_cache) {
  if (!call) co_return call.error();
  KUBEOPERA_CO_TRY(auto answer, co_await detail::exchange(shared, std::move(*call)));
  KUBEOPERA_CO_CHECK(check_size(answer.body, shared->options().max_response));
  std::optional<detail::decoder> own;
  auto& reader = reader_for(answer.body.size(), own);
  co_return reader.list(std::move(answer.body), type, style_of(for_cache));
}

task<std::unique_ptr<watch_stream>> watch_call(shared_exchanger shared, result<plan> call, int timeout_seconds, bool for_cache) {
  if (!call) co_return call.error();
  KUBEOPERA_CO_TRY(auto answer, co_await detail::exchange(shared, std::move(*call), true));
  if (!answer.stream) answer.stream = http::make_body(std::move(answer.body));
  // The server ends the watch after timeout_seconds, with some slack of its own.
  auto open_for = std::chrono::seconds(timeout_seconds + 30);
  co_return detail::make_watch_stream(std::move(answer.stream), open_for, shared->time(), style_of(for_cache));
}

task<std::unique_ptr<http::body_source>> stream_call(shared_exchanger shared, result<plan> call) {
  if (!call) co_return call.error();
  KUBEOPERA_CO_TRY(auto answer, co_await detail::exchange(shared, std::move(*call), true));
  if (!answer.stream) answer.stream = http::make_body(std::move(answer.body));
  co_return std::move(answer.stream);
}

task<http::response> raw_call(shared_exchanger shared, http::request req, bool want_stream) {
  KUBEOPERA_CO_TRY(auto token, shared->credentials().current());
  KUBEOPERA_CO_TRY(auto answer, co_await shared->send(std::move(req), token, want_stream));
  if (answer.status == 401) shared->credentials().renewed_since(token);  // for the caller's next try; this answer is the caller's
  co_return std::move(answer);
}

void add_write_options(query& q, const write_options& options) {
  q.add("fieldManager", options.field_manager);
  if (options.dry_run) q.add("dryRun", "All");
  if (options.strict_validation) q.add("fieldValidation", "Strict");
}

std::string body_of(const resource_type& type, const object& obj) {
  if (obj.contains("apiVersion") && obj.contains("kind")) return json::write(obj);
  object named = obj;
  if (!named.contains("apiVersion")) named["apiVersion"] = type.api_version();
  if (!named.contains("kind")) named["kind"] = type.kind;
  return json::write(named);
}

result<plan> write_plan(std::string method, result<std::string> path, const write_options& options, std::string content_type,
                        std::string body) {
  if (!path) return path.error();
  query q;
  add_write_options(q, options);
  if (options.force && content_type == "application/apply-patch+yaml") q.add("force", "true");
  return plan{std::move(method), q.on(std::move(*path)), std::move(content_type), std::move(body)};
}

result<plan> create_plan(const resource_type& type, const object& obj, const write_options& options) {
  auto key = key_of(obj);
  if (!key.name.empty() && !is_dns_subdomain(key.name)) return detail::object_path(type, key).error();
  auto path =
      options.subresource.empty() ? detail::collection_path(type, key.ns) : detail::object_path(type, key, options.subresource);
  if (path && type.namespaced && key.ns.empty()) return detail::object_path(type, key).error();
  return write_plan("POST", std::move(path), options, json_type, body_of(type, obj));
}

result<plan> list_plan(const resource_type& type, const std::string& ns, const list_options& options) {
  KUBEOPERA_TRY(auto path, detail::collection_path(type, ns));
  query q;
  q.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  if (options.limit > 0) q.add("limit", options.limit);
  q.add("continue", options.continue_token);
  // The token holds the version; giving both is an error.
  if (options.continue_token.empty()) q.add("resourceVersion", options.resource_version);
  return plan{"GET", q.on(std::move(path)), {}, {}};
}

result<plan> watch_plan(const resource_type& type, const std::string& ns, const watch_options& options) {
  KUBEOPERA_TRY(auto path, detail::collection_path(type, ns));
  query q;
  q.add("watch", "true").add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  q.add("resourceVersion", options.resource_version);
  if (options.bookmarks) q.add("allowWatchBookmarks", "true");
  q.add("timeoutSeconds", options.timeout_seconds);
  return plan{"GET", q.on(std::move(path)), {}, {}};
}

result<plan> delete_plan(const resource_type& type, const object_key& key, const delete_options& options) {
  KUBEOPERA_TRY(auto path, detail::object_path(type, key));
  object body;
  body["apiVersion"] = "v1";
  body["kind"] = "DeleteOptions";
  if (!options.propagation.empty()) body["propagationPolicy"] = options.propagation;
  object preconditions;
  if (!options.uid.empty()) preconditions["uid"] = options.uid;
  if (!options.resource_version.empty()) preconditions["resourceVersion"] = options.resource_version;
  if (!preconditions.empty()) body["preconditions"] = std::move(preconditions);
  return plan{"DELETE", std::move(path), json_type, json::write(body)};
}

result<plan> log_plan(const object_key& pod, const log_options& options) {
  if (!options.container.empty() && !is_dns_label(options.container)) {
    return error(errc::invalid_argument, "InvalidName", "the container is not a valid name");
  }
  KUBEOPERA_TRY(auto path, detail::object_path(types::pods(), pod, "log"));
  query q;
  q.add("container", options.container);
  if (options.follow) q.add("follow", "true");
  if (options.previous) q.add("previous", "true");
  if (options.timestamps) q.add("timestamps", "true");
  if (options.tail_lines) q.add("tailLines", *options.tail_lines);
  if (options.limit_bytes) q.add("limitBytes", *options.limit_bytes);
  if (options.since_seconds) q.add("sinceSeconds", *options.since_seconds);
  return plan{"GET", q.on(std::move(path)), {}, {}};
}

std::string content_type_of(patch_kind kind) {
  switch (kind) {
    case patch_kind::merge:
      return "application/merge-patch+json";
    case patch_kind::json_patch:
      return "application/json-patch+json";
    case patch_kind::strategic:
      return "application/strategic-merge-patch+json";
  }
  return "application/merge-patch+json";
}

// Every member builds its call at once and by value: what it was given may be gone when the task starts.
class http_client final : public client {
 public:
  http_client(std::shared_ptr<http::transport> transport, client_options options)
      : shared_(std::make_shared<detail::exchanger>(std::move(transport), std::move(options))) {}

  task<object> get(const resource_type& type, const object_key& key) override {
    auto path = detail::object_path(type, key);
    result<plan> call = path ? result<plan>(plan{"GET", std::move(*path), {}, {}}) : result<plan>(path.error());
    return object_call(shared_, std::move(call));
  }

  task<object_list> list(const resource_type& type, const std::string& ns, const list_options& options) override {
    return list_call(shared_, list_plan(type, ns, options), type, options.for_cache);
  }

  task<object> create(const resource_type& type, const object& obj, const write_options& options) override {
    return object_call(shared_, create_plan(type, obj, options));
  }

  task<object> replace(const resource_type& type, const object& obj, const write_options& options) override {
    auto path = detail::object_path(type, key_of(obj), options.subresource);
    return object_call(shared_, write_plan("PUT", std::move(path), options, json_type, body_of(type, obj)));
  }

  task<object> patch(const resource_type& type, const object_key& key, patch_kind kind, const json::value& body,
                     const write_options& options) override {
    auto path = detail::object_path(type, key, options.subresource);
    return object_call(shared_, write_plan("PATCH", std::move(path), options, content_type_of(kind), json::write(body)));
  }

  task<object> apply(const resource_type& type, const object& obj, const write_options& options) override {
    auto path = detail::object_path(type, key_of(obj), options.subresource);
    return object_call(shared_,
                       write_plan("PATCH", std::move(path), options, "application/apply-patch+yaml", body_of(type, obj)));
  }

  task<void> remove(const resource_type& type, const object_key& key, const delete_options& options) override {
    return void_call(shared_, delete_plan(type, key, options));
  }

  task<std::unique_ptr<watch_stream>> watch(const resource_type& type, const std::string& ns,
                                            const watch_options& options) override {
    return watch_call(shared_, watch_plan(type, ns, options), options.timeout_seconds, options.for_cache);
  }

  task<std::unique_ptr<http::body_source>> logs(const object_key& pod, const log_options& options) override {
    return stream_call(shared_, log_plan(pod, options));
  }

  task<http::response> raw(http::request req, bool want_stream) override {
    return raw_call(shared_, std::move(req), want_stream);
  }

 private:
  shared_exchanger shared_;
};

constexpr int max_list_restarts = 3;

}  // namespace

std::shared_ptr<client> make_client(std::shared_ptr<http::transport> transport, client_options options) {
  return std::make_shared<http_client>(std::move(transport), std::move(options));
}

task<object_list> list_all(client& c, const resource_type& type, const std::string& ns, list_options options) {
  object_list out;
  options.continue_token.clear();
  for (int restarts = 0;;) {
    auto page = co_await c.list(type, ns, options);
    if (!page) {
      bool expired = page.error().code() == errc::gone && !options.continue_token.empty();
      if (!expired || ++restarts > max_list_restarts) co_return page.error();
      out = object_list();
      options.continue_token.clear();
      continue;
    }
    for (auto& item : page->items) out.items.push_back(std::move(item));
    out.resource_version = std::move(page->resource_version);
    if (page->continue_token.empty()) co_return out;
    options.continue_token = std::move(page->continue_token);
  }
}

}  // namespace kubeopera::inline v1::kube
