// Kubernetes quantities, exactly: parse, compare, add, print canonically. No floating point anywhere.
#pragma once

#include <kubeopera/core/result.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::manifest {

/// An amount with a resolution of one nano-unit and a range of about ±10^29 units, like "250m", "1.5", "512Mi", "1e3".
/// Source: Kubernetes apimachinery, pkg/api/resource. Finer fractions round up, as there. Value type, pure.
class quantity {
 public:
  enum class suffixes { decimal_si, binary_si, decimal_exponent };

  quantity() = default;
  /// Errors: invalid_argument (InvalidQuantity).
  static result<quantity> parse(std::string_view text);

  bool negative() const noexcept { return nanos_ < 0; }
  bool zero() const noexcept { return nanos_ == 0; }
  /// Whole units, rounded up; saturates at the ends of int64.
  std::int64_t units() const noexcept;
  /// Thousandths of a unit, rounded up; saturates.
  std::int64_t milli() const noexcept;
  /// The form that the API server prints: "1500m", "1536Mi", "2".
  std::string str() const;

  quantity& operator+=(const quantity& other) noexcept;
  friend std::strong_ordering operator<=>(const quantity& a, const quantity& b) noexcept {
    return a.nanos_ < b.nanos_   ? std::strong_ordering::less
           : a.nanos_ > b.nanos_ ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
  }
  friend bool operator==(const quantity& a, const quantity& b) noexcept { return a.nanos_ == b.nanos_; }

 private:
  __int128 nanos_ = 0;
  suffixes format_ = suffixes::decimal_si;
};

}  // namespace kubeopera::inline v1::manifest
