// The quick way through a token's payload: accepts the plain shape that issuers write, and leaves everything else to the
// closed-world reader. Private to the module.
#pragma once

#include <kubeopera/crypto/jwt.hpp>

#include <cstdint>
#include <string_view>

namespace kubeopera::inline v1::crypto {

/// Room that must lie behind a payload given to read_plain_claims, readable with any content.
inline constexpr std::size_t claims_padding = 8;

/// Reads a payload of known claims only, compact, each once, ASCII without escapes, that passes every check for options at now
/// (Unix seconds). True: into holds what the closed-world reader would have given. False says nothing: ask that reader.
/// Allocates only where into's strings are too small.
bool read_plain_claims(std::string_view payload, const jwt_options& options, std::int64_t now, claims& into);

}  // namespace kubeopera::inline v1::crypto
