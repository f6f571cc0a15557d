// The closed-world kubeconfig reader: a table of every field with its verdict, then the checks of values.
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/http/url.hpp>
#include <kubeopera/kube/kubeconfig.hpp>
#include <kubeopera/yaml/read.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace kubeopera::inline v1::kube {
namespace {

constexpr std::size_t max_pem = 64 * 1024;
constexpr std::size_t max_token = 16 * 1024;

enum class verdict { text, boolean, section, ignored, refused };

struct field_rule {
  std::string_view name;
  verdict what;
  std::string_view why = {};
};

constexpr auto root_fields = std::to_array<field_rule>({
    {"apiVersion", verdict::text},
    {"kind", verdict::text},
    {"current-context", verdict::text},
    {"clusters", verdict::section},
    {"contexts", verdict::section},
    {"users", verdict::section},
    {"preferences", verdict::ignored},
    {"extensions", verdict::ignored},
});
constexpr auto cluster_fields = std::to_array<field_rule>({
    {"server", verdict::text},
    {"certificate-authority-data", verdict::text},
    {"tls-server-name", verdict::text},
    {"insecure-skip-tls-verify", verdict::boolean},
    {"disable-compression", verdict::boolean},
    {"extensions", verdict::ignored},
    {"certificate-authority", verdict::refused, "files are not read; put the certificate into certificate-authority-data"},
    {"proxy-url", verdict::refused, "proxies are not used"},
});
constexpr auto context_fields = std::to_array<field_rule>({
    {"cluster", verdict::text},
    {"user", verdict::text},
    {"namespace", verdict::ignored},
    {"extensions", verdict::ignored},
});
constexpr auto user_fields = std::to_array<field_rule>({
    {"client-certificate-data", verdict::text},
    {"client-key-data", verdict::text},
    {"token", verdict::text},
    {"extensions", verdict::ignored},
    {"exec", verdict::refused, "programs are not run"},
    {"auth-provider", verdict::refused, "authentication plugins are not run"},
    {"client-certificate", verdict::refused, "files are not read; put the certificate into client-certificate-data"},
    {"client-key", verdict::refused, "files are not read; put the key into client-key-data"},
    {"tokenFile", verdict::refused, "files are not read; put the token into token"},
    {"username", verdict::refused, "passwords are not used"},
    {"password", verdict::refused, "passwords are not used"},
    {"as", verdict::refused, "impersonation is not allowed"},
    {"as-uid", verdict::refused, "impersonation is not allowed"},
    {"as-groups", verdict::refused, "impersonation is not allowed"},
    {"as-user-extra", verdict::refused, "impersonation is not allowed"},
});

// Collects what is wrong. Messages never repeat values.
class findings {
 public:
  void add(std::string pointer, std::string_view why) { all_.push_back({std::move(pointer), std::string(why)}); }
  bool any() const noexcept { return !all_.empty(); }
  error refuse() && {
    return error(errc::invalid_argument, "KubeconfigRefused", "the kubeconfig is refused").with_violations(std::move(all_));
  }

