// The Status table and the reading of Status objects and causes.
#include <kubeopera/http/retry_after.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/kube/status.hpp>

#include <algorithm>
#include <array>

namespace kubeopera::inline v1::kube {
namespace {

constexpr auto table = std::to_array<status_row>({
    {400, "BadRequest", errc::invalid_argument},
    {401, "Unauthorized", errc::unauthenticated},
    {403, "Forbidden", errc::permission_denied},
    {404, "NotFound", errc::not_found},
    {405, "MethodNotAllowed", errc::unsupported},
    {406, "NotAcceptable", errc::unsupported},
    {409, "AlreadyExists", errc::already_exists},
    {409, "Conflict", errc::conflict},
    {410, "Gone", errc::gone},
    {410, "Expired", errc::gone},
    {413, "RequestEntityTooLarge", errc::too_large},
    {415, "UnsupportedMediaType", errc::unsupported},
    {422, "Invalid", errc::invalid_argument},
    {429, "TooManyRequests", errc::resource_exhausted},
    {500, "InternalError", errc::unavailable},
    {500, "ServerTimeout", errc::unavailable},
    {500, "StoreReadError", errc::data_loss},
    {503, "ServiceUnavailable", errc::unavailable},
    {504, "Timeout", errc::deadline_exceeded},
});

constexpr std::size_t max_message = 4096;
constexpr std::size_t max_causes = 100;
constexpr std::int64_t max_wait_seconds = http::max_retry_after.count();

const status_row* row_of_reason(std::string_view reason) noexcept {
  auto it = std::find_if(table.begin(), table.end(), [&](const status_row& row) { return row.reason == reason; });
  return it == table.end() ? nullptr : &*it;
}

std::string_view reason_of_code(int code) noexcept {
  // 409 without a reason is a lost race, 410 an expired version, 500 the server's trouble: the words that go with their errc.
  if (code == 409) return "Conflict";
  auto it = std::find_if(table.begin(), table.end(), [&](const status_row& row) { return row.code == code; });
  if (it != table.end()) return it->reason;
  if (code >= 300 && code < 400) return "RedirectRefused";
  return "UnexpectedAnswer";
}

std::vector<violation> violations_of(const json::object& status) {
  std::vector<violation> out;
  const auto* causes = json::get_array(status, {"details", "causes"});
  if (!causes) return out;
  for (const auto& item : *causes) {
    const auto* cause = item.if_object();
    if (!cause || out.size() == max_causes) continue;
    auto field = json::get_string(*cause, {"field"});
    auto message = json::get_string(*cause, {"message"});
    if (field.empty() && message.empty()) continue;
    out.push_back({pointer_of_field(field), std::string(message.substr(0, max_message))});
  }
  return out;
}

// One step of a field path into a pointer; "[key]" steps keep the key, without the quotes it may have.
void append_step(std::string& out, std::string_view step) {
  if (step.size() >= 2 && step.front() == '"' && step.back() == '"') step = step.substr(1, step.size() - 2);
  if (!step.empty()) out = json::pointer_step(out, step);
}

}  // namespace

std::span<const status_row> status_table() noexcept { return table; }

errc errc_of_code(int code) noexcept {
  if (const auto* row = row_of_reason(reason_of_code(code)); row && row->code == code) return row->means;
  if (code == 408) return errc::deadline_exceeded;
  if (code >= 300 && code < 400) return errc::unsupported;
  if (code >= 400 && code < 500) return errc::invalid_argument;
  return errc::unavailable;
}

std::string pointer_of_field(std::string_view path) {
  std::string out;
  if (path == "<nil>") return out;
  std::size_t from = 0;
  for (std::size_t at = 0; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '.' && path[at] != '[') continue;
    append_step(out, path.substr(from, at - from));
    from = at + 1;
    if (at < path.size() && path[at] == '[') {
      auto close = path.find(']', at);
      if (close == std::string_view::npos) close = path.size();
      append_step(out, path.substr(from, close - from));
      at = close;
      from = std::min(close + 1, path.size());
    }
  }
  return out;
}

error error_of_status(const json::object& status, int http_status) {
  auto code = static_cast<int>(json::get_int(status, {"code"}, http_status));
  auto reason = json::get_string(status, {"reason"});
  const auto* row = row_of_reason(reason);
  if (reason.empty()) reason = reason_of_code(code);
  std::string message(json::get_string(status, {"message"}).substr(0, max_message));
  if (message.empty()) message = "the API server answered " + std::to_string(code);
  error out(row ? row->means : errc_of_code(code), std::string(reason.substr(0, 128)), std::move(message));
  auto wait = json::get_int(status, {"details", "retryAfterSeconds"});
  if (wait > 0) out = std::move(out).with_retry_after(std::chrono::seconds(std::min(wait, max_wait_seconds)));
  auto violations = violations_of(status);
  if (!violations.empty()) out = std::move(out).with_violations(std::move(violations));
  return out;
}

error error_of_response(int http_status, const http::fields& headers, std::string_view body, const clock& clk) {
  auto parsed = json::read_object(body);
  bool is_status = parsed && json::get_string(*parsed, {"kind"}) == "Status";
  error out = is_status ? error_of_status(*parsed, http_status)
                        : error(errc_of_code(http_status), std::string(reason_of_code(http_status)),
                                "the API server answered " + std::to_string(http_status))
                              .with_detail(std::string(body.substr(0, 512)));
  if (out.retry_after()) return out;
  if (auto wait = http::retry_after(headers, clk.now())) out = std::move(out).with_retry_after(*wait);
  return out;
}

}  // namespace kubeopera::inline v1::kube
