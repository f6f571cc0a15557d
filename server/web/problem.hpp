// Errors on the wire: RFC 9457 problem+json. The only place where an error becomes an HTTP status.
#pragma once

#include <kubeopera/core/error.hpp>
#include <kubeopera/http/message.hpp>
#include <kubeopera/json/value.hpp>

#include <string_view>

namespace kubeopera::inline v1::web {

/// The HTTP status of an error code.
int status_of(errc code) noexcept;
/// The document: type, title, status, detail, code, reason, errors[{pointer, message}], request_id.
json::object problem_document(const error& e, std::string_view request_id);
/// The response, with Retry-After where the error has one (or is transient) and WWW-Authenticate for 401.
http::response problem_response(const error& e, std::string_view request_id);

}  // namespace kubeopera::inline v1::web
