// Live data: deploy-status, pods, events, logs.
#include "server/services/api/log_merge.hpp"
#include "server/services/api/service.hpp"
#include "server/web/paging.hpp"
#include "server/web/problem.hpp"

#include <kubeopera/http/sse.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::api {
namespace {

constexpr auto watch_interval = std::chrono::milliseconds(150);
constexpr std::size_t max_event_offset = 10'000'000;
constexpr auto watch_limit = std::chrono::minutes(30);

// What a change is judged by: everything but the time of checking.
std::string fingerprint(deploy_status_view v) {
  v.checked_at.clear();
  return json::write(json::encode(v));
}

// Sends the status on every change until the reader leaves, the app is gone or the limit is reached.
asio::awaitable<void> stream_status(std::shared_ptr<store> rows, std::shared_ptr<live> cluster,
                                    std::shared_ptr<http::sse_channel> out, std::string id, std::optional<std::string> tenant,
                                    clock& clk) {
  std::string last;
  std::uint64_t number = 0;
  auto end = clk.steady() + watch_limit;
  while (!out->closed() && clk.steady() < end) {
    auto row = co_await rows->app(id, tenant);
    if (!row) {
      auto e = row.error();
      bool gone = e.code() == errc::not_found;
      auto words = json::write(web::problem_document(e, ""));
      if (words != last) {  // said once, however long it lasts
        http::sse_event event(gone ? "deleted" : "error", words);
        out->send(event);
        last = std::move(words);
      }
      if (gone) break;
    } else {
      auto status = co_await cluster->status(*row);
      if (!status && status.error().code() == errc::cancelled) break;
      if (status) {
        auto now = fingerprint(*status);
        if (now != last) {
          http::sse_event event("status", json::write(json::encode(*status)));
          event.id = ++number;
          if (!out->send(event)) break;
          last = std::move(now);
        }
      }
    }
    auto slept = co_await clk.sleep(watch_interval);
    if (!slept) break;
  }
  out->close();
}

event_view view_event(const kube::object& e) {
  event_view v;
  v.type = json::get_string(e, {"type"});
  v.reason = json::get_string(e, {"reason"});
  v.message = json::get_string(e, {"message"});
  v.object = std::string(json::get_string(e, {"involvedObject", "kind"})) + "/" +
             std::string(json::get_string(e, {"involvedObject", "name"}));
  auto created = json::get_string(e, {"metadata", "creationTimestamp"});
  v.first_seen = json::get_string(e, {"firstTimestamp"}, created);
  v.last_seen = json::get_string(e, {"lastTimestamp"}, created);
  v.count = static_cast<int>(json::get_int(e, {"count"}, 1));
  return v;
}

kube::log_options log_options_of(const log_query& q) {
  kube::log_options o;
  o.container = q.container.value_or("");
  o.follow = q.follow;
  o.previous = q.previous;
  o.timestamps = q.timestamps;
  o.tail_lines = q.tail;
  o.since_seconds = q.since_seconds;
  return o;
}

}  // namespace

task<http::response> api_service::deploy_status(web::call& c, web::query<watch_query> q) {
  KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
  auto accept = c.request.headers.get("Accept").value_or("");
  if (q->watch || accept.find("text/event-stream") != std::string_view::npos) {
    // A stream begins with the present status, so that there is nothing to catch up on; but the header must be ours.
    if (auto last = c.request.headers.get("Last-Event-ID")) KUBEOPERA_CO_CHECK(http::parse_last_event_id(*last));
    auto channel = std::make_shared<http::sse_channel>();
    auto reply = http::make_sse_response(*channel);
    auto executor = co_await current_executor();
    spawn(executor, stream_status(store_, live_, channel, row.id, c.visible_tenant(), clock_));
    co_return std::move(reply);
  }
  KUBEOPERA_CO_TRY(auto status, co_await live_->status(row));
  co_return web::detail::json_response(200, json::encode(status));
}

task<web::page<pod_view>> api_service::list_pods(web::call& c) {
  KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
  KUBEOPERA_CO_TRY(auto pods, co_await live_->pods(row));
  auto resource = co_await host_->get(kube::types::kubeopera_apps(), {options_.system_namespace, row.resource});
  std::string hash = resource ? std::string(json::get_string(*resource, {"status", "template_hash"})) : std::string();
  web::page<pod_view> page;
  for (const auto& p : pods) page.items.push_back(view_pod(p, hash));
  co_return page;
}

task<web::page<event_view>> api_service::list_events(web::call& c, web::query<page_query> q) {
  KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
  std::size_t from = 0;
  if (q->cursor) {
    KUBEOPERA_CO_TRY(auto parts, web::decode_cursor(*q->cursor, 1));
    auto last = parts[0].data() + parts[0].size();
    auto [end, ec] = std::from_chars(parts[0].data(), last, from);
    if (ec != std::errc() || end != last || from > max_event_offset)
      co_return error(errc::invalid_argument, "InvalidCursor", "the cursor is not one that this list gave out")
          .with_violation("?cursor", "is not valid");
  }
  KUBEOPERA_CO_TRY(auto client, co_await live_->client_of(row));
  KUBEOPERA_CO_TRY(auto list, co_await kube::list_all(*client, kube::types::events(), row.name));
  std::vector<event_view> all;
  for (const auto& e : list.items) all.push_back(view_event(e));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.last_seen > b.last_seen; });
  web::page<event_view> page;
  auto limit = static_cast<std::size_t>(q->limit);
  for (std::size_t i = from; i < all.size() && page.items.size() < limit; ++i) page.items.push_back(all[i]);
  if (from + limit < all.size()) page.next_cursor = web::encode_cursor({std::to_string(from + limit)});
  co_return page;
}

task<http::response> api_service::read_logs(web::call& c, web::query<log_query> q) {
  KUBEOPERA_CO_TRY(auto row, co_await row_of(c));
  KUBEOPERA_CO_TRY(auto pods, co_await live_->pods(row));
  if (q->pod) {
    std::erase_if(pods, [&](const auto& p) { return kube::name_of(p) != *q->pod; });
    if (pods.empty()) co_return error(errc::not_found, "PodNotFound", "this app has no pod named " + *q->pod);
  }
  KUBEOPERA_CO_TRY(auto client, co_await live_->client_of(row));
  auto options = log_options_of(q.value);
  std::vector<named_source> sources;
  std::optional<error> first_failure;
  for (const auto& p : pods) {
    auto source = co_await client->logs(kube::key_of(p), options);
    if (source)
      sources.emplace_back(std::string(kube::name_of(p)), std::move(*source));
    else if (!first_failure)
      first_failure = source.error();
  }
  // One pod that has no log yet does not hide the others' logs.
  if (sources.empty() && first_failure) co_return *first_failure;
  http::response reply(200, "text/plain; charset=utf-8", "");
  reply.headers.set("Cache-Control", "no-store");
  if (!sources.empty()) {
    auto executor = co_await current_executor();
    reply.stream = merge_logs(executor, std::move(sources));
    reply.endless = q->follow;
  }
  co_return std::move(reply);
}

}  // namespace kubeopera::inline v1::api
