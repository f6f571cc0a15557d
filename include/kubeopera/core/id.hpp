// Identifiers: UUIDv7 and strongly typed ids.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/result.hpp>

#include <compare>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace kubeopera::inline v1 {

/// A new UUIDv7 (RFC 9562) in lower-case canonical form; ordered by time of making within a process.
std::string make_uuid_v7(const clock& clk = clock::real());
/// A new random UUIDv4, the form Kubernetes uses for uids.
std::string make_uuid_v4();
/// True for a canonical lower-case UUID of any version.
bool is_uuid(std::string_view text) noexcept;

/// An id that cannot be mistaken for another kind of id.
/// @tparam Tag an incomplete struct that names the kind
template <class Tag>
class typed_id {
 public:
  typed_id() = default;
  explicit typed_id(std::string text) : text_(std::move(text)) {}
  const std::string& str() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }
  friend auto operator<=>(const typed_id&, const typed_id&) = default;
  friend bool operator==(const typed_id&, const typed_id&) = default;

 private:
  std::string text_;
};

}  // namespace kubeopera::inline v1

template <class Tag>
struct std::hash<kubeopera::typed_id<Tag>> {
  std::size_t operator()(const kubeopera::typed_id<Tag>& id) const noexcept { return std::hash<std::string>{}(id.str()); }
};
