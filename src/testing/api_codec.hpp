// Decoding request bodies into objects: types checked, unknown fields found, written back in the order and form that Go writes.
#pragma once

#include "src/testing/api_status.hpp"
#include "src/testing/api_types.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::testing::api {

/// What a lenient decoder drops and a strict one refuses: `unknown field "spec.x"`, `duplicate field "data.a"`.
struct decode_report {
  std::vector<std::string> findings;
};

/// Decodes an object of a built-in type. The refusal's message is the decoder's own ("json: cannot unmarshal ...").
outcome<json::object> decode_builtin(const type& t, const json::object& in, decode_report& report);
/// Drops what a structural schema does not name; keys come out sorted. Types are checked by validation.
json::object prune_custom(const type& t, const json::object& in, decode_report& report);

/// Go's spelling of a quantity ("1000m" is "1"). Empty where text is none.
std::string canonical_quantity(std::string_view text);
/// A quantity in thousandths (of a core, of a byte), rounded up; 0 where text is none.
__int128 quantity_millis(std::string_view text);
/// The quantity of so many thousandths; binary picks Ki, Mi ...
std::string format_quantity(__int128 millis, bool binary);

/// Empty, or what Go says about a time that it cannot parse.
std::string time_problem(std::string_view text, bool micro);

}  // namespace kubeopera::inline v1::testing::api
