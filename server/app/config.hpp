// Settings of the server. The only part of the project that reads environment variables.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/core/secret.hpp>
#include <kubeopera/http/address.hpp>

#include <string>
#include <vector>

namespace kubeopera::inline v1::app {

struct settings {
  std::string database_url;                ///< DATABASE_URL (required)
  secret jwt_secret;                       ///< AUTH_JWT_ACCESS_SECRET (required)
  std::string jwt_issuer = "kubeopera";    ///< AUTH_JWT_ISSUER
  std::string jwt_audience = "kubeopera";  ///< AUTH_JWT_AUDIENCE
  std::string flux_git_url;                ///< FLUX_GIT_URL: the fleet repository, https:// or ssh://
  std::string flux_git_branch = "main";    ///< FLUX_GIT_BRANCH
  std::string
      flux_git_secret_ref;  ///< FLUX_GIT_SECRET_REF: Secret with Git credentials, in the system namespace and in vClusters
  std::string flux_interval = "1m";                    ///< FLUX_INTERVAL
  std::string apps_base_domain = "apps.kubeopera.io";  ///< APPS_BASE_DOMAIN
  std::string apps_wildcard_secret;  ///< APPS_WILDCARD_TLS_SECRET: "<namespace>/<name>" of the certificate of default addresses
  /// APPS_PROBE_NETWORKS: where app addresses may lead beside the public internet, "10.1.0.0/16,fd00:1::/64"
  std::vector<http::network> probe_networks;
  std::string kubeconfig;                             ///< KUBECONFIG: the host cluster; empty: the in-cluster identity
  std::string system_namespace = "kubeopera-system";  ///< KUBEOPERA_NAMESPACE
  std::string store_dir = "/var/lib/kubeopera";       ///< KUBEOPERA_STORE_DIR: local copy of the fleet repository
  std::string listen_address = "0.0.0.0";             ///< LISTEN_ADDRESS
  int port = 0;                                       ///< PORT; 0: the role's default
  std::string log_level = "info";                     ///< LOG_LEVEL
  std::string broker_url;                             ///< RABBITMQ_URL: amqp:// or amqps://; only looked at by doctor so far
};

/// From the environment, as far as it goes; bad names every variable that is wrong.
settings collect_settings(std::vector<violation>& bad);

/// From the environment. Errors: invalid_argument, naming every variable that is wrong.
result<settings> read_settings();

/// Which addresses the platform may ask for signs of life. A tenant chooses the names: they may lead to the public internet and
/// to the networks that the operator has named, and nowhere else. Errors of the policy: permission_denied (AddressRefused).
http::address_policy probe_policy(std::vector<http::network> allowed);

}  // namespace kubeopera::inline v1::app
