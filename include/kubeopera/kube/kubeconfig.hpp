// Kubeconfigs read in a closed world: what could run a program, read a file or send credentials elsewhere refuses the whole
// document. Source: client-go's clientcmd API v1 for the fields; CVE-2022-24817 and CVE-2021-41254 for why.
#pragma once

#include <kubeopera/core/secret.hpp>
#include <kubeopera/http/address.hpp>
#include <kubeopera/kube/client.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::kube {

/// How to reach one API server and as whom. Exactly one of token, token file and client certificate is set.
struct cluster_access {
  cluster_access() = default;
  std::string host;  ///< DNS name or address, without brackets
  std::uint16_t port = 443;
  std::string ca_pem;           ///< the only trust roots
  std::string tls_server_name;  ///< name to verify instead of host; "" = host
  std::string client_certificate_pem;
  secret client_key_pem;
  secret token;
  std::string token_file;  ///< a file of this machine that somebody keeps fresh; read_kubeconfig() never sets it
  /// "https://host:port"
  std::string url() const;
};

/// Which server a kubeconfig may name.
struct kubeconfig_policy {
  kubeconfig_policy() = default;
  /// Not empty: the only server allowed, exactly (a vCluster's service). Empty: a cluster that someone registered.
  std::string only_host;
  std::uint16_t only_port = 443;
  /// With only_host: a loopback server, which is what vCluster writes by default, stands for only_host:only_port. The name that
  /// its certificate is checked against stays the loopback one.
  bool loopback_is_only_host = true;
  /// Without only_host: asked for addresses written in the document; give it to the transport too, for names.
  http::address_policy addresses = http::public_internet_only();
  /// Without only_host: names that are refused, the host's own API server for instance. Names of the cluster (*.svc, *.local,
  /// single labels, localhost) are refused always.
  std::vector<std::string> refused_hosts;

  /// The policy for a vCluster's service "<vcluster>.<namespace>.svc".
  static kubeconfig_policy for_vcluster(const std::string& vcluster, const std::string& host_namespace);
};

/// Reads YAML or JSON with exactly one cluster, context and user that belong together.
/// Errors: invalid_argument (reason KubeconfigRefused, or that of yaml::read) with one violation for each thing refused, none of
/// which repeats a value; too_large. Thread safety: pure.
result<cluster_access> read_kubeconfig(std::string_view text, const kubeconfig_policy& policy);

/// A kubeconfig that read_kubeconfig() accepts, of an access without a token file, with context_name as the name of cluster,
/// context and user. Holds secrets.
std::string write_kubeconfig(const cluster_access& access, const std::string& context_name);

/// A pooled HTTPS transport to the server that trusts access.ca_pem alone and presents the client certificate where there is one.
/// @param connect_to  "host:port" to connect to instead, or ""
/// @param addresses   asked for what the name resolves to; empty: every address
/// Errors: those of http::make_client.
result<std::shared_ptr<http::transport>> make_transport(asio::any_io_executor executor, const cluster_access& access,
                                                        const std::string& connect_to = {}, http::address_policy addresses = {});

/// make_client over make_transport, with access.token as the bearer token.
result<std::shared_ptr<client>> make_client(asio::any_io_executor executor, const cluster_access& access,
                                            const std::string& connect_to = {}, client_options options = client_options(),
                                            http::address_policy addresses = {});

}  // namespace kubeopera::inline v1::kube
