// The closed-world JSON reader: what it accepts has one meaning to every parser.
// Refuses duplicate keys, integers that do not fit 64 bits, bad UTF-8, a BOM, trailing bytes, and what is over the limits.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/json/value.hpp>

#include <cstddef>
#include <string_view>

namespace kubeopera::inline v1::json {

struct limits {
  limits() = default;
  std::size_t max_bytes = 1 << 20;
  std::size_t max_depth = 64;
  std::size_t max_nodes = 200'000;
};

/// Reads one document.
/// Errors: invalid_argument (reason MalformedJson, DuplicateKey, NumberOutOfRange, TooDeep, TooManyNodes; one violation with
/// the JSON pointer), too_large. Thread safety: pure.
result<value> read(std::string_view text, const limits& lim = limits());
/// The same, and the document must be an object.
result<object> read_object(std::string_view text, const limits& lim = limits());

}  // namespace kubeopera::inline v1::json
