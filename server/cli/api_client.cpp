#include "server/cli/api_client.hpp"

#include <kubeopera/http/sse.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <cstdio>

namespace kubeopera::inline v1::cli {
namespace {

constexpr std::pair<const char*, errc> codes[] = {{"invalid_argument", errc::invalid_argument},
                                                  {"unauthenticated", errc::unauthenticated},
                                                  {"permission_denied", errc::permission_denied},
                                                  {"not_found", errc::not_found},
                                                  {"already_exists", errc::already_exists},
                                                  {"conflict", errc::conflict},
                                                  {"failed_precondition", errc::failed_precondition},
                                                  {"gone", errc::gone},
                                                  {"too_large", errc::too_large},
                                                  {"resource_exhausted", errc::resource_exhausted},
                                                  {"unsupported", errc::unsupported},
                                                  {"unavailable", errc::unavailable},
                                                  {"deadline_exceeded", errc::deadline_exceeded}};

error read_problem(const http::response& r) {
  auto doc = json::read_object(r.body);
  if (!doc) return {errc::internal, "HttpStatus", "the server answered with HTTP " + std::to_string(r.status)};
  errc code = errc::internal;
  for (auto [word, c] : codes)
    if (json::get_string(*doc, {"code"}) == word) code = c;
  error e(code, std::string(json::get_string(*doc, {"reason"})), std::string(json::get_string(*doc, {"detail"})));
  if (auto* all = json::get_array(*doc, {"errors"}))
    for (const auto& v : *all)
      if (auto* o = v.if_object())
        e = std::move(e).with_violation(std::string(json::get_string(*o, {"pointer"})),
                                        std::string(json::get_string(*o, {"message"})));
  if (code == errc::internal) e = std::move(e).with_detail("request id " + std::string(json::get_string(*doc, {"request_id"})));
  return e;
}

}  // namespace

result<std::shared_ptr<api_client>> api_client::make(asio::any_io_executor executor, const std::string& url, std::string token,
                                                     std::string ca_pem) {
  http::client_options o(url);
  o.tls.ca_pem = std::move(ca_pem);
  o.default_headers.set("User-Agent", "kubeopera-cli");
  KUBEOPERA_TRY(auto t, http::make_client(std::move(executor), o));
  return std::shared_ptr<api_client>(new api_client(std::move(t), std::move(token)));
}

http::request api_client::make_request(std::string method, std::string path) const {
  http::request req(std::move(method), std::move(path));
  req.headers.set("Authorization", "Bearer " + token_);
  return req;
}

task<json::value> api_client::call(std::string method, std::string path, const json::value* body, std::string idempotency_key) {
  auto req = make_request(std::move(method), std::move(path));
  if (body) {
    req.body = json::write(*body);
    req.headers.set("Content-Type", "application/json");
  }
  if (!idempotency_key.empty()) req.headers.set("Idempotency-Key", std::move(idempotency_key));
  KUBEOPERA_CO_TRY(auto r, co_await transport_->send(std::move(req)));
  if (r.status >= 300) co_return read_problem(r);
  if (r.body.empty()) co_return json::value();
  json::limits lim;
  lim.max_bytes = 32 << 20;
  co_return json::read(r.body, lim);
}

task<void> api_client::watch_status(const std::string& app_id, std::function<bool(const json::object& status)> on_status) {
  auto req = make_request("GET", "/api/v1/apps/" + app_id + "/deploy-status?watch=true");
  req.headers.set("Accept", "text/event-stream");
  KUBEOPERA_CO_TRY(auto r, co_await transport_->send(std::move(req), true));
  if (r.status != 200) {
    if (r.stream) {
      KUBEOPERA_CO_TRY(r.body, co_await http::read_all(*r.stream, 1 << 20));
    }
    co_return read_problem(r);
  }
  http::sse_reader events(std::move(r.stream));
  while (true) {
    KUBEOPERA_CO_TRY(auto event, co_await events.next());
    if (!event || event->type == "deleted") co_return result<void>();
    if (event->type != "status") continue;
    KUBEOPERA_CO_TRY(auto status, json::read_object(event->data));
    if (!on_status(status)) co_return result<void>();
  }
}

task<void> api_client::print_stream(std::string path) {
  auto req = make_request("GET", std::move(path));
  KUBEOPERA_CO_TRY(auto r, co_await transport_->send(std::move(req), true));
  if (r.status != 200) {
    if (r.stream) {
      KUBEOPERA_CO_TRY(r.body, co_await http::read_all(*r.stream, 1 << 20));
    }
    co_return read_problem(r);
  }
  while (r.stream) {
    KUBEOPERA_CO_TRY(auto piece, co_await r.stream->next());
    if (piece.empty()) break;
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  }
  co_return result<void>();
}

}  // namespace kubeopera::inline v1::cli
