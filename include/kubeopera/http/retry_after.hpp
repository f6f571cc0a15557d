// How long a server asks its caller to wait. Source: RFC 9110, section 10.2.3.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/http/message.hpp>

#include <chrono>
#include <optional>
#include <string_view>

namespace kubeopera::inline v1::http {

/// The longest wait that is believed.
constexpr std::chrono::seconds max_retry_after{60};

/// Retry-After's seconds from now: a number or an HTTP date; nullopt when it is neither. At least 0, at most max_retry_after.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view text, system_time now);

/// The same of an answer's header; nullopt where there is none.
std::optional<std::chrono::seconds> retry_after(const fields& headers, system_time now);

}  // namespace kubeopera::inline v1::http
