// Wiping and constant-time comparison.
#include <kubeopera/core/secret.hpp>

#include <cstring>

namespace kubeopera::inline v1 {

secret::~secret() {
  if (!value_.empty()) explicit_bzero(value_.data(), value_.size());
}

bool constant_time_equal(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  volatile unsigned char diff = 0;
  for (std::size_t i = 0; i < a.size(); ++i) diff = diff | static_cast<unsigned char>(a[i] ^ b[i]);
  return diff == 0;
}

}  // namespace kubeopera::inline v1
