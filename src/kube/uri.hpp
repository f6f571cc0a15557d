// Request targets of the Kubernetes API, built from checked names only. Source: Kubernetes API concepts, "resource URIs".
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/kube/object.hpp>

#include <string>
#include <string_view>

namespace kubeopera::inline v1::kube::detail {

/// "/api/v1/namespaces/ns/pods" or "/apis/apps/v1/deployments". Errors: invalid_argument (InvalidName).
result<std::string> collection_path(const resource_type& type, const std::string& ns);
/// The same for one object and an optional subresource.
result<std::string> object_path(const resource_type& type, const object_key& key, std::string_view subresource = {});

/// Builds a query string; values are percent-encoded and empty ones left out.
class query {
 public:
  query& add(std::string_view name, std::string_view value);
  query& add(std::string_view name, long long value);
  /// "path?a=b", or path alone.
  std::string on(std::string path) const;

 private:
  std::string text_;
};

}  // namespace kubeopera::inline v1::kube::detail