 private:
  std::vector<violation> all_;
};

void check_fields(const json::object& o, const std::string& at, std::span<const field_rule> rules, findings& found) {
  for (const auto& [key, value] : o) {
    auto pointer = json::pointer_step(at, key);
    auto rule = std::find_if(rules.begin(), rules.end(), [&](const field_rule& r) { return r.name == std::string_view(key); });
    if (rule == rules.end()) {
      found.add(std::move(pointer), "not a field that is known here");
    } else if (rule->what == verdict::refused) {
      found.add(std::move(pointer), rule->why);
    } else if (rule->what == verdict::text && !value.is_string()) {
      found.add(std::move(pointer), "must be a string");
    } else if (rule->what == verdict::boolean && !value.is_bool()) {
      found.add(std::move(pointer), "must be true or false");
    }
  }
}

// One named entry of a section: {"name": …, "<member>": {…}}.
struct entry {
  std::string name;
  std::string at;  // pointer of the member
  const json::object* content = nullptr;
};

std::optional<entry> only_entry(const json::object& root, std::string_view section, std::string_view member, findings& found) {
  auto at = json::pointer_step("", section);
  const auto* list = json::get_array(root, {section});
  if (!list || list->size() != 1) {
    found.add(std::move(at), "must be a list of exactly one entry");
    return std::nullopt;
  }
  at = json::pointer_step(at, std::size_t{0});
  const auto* item = list->front().if_object();
  if (!item) {
    found.add(std::move(at), "must be an object");
    return std::nullopt;
  }
  auto name = field_rule{"name", verdict::text};
  std::array<field_rule, 2> rules = {name, field_rule{member, verdict::section}};
  check_fields(*item, at, rules, found);
  entry out;
  out.name = std::string(json::get_string(*item, {"name"}));
  out.at = json::pointer_step(at, member);
  out.content = json::get_object(*item, {member});
  if (out.name.empty()) found.add(json::pointer_step(at, "name"), "is needed");
  if (!out.content) found.add(out.at, "must be an object");
  if (!out.content) return std::nullopt;
  return out;
}

bool is_loopback_name(std::string_view host) noexcept { return host == "localhost" || host == "127.0.0.1" || host == "::1"; }

bool is_inner_name(std::string_view host) noexcept {
  if (host.find('.') == std::string_view::npos) return true;
  for (std::string_view end : {".svc", ".local", ".localhost", ".internal", ".localdomain"}) {
    if (host.ends_with(end)) return true;
  }
  return host.find(".svc.") != std::string_view::npos;
}

void check_registered_host(const http::url& server, const kubeconfig_policy& policy, const std::string& at, findings& found) {
  const auto& refused = policy.refused_hosts;
  if (std::find(refused.begin(), refused.end(), server.host) != refused.end()) {
    found.add(at, "this server cannot be registered");
  } else if (server.host_is_address) {
    auto address = http::parse_ip(server.host);
    if (!address || (policy.addresses && !policy.addresses(*address))) found.add(at, "addresses of this network are not allowed");
  } else if (!is_dns_subdomain(server.host) || is_inner_name(server.host)) {
    found.add(at, "must be a public name");
  }
}

void read_server(const entry& cluster, const kubeconfig_policy& policy, cluster_access& out, findings& found) {
  auto at = json::pointer_step(cluster.at, "server");
  auto text = json::get_string(*cluster.content, {"server"});
  auto server = http::parse_url(text);
  bool plain = server && server->tls() && server->target == "/" && text.find_first_of("?#@%\\ ") == std::string_view::npos;
  if (!plain) return found.add(std::move(at), "must be https://host[:port] without user, path or query");
  out.host = server->host;
  out.port = server->port;
  if (policy.only_host.empty()) return check_registered_host(*server, policy, at, found);
  if (policy.loopback_is_only_host && is_loopback_name(server->host)) {
    out.tls_server_name = server->host;
    out.host = policy.only_host;
    out.port = policy.only_port;
  }
  if (out.host != policy.only_host || out.port != policy.only_port)
    found.add(std::move(at), "is not the server that belongs here");
}

// Strict base64 of PEM text; empty where it is not.
std::string decode_pem(const entry& from, std::string_view field, findings& found) {
  auto text = json::get_string(*from.content, {field});
  if (text.empty()) return {};
  auto at = json::pointer_step(from.at, field);
  auto pem = text.size() > max_pem * 4 / 3 + 4 ? result<std::string>(error(errc::too_large, "TooLarge", "over 64 KiB"))
                                               : crypto::base64_decode(text);
  if (!pem || pem->size() > max_pem) {
    found.add(std::move(at), "must be base64 of at most 64 KiB");
    return {};
  }
  return std::move(*pem);
}

void read_cluster(const entry& cluster, const kubeconfig_policy& policy, cluster_access& out, findings& found) {
  check_fields(*cluster.content, cluster.at, cluster_fields, found);
  if (json::get_bool(*cluster.content, {"insecure-skip-tls-verify"})) {
    found.add(json::pointer_step(cluster.at, "insecure-skip-tls-verify"), "the server's certificate is always verified");
  }
  read_server(cluster, policy, out, found);
  auto ca_at = json::pointer_step(cluster.at, "certificate-authority-data");
  if (json::get_string(*cluster.content, {"certificate-authority-data"}).empty()) {
    found.add(ca_at, "is needed");
  } else {
    out.ca_pem = decode_pem(cluster, "certificate-authority-data", found);
    if (!out.ca_pem.empty() && !crypto::count_certificates(out.ca_pem)) found.add(ca_at, "must hold PEM certificates");
  }
  if (!cluster.content->contains("tls-server-name")) return;
  auto name = json::get_string(*cluster.content, {"tls-server-name"});
  bool ours = !policy.only_host.empty() && is_dns_subdomain(name);
  if (!ours)
    found.add(json::pointer_step(cluster.at, "tls-server-name"), "is allowed only for a vCluster's own service, as a DNS name");
  out.tls_server_name = std::string(name);
}

void read_certificate(const entry& user, cluster_access& out, findings& found) {
  out.client_certificate_pem = decode_pem(user, "client-certificate-data", found);
  out.client_key_pem = secret(decode_pem(user, "client-key-data", found));
  if (found.any()) return;
  if (!crypto::check_key_pair(out.client_certificate_pem, out.client_key_pem.reveal())) {
    found.add(user.at, "client-certificate-data and client-key-data must be a PEM certificate and its key");
  }
}

void read_user(const entry& user, cluster_access& out, findings& found) {
  check_fields(*user.content, user.at, user_fields, found);
  bool token = user.content->contains("token");
  bool certificate = user.content->contains("client-certificate-data") || user.content->contains("client-key-data");
  if (token == certificate) {
    found.add(user.at, "must hold either token or client-certificate-data with client-key-data");
  } else if (token) {
    auto text = json::get_string(*user.content, {"token"});
    bool clean = std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
    if (text.empty() || text.size() > max_token || !clean) {
      found.add(json::pointer_step(user.at, "token"), "must be printable characters without blanks");
    }
    out.token = secret(std::string(text));
  } else {
    read_certificate(user, out, found);
  }
}

void check_chain(const json::object& root, const entry& cluster, const entry& context, const entry& user, findings& found) {
  check_fields(*context.content, context.at, context_fields, found);
  if (json::get_string(root, {"current-context"}) != context.name) found.add("/current-context", "must name the context");
  if (json::get_string(*context.content, {"cluster"}) != cluster.name) {
    found.add(json::pointer_step(context.at, "cluster"), "must name the cluster");
  }
  if (json::get_string(*context.content, {"user"}) != user.name) {
    found.add(json::pointer_step(context.at, "user"), "must name the user");
  }
}

}  // namespace

