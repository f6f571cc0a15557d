// The one error type of the SDK: a canonical code, a stable reason, a message fit for the caller.
// Not here: mapping to HTTP, SQLSTATE, Git or Kubernetes words; each boundary owns one table.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1 {

/// What kind of failure it is, and so what the caller can do about it.
enum class errc {
  invalid_argument,     ///< the request is wrong; sending it again will not help
  unauthenticated,      ///< who calls is not known
  permission_denied,    ///< known, but may not
  not_found,            ///< no such thing, or not yours to see
  already_exists,       ///< something with that name is there
  conflict,             ///< changed meanwhile; read again, then retry
  failed_precondition,  ///< the state does not allow it now
  gone,                 ///< it was there and is no more (an expired resourceVersion, for instance)
  too_large,            ///< over a stated size limit
  resource_exhausted,   ///< a quota or rate limit; see retry_after
  unsupported,          ///< a thing this build or peer does not do
  unavailable,          ///< a dependency is down; see retry_after
  deadline_exceeded,    ///< no answer in time
  cancelled,            ///< the caller gave up
  data_loss,            ///< stored or received bytes are damaged
  internal,             ///< a bug of ours
};

/// The code's word, e.g. "invalid_argument".
std::string_view to_string(errc code) noexcept;

/// One field that is wrong: a JSON pointer into the request and why.
struct violation {
  std::string pointer;
  std::string message;
  friend bool operator==(const violation&, const violation&) = default;
};

/// A failure. Value type; cheap to move. Thread safety: like std::string.
class error {
 public:
  error() : error(errc::internal, "internal", "unknown error") {}
  /// @param reason  stable CamelCase or snake_case word that programs may match
  /// @param message sentence for the caller; never holds secrets
  error(errc code, std::string reason, std::string message)
      : code_(code), reason_(std::move(reason)), message_(std::move(message)) {}

  errc code() const noexcept { return code_; }
  const std::string& reason() const noexcept { return reason_; }
  const std::string& message() const noexcept { return message_; }
  /// Private detail for the log; never sent to a caller.
  const std::string& detail() const noexcept { return detail_; }
  const std::vector<violation>& violations() const noexcept { return violations_; }
  const std::vector<std::pair<std::string, std::string>>& context() const noexcept { return context_; }
  std::optional<std::chrono::seconds> retry_after() const noexcept { return retry_after_; }

  // By value, so that e = std::move(e).with_detail(...) is no self-move.
  error with_detail(std::string text) && {
    detail_ = std::move(text);
    return std::move(*this);
  }
  error with_violation(std::string pointer, std::string message) && {
    violations_.push_back({std::move(pointer), std::move(message)});
    return std::move(*this);
  }
  error with_violations(std::vector<violation> all) && {
    violations_ = std::move(all);
    return std::move(*this);
  }
  error with_context(std::string key, std::string value) && {
    context_.emplace_back(std::move(key), std::move(value));
    return std::move(*this);
  }
  error with_retry_after(std::chrono::seconds wait) && {
    retry_after_ = wait;
    return std::move(*this);
  }
  /// The same error with "prefix: " before its message.
  error prefixed(std::string_view prefix) && {
    message_ = std::string(prefix) + ": " + message_;
    return std::move(*this);
  }
  /// True where sending the same request again may succeed.
  bool transient() const noexcept {
    return code_ == errc::unavailable || code_ == errc::deadline_exceeded || code_ == errc::resource_exhausted;
  }

 private:
  errc code_;
  std::string reason_;
  std::string message_;
  std::string detail_;
  std::vector<violation> violations_;
  std::vector<std::pair<std::string, std::string>> context_;
  std::optional<std::chrono::seconds> retry_after_;
};

/// "code reason: message (detail)" for logs and test output.
std::string to_string(const error& e);

}  // namespace kubeopera::inline v1
