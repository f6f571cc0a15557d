// What an API server's refusal means: the one table from HTTP code and Status reason to kubeopera::error.
// Source: Kubernetes apimachinery, metav1.Status and its StatusReason list.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/http/message.hpp>
#include <kubeopera/json/value.hpp>

#include <span>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::kube {

/// One row: an HTTP code, the Status reason that goes with it, and our code for the two.
struct status_row {
  int code;
  std::string_view reason;
  errc means;
};

/// Every reason the API server knows, each with its code. A reason is looked up first; an unknown or missing one goes by the
/// code.
std::span<const status_row> status_table() noexcept;

/// The code's meaning when there is no known reason.
errc errc_of_code(int http_status) noexcept;

/// The error that a Status object means. Its message is kept (at most 4 KiB), causes with a field become violations,
/// details.retryAfterSeconds becomes retry_after (at most 60 s).
/// @param http_status  used where the object has no code
error error_of_status(const json::object& status, int http_status = 0);

/// The error that an answer with a code other than 2xx means; body need not be a Status.
/// Retry-After (seconds or a date) counts, where Status details do not say it.
error error_of_response(int http_status, const http::fields& headers, std::string_view body, const clock& clk = clock::real());

/// "spec.containers[0].image" as a JSON pointer: "/spec/containers/0/image".
std::string pointer_of_field(std::string_view field_path);

}  // namespace kubeopera::inline v1::kube
