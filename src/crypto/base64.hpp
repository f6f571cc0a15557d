// Base64url decoding into given memory. Private to the module.
#pragma once

#include <optional>
#include <string_view>

namespace kubeopera::inline v1::crypto {

/// As base64url_decode; out has room for size / 4 * 3 + 3 bytes. Returns how many were written, nothing where text is not
/// canonical.
std::optional<std::size_t> base64url_decode_into(std::string_view text, char* out) noexcept;

}  // namespace kubeopera::inline v1::crypto
