// Sends calls to the API server; repeats throttled ones within a budget, with full jitter on top of Retry-After.
#include "src/kube/exchange.hpp"

#include <kubeopera/kube/status.hpp>

#include <algorithm>

namespace kubeopera::inline v1::kube::detail {

using std::chrono::seconds;

retry_budget::retry_budget(int capacity, const clock& clk)
    : clock_(clk), capacity_(capacity), left_(capacity), at_(clk.steady()) {}

bool retry_budget::take() {
  std::lock_guard lock(mutex_);
  auto now = clock_.steady();
  left_ = std::min(capacity_, left_ + std::chrono::duration<double>(now - at_).count());
  at_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

retry_decision decide_retry(std::string_view method, int code, const error& meaning, int attempt, std::uint64_t random) {
  bool told = meaning.retry_after().has_value();
  bool reads = method == "GET" || method == "HEAD";
  // 429 always means that nothing was done; so does 503 with Retry-After. Other 5xx may have done it: only reads go again.
  bool again = (code == 429 && (told || method != "POST")) || (code == 503 && told) || (reads && code >= 500 && told);
  if (!again) return {};
  constexpr duration first = std::chrono::milliseconds(500), most = seconds(30);
  auto ceiling = std::min<duration>(most, first * (1 << std::clamp(attempt, 0, 10)));
  auto jitter = duration(static_cast<duration::rep>(random % static_cast<std::uint64_t>(ceiling.count())) + 1);
  return {true, meaning.retry_after().value_or(seconds(0)) + jitter};
}

exchanger::exchanger(std::shared_ptr<http::transport> transport, client_options options)
    : transport_(std::move(transport)),
      options_(std::move(options)),
      clock_(options_.time ? options_.time : &clock::real()),
      budget_(options_.retry_budget, *clock_),
      bearer_(options_.bearer_token, options_.bearer_token_file, *clock_) {}

namespace {

// A target of raw() is the caller's, so it is looked at once more: one line, a path of its own.
bool target_is_clean(std::string_view target) noexcept {
  return target.starts_with('/') && !target.starts_with("//") &&
         std::all_of(target.begin(), target.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

constexpr std::size_t max_error_body = 1u << 20;

// What went wrong, as the answer's body says it. The code says enough when that cannot be read in time.
asio::awaitable<error> error_of(http::response& answer, exchanger& shared) {
  std::string body = std::move(answer.body);
  if (answer.stream) {
    auto read = http::read_all(*answer.stream, max_error_body);
    auto rest = co_await with_deadline<std::string>(shared.options().request_timeout, std::move(read));
    if (rest) body = std::move(*rest);
  }
  co_return error_of_response(answer.status, answer.headers, body, shared.time());
}

}  // namespace

task<http::response> exchanger::send(http::request req, std::string token, bool want_stream) {
  if (!target_is_clean(req.target)) co_return error(errc::invalid_argument, "InvalidTarget", "the request's target is not valid");
  if (!token.empty()) req.headers.set("Authorization", "Bearer " + token);
  req.headers.set("User-Agent", options_.user_agent);
  if (!req.headers.get("Accept")) req.headers.set("Accept", "application/json");
  auto op = transport_->send(std::move(req), want_stream);
  co_return co_await with_deadline<http::response>(options_.request_timeout, std::move(op));
}

task<http::response> exchange(std::shared_ptr<exchanger> shared, plan call, bool want_stream) {
  bool renewed = false;
  for (int attempt = 0;; ++attempt) {
    KUBEOPERA_CO_TRY(auto token, shared->credentials().current());
    http::request req(call.method, call.target, call.body);
    if (!call.content_type.empty()) req.headers.set("Content-Type", call.content_type);
    KUBEOPERA_CO_TRY(auto answer, co_await shared->send(std::move(req), token, want_stream));
    if (answer.status >= 200 && answer.status < 300) co_return std::move(answer);
    error meaning = co_await error_of(answer, *shared);
    // Refused with a token that has been renewed meanwhile: nothing was done, so the same request may go again, once.
    if (answer.status == 401 && !renewed && shared->credentials().renewed_since(token)) {
      renewed = true;
      continue;
    }
    auto next = decide_retry(call.method, answer.status, meaning, attempt, shared->random());
    if (!next.again || attempt >= shared->options().max_retries || !shared->budget().take()) co_return meaning;
    KUBEOPERA_CO_CHECK(co_await shared->time().sleep(next.wait));
  }
}

}  // namespace kubeopera::inline v1::kube::detail
