// Checked names into request targets: nothing that a tenant wrote can move a request to another path.
#include "src/kube/uri.hpp"

#include <kubeopera/http/url.hpp>

namespace kubeopera::inline v1::kube::detail {
namespace {

error bad_name(std::string_view what, std::string_view text) {
  return error(errc::invalid_argument, "InvalidName", "the " + std::string(what) + " is not a valid name")
      .with_context(std::string(what), std::string(text.substr(0, 256)));
}

result<std::string> root_path(const resource_type& type) {
  if (!is_dns_label(type.version)) return bad_name("version", type.version);
  if (!is_dns_label(type.plural)) return bad_name("resource", type.plural);
  if (type.group.empty()) return "/api/" + type.version;
  if (!is_dns_subdomain(type.group)) return bad_name("group", type.group);
  return "/apis/" + type.group + "/" + type.version;
}

}  // namespace

result<std::string> collection_path(const resource_type& type, const std::string& ns) {
  KUBEOPERA_TRY(auto path, root_path(type));
  if (!ns.empty()) {
    if (!type.namespaced) return bad_name("namespace of a cluster-scoped kind", ns);
    if (!is_dns_label(ns)) return bad_name("namespace", ns);
    path += "/namespaces/" + http::percent_encode(ns);
  }
  return path + "/" + type.plural;
}

result<std::string> object_path(const resource_type& type, const object_key& key, std::string_view subresource) {
  if (type.namespaced && key.ns.empty()) return bad_name("namespace", key.ns);
  if (!is_dns_subdomain(key.name)) return bad_name("name", key.name);
  KUBEOPERA_TRY(auto path, collection_path(type, key.ns));
  path += "/" + http::percent_encode(key.name);
  if (subresource.empty()) return path;
  if (!is_dns_label(subresource)) return bad_name("subresource", subresource);
  return path + "/" + std::string(subresource);
}

query& query::add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  text_ += text_.empty() ? '?' : '&';
  text_ += name;
  text_ += '=';
  text_ += http::percent_encode(value);
  return *this;
}

query& query::add(std::string_view name, long long value) { return add(name, std::string_view(std::to_string(value))); }

std::string query::on(std::string path) const { return std::move(path) + text_; }

}  // namespace kubeopera::inline v1::kube::detail
