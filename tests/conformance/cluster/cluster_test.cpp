// The fixture.
#include "cluster_test.hpp"

#include <kubeopera/core/id.hpp>

namespace kubeopera::conformance {

std::vector<std::string> answer::causes() const {
  std::vector<std::string> out;
  const auto* all = json::get_array(body, {"details", "causes"});
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    const auto& c = (*all)[i].as_object();
    out.push_back(std::string(json::get_string(c, {"field"})) + ": " + std::string(json::get_string(c, {"message"})));
  }
  return out;
}

void cluster_test::SetUp() {
  api = client_of();
  ns = new_namespace();
  core = "/api/v1/namespaces/" + ns;
  apps = "/apis/apps/v1/namespaces/" + ns;
  maps = core + "/configmaps";
}

void cluster_test::TearDown() {
  for (const auto& n : namespaces_) {
    auto gone = wait(api->remove(kube::types::namespaces(), {"", n}));
    bool settled = gone || gone.error().code() == errc::not_found || gone.error().code() == errc::conflict;
    EXPECT_TRUE(settled) << to_string(gone.error());
  }
}

std::string cluster_test::unique(const std::string& prefix) { return prefix + make_uuid_v4().substr(0, 8); }

std::string cluster_test::new_namespace(const json::object& labels) {
  auto name = unique("conformance-");
  auto o = kube::make_object(kube::types::namespaces(), {"", name});
  json::ensure_object(o, "metadata")["labels"] = labels;
  auto made = wait(api->create(kube::types::namespaces(), o));
  EXPECT_TRUE(made) << to_string(made.error());
  namespaces_.push_back(name);
  EXPECT_TRUE(eventually([&] { return wait(api->get(kube::types::service_accounts(), {name, "default"})).has_value(); }));
  return name;
}

std::string cluster_test::filled(std::string_view text) const {
  std::string out(text);
  for (auto i = out.find("$NS"); i != std::string::npos; i = out.find("$NS", i)) out.replace(i, 3, ns);
  return out;
}

json::object cluster_test::doc(std::string_view text) const {
  auto r = json::read_object(filled(text));
  EXPECT_TRUE(r) << to_string(r.error()) << " in " << text;
  return r ? *r : json::object();
}

answer cluster_test::call(const std::string& method, const std::string& path, const std::string& body, const std::string& type,
                          const std::string& accept, std::shared_ptr<kube::client> as) {
  http::request r(method, path, filled(body));
  if (!type.empty()) r.headers.set("Content-Type", type);
  if (!accept.empty()) r.headers.set("Accept", accept);
  auto got = wait((as ? as : api)->raw(std::move(r)));
  answer out;
  EXPECT_TRUE(got) << method << " " << path << ": " << to_string(got.error());
  if (!got) return out;
  out.status = got->status;
  out.headers = got->headers;
  out.text = std::move(got->body);
  json::limits large;
  large.max_bytes = 32u << 20;
  if (auto o = json::read_object(out.text, large)) out.body = std::move(*o);
  return out;
}

json::object cluster_test::create(const kube::resource_type& type, const json::object& o) {
  auto r = wait(api->create(type, o));
  EXPECT_TRUE(r) << to_string(r.error());
  return r ? *r : json::object();
}

json::object cluster_test::create(const kube::resource_type& type, std::string_view text) {
  auto o = doc(text);
  if (type.namespaced) json::ensure_object(o, "metadata")["namespace"] = ns;
  return create(type, o);
}

std::optional<json::object> cluster_test::find(const kube::resource_type& type, const std::string& name) {
  kube::object_key key{type.namespaced ? ns : "", name};
  auto r = wait(api->get(type, key));
  if (r) return *r;
  EXPECT_EQ(r.error().code(), errc::not_found) << to_string(r.error());
  return std::nullopt;
}

json::object cluster_test::config_map(const std::string& name, const std::string& value) {
  auto o = kube::make_object(kube::types::config_maps(), {ns, name});
  o["data"] = {{"k", value}};
  return o;
}

std::vector<std::string> cluster_test::names(const kube::resource_type& type, const std::string& selector) {
  kube::list_options options;
  options.label_selector = selector;
  auto all = wait(kube::list_all(*api, type, type.namespaced ? ns : "", options));
  EXPECT_TRUE(all) << to_string(all.error());
  std::vector<std::string> out;
  for (std::size_t i = 0; all && i < all->items.size(); ++i) out.emplace_back(kube::name_of(all->items[i]));
  return out;
}

bool cluster_test::eventually(const std::function<bool()>& holds, std::chrono::seconds limit) {
  auto until = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    EXPECT_TRUE(wait(sleep_for(std::chrono::milliseconds(20))));
  }
  return true;
}

std::optional<json::object> cluster_test::wait_for(const kube::resource_type& type, const std::string& name,
                                                   const std::function<bool(const json::object&)>& holds) {
  std::optional<json::object> last;
  bool found = eventually([&] {
    last = find(type, name);
    return last && holds(*last);
  });
  EXPECT_TRUE(found) << type.plural << " " << name << ", last: " << (last ? json::write(*last) : "none");
  return found ? last : std::nullopt;
}

std::shared_ptr<kube::client> cluster_test::client_of(const kube::client_options& options, const std::string& connect_to) {
  auto access = access_of(at().kubeconfig());
  EXPECT_TRUE(access) << to_string(access.error());
  auto made = kube::make_client(the_runtime().executor(), access.value(), connect_to, options);
  EXPECT_TRUE(made) << to_string(made.error());
  return made.value();
}

std::shared_ptr<kube::client> cluster_test::client_with_token(const std::string& token) {
  auto access = access_of(at().kubeconfig()).value();
  access.client_certificate_pem.clear();
  access.client_key_pem = secret();
  access.token = secret(token);
  return kube::make_client(the_runtime().executor(), access).value();
}

std::string deployment(const std::string& name, const std::string& image, int replicas, const std::string& more_spec) {
  return R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":")" + name + R"("},"spec":{"replicas":)" +
         std::to_string(replicas) + R"(,"selector":{"matchLabels":{"app":")" + name + R"("}},)" + more_spec +
         R"("template":{"metadata":{"labels":{"app":")" + name + R"("}},"spec":{"containers":[{"name":"c","image":")" + image +
         R"("}]}}}})";
}

}  // namespace kubeopera::conformance
