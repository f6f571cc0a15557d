// Refusals of the API server: what becomes a Status object, and the field problems that validation collects.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/http/message.hpp>
#include <kubeopera/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::testing::api {

struct kind_info;

/// A request that is refused.
struct refusal {
  refusal() = default;
  refusal(int c, std::string r, std::string m) : code(c), reason(std::move(r)), message(std::move(m)) {}
  int code = 500;
  std::string reason;  ///< empty: left out
  std::string message;
  std::optional<json::object> details;
  std::string continue_token;
  std::optional<int> retry_after;
  std::string text;  ///< set: answered as text/plain instead of a Status
};

template <class T>
using outcome = boost::system::result<T, refusal>;

[[noreturn]] void throw_exception_from_error(const refusal& e, const boost::source_location& where);

/// One thing wrong with an object, as field.Error prints it.
struct problem {
  std::string reason;  ///< FieldValueInvalid, FieldValueRequired ...
  std::string field;
  std::string message;  ///< "Invalid value: -1: must be ..."
};
using problems = std::vector<problem>;

problem invalid_value(std::string field, std::string_view value_text, std::string_view why);
problem required_value(std::string field, std::string_view why = {});
problem forbidden_value(std::string field, std::string_view why);
problem duplicate_value(std::string field, std::string_view value_text);
problem unsupported_value(std::string field, std::string_view value_text, const std::vector<std::string>& supported);
/// A string as Go's %q prints it.
std::string go_quote(std::string_view text);

refusal bad_request(std::string message);
refusal not_found(const kind_info& kind, std::string_view name);
refusal already_exists(const kind_info& kind, std::string_view name);
refusal conflict(const kind_info& kind, std::string_view name, std::string_view why);
refusal forbidden(const kind_info& kind, std::string_view name, std::string_view why);
refusal invalid(std::string_view group, std::string_view kind, std::string_view name, const problems& all);
refusal method_not_allowed();
refusal no_such_resource();
refusal expired(std::string message);
refusal internal(std::string message);
/// "widgets.demo.example.org" or "configmaps".
std::string qualified(std::string_view resource, std::string_view group);

json::object status_object(const refusal& r);
http::response status_response(const refusal& r);
json::object success_status(const kind_info& kind, std::string_view name, std::string_view uid);

}  // namespace kubeopera::inline v1::testing::api
