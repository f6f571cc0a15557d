// One call to the API server: credentials, deadline, retries of throttled requests. Below the typed client.
#pragma once

#include "src/kube/bearer.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/kube/client.hpp>

#include <memory>
#include <mutex>
#include <string>

namespace kubeopera::inline v1::kube::detail {

/// A request that can be sent more than once.
struct plan {
  std::string method = "GET";
  std::string target;
  std::string content_type;
  std::string body;
};

/// What to do after an answer that is no success.
struct retry_decision {
  bool again = false;
  duration wait{};
};

/// Retries that all calls of one client share: a bucket that fills by one a second. Thread-safe.
class retry_budget {
 public:
  retry_budget(int capacity, const clock& clk);
  /// Takes one, where there is one.
  bool take();

 private:
  const clock& clock_;
  std::mutex mutex_;
  double capacity_, left_;
  steady_time at_;
};

/// Pure: whether the answer may be followed by the same request. attempt counts from 0; random drives the full jitter.
/// A POST is sent again only when the answer says that nothing was done (429 or 503 with Retry-After).
retry_decision decide_retry(std::string_view method, int http_status, const error& meaning, int attempt, std::uint64_t random);

/// What the calls of one client share. Thread-safe.
class exchanger {
 public:
  exchanger(std::shared_ptr<http::transport> transport, client_options options);
  clock& time() const noexcept { return *clock_; }
  std::uint64_t random() const { return options_.random ? options_.random() : random_u64(); }
  const client_options& options() const noexcept { return options_; }
  retry_budget& budget() noexcept { return budget_; }
  bearer& credentials() noexcept { return bearer_; }
  /// One attempt with this token ("": none); adds the user agent.
  task<http::response> send(http::request req, std::string token, bool want_stream);

 private:
  std::shared_ptr<http::transport> transport_;
  client_options options_;
  clock* clock_;
  retry_budget budget_;
  bearer bearer_;
};

/// The call's 2xx answer, or the error that another one means. shared and call live as long as the coroutine.
task<http::response> exchange(std::shared_ptr<exchanger> shared, plan call, bool want_stream = false);

}  // namespace kubeopera::inline v1::kube::detail
