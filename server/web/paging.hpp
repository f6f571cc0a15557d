// Keyset paging: an opaque cursor that names the last item seen.
#pragma once

#include <kubeopera/core/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::web {

/// A cursor over the given parts (for instance created_at and id).
std::string encode_cursor(const std::vector<std::string>& parts);
/// The parts. Errors: invalid_argument (InvalidCursor) when it is not one of ours or has not `count` parts.
result<std::vector<std::string>> decode_cursor(std::string_view cursor, std::size_t count);

}  // namespace kubeopera::inline v1::web