std::string cluster_access::url() const {
  bool v6 = host.find(':') != std::string::npos;
  return "https://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

kubeconfig_policy kubeconfig_policy::for_vcluster(const std::string& vcluster, const std::string& host_namespace) {
  kubeconfig_policy out;
  out.only_host = vcluster + "." + host_namespace + ".svc";
  return out;
}

result<cluster_access> read_kubeconfig(std::string_view text, const kubeconfig_policy& policy) {
  auto document = yaml::read(text);
  if (!document) return std::move(document).error().prefixed("kubeconfig");
  findings found;
  const auto* root = document->if_object();
  if (!root) {
    found.add("", "must be an object");
    return std::move(found).refuse();
  }
  check_fields(*root, "", root_fields, found);
  if (json::get_string(*root, {"apiVersion"}) != "v1") found.add("/apiVersion", "must be v1");
  if (json::get_string(*root, {"kind"}) != "Config") found.add("/kind", "must be Config");
  auto cluster = only_entry(*root, "clusters", "cluster", found);
  auto context = only_entry(*root, "contexts", "context", found);
  auto user = only_entry(*root, "users", "user", found);
  cluster_access out;
  if (cluster) read_cluster(*cluster, policy, out, found);
  if (user) read_user(*user, out, found);
  if (cluster && context && user) check_chain(*root, *cluster, *context, *user, found);
  if (found.any()) return std::move(found).refuse();
  return out;
}

}  // namespace kubeopera::inline v1::kube
