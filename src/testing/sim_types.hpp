// Which kinds a cluster serves, by discovery.
#pragma once

#include <kubeopera/kube/client.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::testing::sim {

/// Not thread-safe.
class type_registry {
 public:
  /// Asks the API server anew. Errors: those of the client; what was known stays then.
  task<void> refresh(kube::client& api);
  /// A kind by apiVersion and kind, in any version that is served.
  std::optional<kube::resource_type> find(std::string_view api_version, std::string_view kind) const;
  /// Kinds that can be listed, watched and deleted, one version each.
  const std::vector<kube::resource_type>& all() const noexcept { return listable_; }

 private:
  std::map<std::pair<std::string, std::string>, kube::resource_type> by_kind_;
  std::vector<kube::resource_type> listable_;
};

/// GET of a path, as a JSON object. Errors: those of the client, data_loss where the body is none.
task<json::object> get_json(kube::client& api, std::string path);

}  // namespace kubeopera::inline v1::testing::sim
