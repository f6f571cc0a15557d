// Who calls, and what a route demands of them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::web {

/// Tenant ids are opaque, but never more than 63 visible ASCII characters (as in the custom resources).
inline bool is_tenant_id(std::string_view id) {
  return !id.empty() && id.size() <= 63 && std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

/// The caller, taken from a verified access token and from nothing else.
struct identity {
  std::string user;
  std::optional<std::string> tenant;  ///< empty for platform administrators outside any tenant
  std::vector<std::string> permissions;
  bool platform_admin = false;

  bool may(std::string_view permission) const {
    return platform_admin || std::find(permissions.begin(), permissions.end(), permission) != permissions.end();
  }
};

/// What a route demands. There is no default: every row of a route table names one.
class access {
 public:
  enum class kind { open, permission, platform_admin };
  /// Anyone, without a token.
  static access open() { return {kind::open, ""}; }
  /// A token with this permission and a tenant (platform administrators always pass).
  static access needs(std::string permission) { return {kind::permission, std::move(permission)}; }
  static access platform_admin() { return {kind::platform_admin, ""}; }
  kind what() const noexcept { return kind_; }
  const std::string& permission() const noexcept { return permission_; }

 private:
  access(kind k, std::string p) : kind_(k), permission_(std::move(p)) {}
  kind kind_;
  std::string permission_;
};

}  // namespace kubeopera::inline v1::web
