// Object ids: SHA-1 of "<type> <size>\0<content>".
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/crypto/hash.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::gitops::detail {

struct oid {
  std::array<unsigned char, 20> bytes{};
  friend auto operator<=>(const oid&, const oid&) = default;
  friend bool operator==(const oid&, const oid&) = default;
  std::string hex() const;
  std::string_view raw() const noexcept { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
  static oid from_raw(const char* twenty) noexcept {
    oid id;
    std::memcpy(id.bytes.data(), twenty, 20);
    return id;
  }
  /// nullopt unless text is 40 lower-case hex digits.
  static std::optional<oid> parse(std::string_view text) noexcept;
};

struct oid_hash {
  std::size_t operator()(const oid& id) const noexcept {
    std::size_t h;
    std::memcpy(&h, id.bytes.data(), sizeof h);
    return h;
  }
};

/// parse() as a result. Errors: invalid_argument.
result<oid> parse_oid(std::string_view text);

/// 40 zeros: "no object" on the wire.
std::string_view zero_hex() noexcept;

/// The number is the type's code in a pack.
enum class object_type : std::uint8_t { commit = 1, tree = 2, blob = 3 };

std::string_view type_name(object_type type) noexcept;

/// An incremental SHA-1. Not thread-safe.
class sha1 {
 public:
  void update(std::string_view bytes) { hasher_.update(bytes); }
  /// The digest of what was fed since the last finish().
  oid finish();

 private:
  crypto::hasher hasher_{crypto::hash_algorithm::sha1};
};

oid hash_object(object_type type, std::string_view content);

}  // namespace kubeopera::inline v1::gitops::detail
