// The layout of the fleet repository.
#include "src/gitops/validate.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/gitops/fleet.hpp>

namespace kubeopera::inline v1::gitops {

namespace {

error bad_label(std::string_view field) {
  return error(errc::invalid_argument, "InvalidName", "a name in the fleet repository is a DNS-1123 label")
      .with_violation("/" + std::string(field), "1 to 63 of a-z, 0-9 and '-', beginning and ending with a letter or digit");
}

}  // namespace

result<std::string> cluster_directory(std::string_view vcluster) {
  if (!detail::is_dns_label(vcluster)) return bad_label("vcluster");
  return "clusters/" + std::string(vcluster);
}

result<std::string> app_directory(std::string_view vcluster, std::string_view app) {
  KUBEOPERA_TRY(auto out, cluster_directory(vcluster));
  if (!detail::is_dns_label(app)) return bad_label("app");
  return out + "/" + crypto::sha256_hex(app).substr(0, 2) + "/" + std::string(app);
}

}  // namespace kubeopera::inline v1::gitops
