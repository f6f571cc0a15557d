// From access data to a kubeconfig, a transport and a client.
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/kube/kubeconfig.hpp>
#include <kubeopera/yaml/write.hpp>

namespace kubeopera::inline v1::kube {
namespace {

json::object named(const std::string& name, std::string_view member, json::object content) {
  json::object out;
  out["name"] = name;
  out[member] = std::move(content);
  return out;
}

json::array single(json::object item) {
  json::array out;
  out.emplace_back(std::move(item));
  return out;
}

}  // namespace

std::string write_kubeconfig(const cluster_access& access, const std::string& context_name) {
  json::object cluster;
  cluster["server"] = access.url();
  cluster["certificate-authority-data"] = crypto::base64_encode(access.ca_pem);
  if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
  json::object user;
  if (!access.token.empty()) {
    user["token"] = access.token.reveal();
  } else {
    user["client-certificate-data"] = crypto::base64_encode(access.client_certificate_pem);
    user["client-key-data"] = crypto::base64_encode(access.client_key_pem.reveal());
  }
  json::object context;
  context["cluster"] = context_name;
  context["user"] = context_name;
  json::object root;
  root["apiVersion"] = "v1";
  root["kind"] = "Config";
  root["clusters"] = single(named(context_name, "cluster", std::move(cluster)));
  root["contexts"] = single(named(context_name, "context", std::move(context)));
  root["current-context"] = context_name;
  root["users"] = single(named(context_name, "user", std::move(user)));
  return yaml::write(root);
}

result<std::shared_ptr<http::transport>> make_transport(asio::any_io_executor executor, const cluster_access& access,
                                                        const std::string& connect_to, http::address_policy addresses) {
  http::client_options options(access.url());
  options.tls.ca_pem = access.ca_pem;
  options.tls.certificate_pem = access.client_certificate_pem;
  options.tls.private_key_pem = access.client_key_pem.reveal();
  options.tls.server_name = access.tls_server_name;
  options.connect_to = connect_to;
  options.policy = std::move(addresses);
  options.max_response_bytes = client_options().max_response;
  return http::make_client(std::move(executor), std::move(options));
}

result<std::shared_ptr<client>> make_client(asio::any_io_executor executor, const cluster_access& access,
                                            const std::string& connect_to, client_options options,
                                            http::address_policy addresses) {
  KUBEOPERA_TRY(auto transport, make_transport(std::move(executor), access, connect_to, std::move(addresses)));
  options.bearer_token = access.token.reveal();
  options.bearer_token_file = access.token_file;
  return make_client(std::move(transport), std::move(options));
}

}  // namespace kubeopera::inline v1::kube
