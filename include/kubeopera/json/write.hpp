// Writing JSON: compact, canonical (sorted keys) and indented. Numbers as Go's encoding/json prints them,
// but from 2^63 on with an exponent, so that the reader takes what was written.
#pragma once

#include <kubeopera/json/value.hpp>

#include <string>

namespace kubeopera::inline v1::json {

/// Compact, keys in stored order.
std::string write(const value& v);
std::string write(const object& o);
/// Compact, keys sorted by bytes at every level: equal documents give equal bytes.
std::string write_canonical(const value& v);
/// Two-space indentation, for people.
std::string write_pretty(const value& v);
/// Appends one JSON string literal.
void append_quoted(std::string& out, std::string_view text);

}  // namespace kubeopera::inline v1::json
