// The layout of the fleet repository: where an app's files live.
#pragma once

#include <kubeopera/core/result.hpp>

#include <string>
#include <string_view>

namespace kubeopera::inline v1::gitops {

/// "clusters/<vcluster>": what one vCluster's Kustomization points to. Errors: invalid_argument (not a DNS-1123 label).
result<std::string> cluster_directory(std::string_view vcluster);

/// "clusters/<vcluster>/<hh>/<app>", hh being the first two hex digits of SHA-256(app), so that no tree grows with the fleet.
/// Errors: invalid_argument (vcluster or app is not a DNS-1123 label), with the field as pointer.
result<std::string> app_directory(std::string_view vcluster, std::string_view app);

}  // namespace kubeopera::inline v1::gitops
