// Digests, keyed digests and the text encodings of bytes. OpenSSL stays in the .cpp.
// Comparing secrets is in core/secret.hpp (constant_time_equal).
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/core/secret.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::crypto {

using sha1_digest = std::array<std::uint8_t, 20>;
using sha256_digest = std::array<std::uint8_t, 32>;

/// The bytes of a digest as a view, for writing it to a binary format.
template <std::size_t N>
std::string_view bytes(const std::array<std::uint8_t, N>& digest) noexcept {
  return {reinterpret_cast<const char*>(digest.data()), N};
}

/// SHA-1 (FIPS 180-4), which Git names objects by. Not for anything that must resist collisions.
sha1_digest sha1(std::string_view data);
std::string sha1_hex(std::string_view data);
/// SHA-256 (FIPS 180-4).
sha256_digest sha256(std::string_view data);
std::string sha256_hex(std::string_view data);

enum class hash_algorithm { sha1, sha256 };

/// A digest over data that comes in pieces. Not thread-safe. After finish() it starts anew.
class hasher {
 public:
  explicit hasher(hash_algorithm algorithm);
  ~hasher();
  hasher(hasher&&) noexcept;
  hasher& operator=(hasher&&) noexcept;
  void update(std::string_view data);
  /// The digest's raw bytes (20 or 32).
  std::string finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// HMAC-SHA256 (RFC 2104) under one key, set up once.
/// Thread safety: all members may be called from any thread.
class hmac_sha256 {
 public:
  /// @param key any length; kept until the object dies
  explicit hmac_sha256(const secret& key);
  ~hmac_sha256();
  hmac_sha256(hmac_sha256&&) noexcept;
  hmac_sha256& operator=(hmac_sha256&&) noexcept;
  sha256_digest sign(std::string_view data) const;
  /// True where mac is the one of data; compares in constant time.
  bool verify(std::string_view data, std::string_view mac) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Lower-case hexadecimal.
std::string to_hex(std::string_view data);
/// Strict: even number of digits of either case. Errors: invalid_argument (reason BadHex).
result<std::string> from_hex(std::string_view text);

/// Base64 with padding (RFC 4648 section 4).
std::string base64_encode(std::string_view data);
/// Strict: padding required, no line breaks, unused bits zero. Errors: invalid_argument (reason BadBase64).
result<std::string> base64_decode(std::string_view text);
/// Base64url without padding (RFC 4648 section 5).
std::string base64url_encode(std::string_view data);
/// Strict: no padding, unused bits zero. Errors: invalid_argument (reason BadBase64).
result<std::string> base64url_decode(std::string_view text);

/// A fresh token of that many random bytes, base64url: 32 bytes give 43 characters.
std::string random_token(std::size_t random_bytes = 32);

/// Refuses keys that are shorter than 32 bytes, one repeated byte or a well-known placeholder.
/// Errors: failed_precondition (reason WeakSecret; the message names what, never the value).
result<void> check_secret_strength(const secret& key, std::string_view what);

}  // namespace kubeopera::inline v1::crypto
