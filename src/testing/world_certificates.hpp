// Certificates and small files of the world's directory.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/json/value.hpp>

#include <string>

namespace kubeopera::inline v1::testing {

/// mkdir -p with mode 0700. Errors: unavailable.
result<void> make_directory(const std::string& path);
/// Writes a file at once (new file, then rename), mode 0600. Errors: unavailable.
result<void> write_file(const std::string& path, std::string_view text);
/// Errors: not_found, unavailable.
result<std::string> read_file(const std::string& path);

/// The CA kept in directory as <name>.pem and <name>.key, made where missing.
result<crypto::key_pair> stored_ca(const std::string& directory, const std::string& name, const std::string& common_name);

/// The administrator's client certificate kept in directory, made where missing.
result<crypto::key_pair> stored_admin(const std::string& directory, const crypto::key_pair& ca);

/// A kubeconfig with client certificate, as YAML.
std::string kubeconfig_text(const std::string& cluster, const std::string& server, const std::string& ca,
                            const crypto::key_pair& client);

}  // namespace kubeopera::inline v1::testing
