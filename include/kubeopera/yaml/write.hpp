// Writing YAML: block style, deterministic, and read back as the same values by YAML 1.1 and YAML 1.2 readers.
#pragma once

#include <kubeopera/json/value.hpp>

#include <string>
#include <string_view>

namespace kubeopera::inline v1::yaml {

/// One document in block style, two spaces a level, keys in stored order, a newline at the end, no document marker.
/// Strings that any reader might take for something else (y, no, null, ~, numbers, dates, 12:30, indicators, the empty string,
/// leading or trailing blanks) are double-quoted; text of several lines is a literal block where that keeps every byte, else
/// double-quoted with escapes. Bytes that are not UTF-8 become U+FFFD, as in Go's encoding/json.
/// Throws std::invalid_argument on a number that JSON cannot hold (NaN, infinity). Thread safety: pure.
std::string write(const json::value& v);
std::string write(const json::object& o);

/// True when the string may stand unquoted, in either YAML version.
bool is_plain_safe(std::string_view text) noexcept;

}  // namespace kubeopera::inline v1::yaml
