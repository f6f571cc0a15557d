// The quick way through a token's payload: accepts the plain shape that issuers write, and leaves everything else to the
// closed-world reader. Private to the module.
#pragma once

#include <kubeopera/crypto/jwt.hpp>

#include <cstdint>
#include <string_view>

namespace kubeopera::inline v1::crypto {

/// The latest time of a token, Unix seconds (year 2255): system_time counts nanoseconds and ends in 2262.
inline constexpr std::int64_t max_token_time = 9'000'000'000;

/// Room that must lie behind a payload given to read_plain_claims, readable with any content.
inline constexpr std::size_t claims_padding = 8;

/// Reads a payload of known claims only, compact, each once, ASCII without escapes, that passes every check for options at now
/// (Unix seconds). True: into holds what the closed-world reader would have given. False says nothing: ask that reader.
/// Allocates only where into's strings are too small.
bool read_plain_claims(std::string_view payload, const jwt_options& options, std::int64_t now, claims& into);

}  // namespace kubeopera::inline v1::crypto
