// The closed-world kubeconfig reader: each refusal has a twin that is accepted, the same document without the attack.
#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/kube/kubeconfig.hpp>
#include <kubeopera/yaml/write.hpp>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <algorithm>

using namespace kubeopera;
using namespace kubeopera::kube;

namespace {

const crypto::key_pair& ca() {
  static const auto pair = *crypto::make_ca();
  return pair;
}
const crypto::key_pair& user_pair() {
  static const auto pair = *crypto::issue_client(ca(), "admin", {"system:masters"});
  return pair;
}

json::value good() {
  json::object cluster{{"server", "https://t1.host-ns.svc:443"},
                       {"certificate-authority-data", crypto::base64_encode(ca().certificate)}};
  json::object user{{"client-certificate-data", crypto::base64_encode(user_pair().certificate)},
                    {"client-key-data", crypto::base64_encode(user_pair().private_key)}};
  return json::object{
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"current-context", "c"},
      {"preferences", json::object{}},
      {"clusters", json::array{json::object{{"name", "k"}, {"cluster", cluster}}}},
      {"contexts", json::array{json::object{{"name", "c"}, {"context", {{"cluster", "k"}, {"user", "u"}, {"namespace", "n"}}}}}},
      {"users", json::array{json::object{{"name", "u"}, {"user", user}}}}};
}

kubeconfig_policy vcluster() { return kubeconfig_policy::for_vcluster("t1", "host-ns"); }

json::object& part(json::value& doc, std::string_view section, std::string_view member) {
  return doc.as_object()[section].as_array()[0].as_object()[member].as_object();
}
json::object& cluster_of(json::value& doc) { return part(doc, "clusters", "cluster"); }
json::object& user_of(json::value& doc) { return part(doc, "users", "user"); }

result<cluster_access> read(const json::value& doc, const kubeconfig_policy& policy) {
  return read_kubeconfig(yaml::write(doc), policy);
}

// Refused with a violation at pointer, and nothing of secret in what is said.
void refused(const json::value& doc, const kubeconfig_policy& policy, const std::string& pointer) {
  auto r = read(doc, policy);
  ASSERT_FALSE(r) << pointer;
  EXPECT_EQ(r.error().code(), errc::invalid_argument);
  EXPECT_EQ(r.error().reason(), "KubeconfigRefused");
  const auto all = r.error().violations();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const violation& v) { return v.pointer == pointer; }))
      << pointer << " but: " << (all.empty() ? "" : all[0].pointer);
  EXPECT_EQ(to_string(r.error()).find("S3CRET"), std::string::npos);
  for (const auto& v : all) EXPECT_EQ(v.message.find("S3CRET"), std::string::npos);
}

struct extra_field {
  const char* section;
  const char* member;
  const char* name;
  const char* value;  // JSON
};

class refused_field : public testing::TestWithParam<extra_field> {};

}  // namespace

TEST(kubeconfig, a_plain_vcluster_one_is_accepted) {
  auto r = read(good(), vcluster());
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->host, "t1.host-ns.svc");
  EXPECT_EQ(r->port, 443);
  EXPECT_EQ(r->url(), "https://t1.host-ns.svc:443");
  EXPECT_EQ(r->ca_pem, ca().certificate);
  EXPECT_EQ(r->client_certificate_pem, user_pair().certificate);
  EXPECT_EQ(r->client_key_pem.reveal(), user_pair().private_key);
  EXPECT_TRUE(r->token.empty());
  EXPECT_EQ(r->tls_server_name, "");
}

TEST(kubeconfig, a_token_instead_of_a_certificate) {
  auto doc = good();
  doc.as_object()["users"].as_array()[0].as_object()["user"] = {{"token", "abc.def"}};
  auto r = read(doc, vcluster());
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->token.reveal(), "abc.def");
  for (auto bad : {"", "a b", "a\r\nX: y", "a\n", "\xc3\xa4"}) {
    doc.as_object()["users"].as_array()[0].as_object()["user"] = {{"token", bad}};
    refused(doc, vcluster(), "/users/0/user/token");
  }
}

TEST_P(refused_field, refuses_the_document) {
  auto p = GetParam();
  auto doc = good();
  ASSERT_TRUE(read(doc, vcluster())) << "the twin";
  auto value = boost::json::parse(p.value);
  if (!p.section[0]) {
    doc.as_object()[p.name] = value;
    refused(doc, vcluster(), std::string("/") + p.name);
  } else {
    part(doc, p.section, p.member)[p.name] = value;
    refused(doc, vcluster(), std::string("/") + p.section + "/0/" + p.member + "/" + p.name);
  }
}

INSTANTIATE_TEST_SUITE_P(
    all, refused_field,
    testing::Values(extra_field{"users", "user", "exec", R"({"command":"S3CRET"})"},
                    extra_field{"users", "user", "auth-provider", R"({"name":"gcp"})"},
                    extra_field{"users", "user", "client-certificate", R"("/etc/S3CRET")"},
                    extra_field{"users", "user", "client-key", R"("/etc/S3CRET")"},
                    extra_field{"users", "user", "tokenFile", R"("/var/run/secrets/S3CRET")"},
                    extra_field{"users", "user", "username", R"("S3CRET")"},
                    extra_field{"users", "user", "password", R"("S3CRET")"}, extra_field{"users", "user", "as", R"("S3CRET")"},
                    extra_field{"users", "user", "as-uid", R"("S3CRET")"},
                    extra_field{"users", "user", "as-groups", R"(["system:masters"])"},
                    extra_field{"users", "user", "as-user-extra", R"({"a":["b"]})"},
                    extra_field{"users", "user", "Exec", R"({})"}, extra_field{"users", "user", "unknown", R"(1)"},
                    extra_field{"clusters", "cluster", "certificate-authority", R"("/etc/S3CRET")"},
                    extra_field{"clusters", "cluster", "insecure-skip-tls-verify", R"(true)"},
                    extra_field{"clusters", "cluster", "insecure-skip-tls-verify", R"("true")"},
                    extra_field{"clusters", "cluster", "proxy-url", R"("http://S3CRET")"},
                    extra_field{"clusters", "cluster", "proxy-url", R"("")"},
                    extra_field{"clusters", "cluster", "Server", R"("https://S3CRET")"},
                    extra_field{"clusters", "cluster", "tls-server-name", R"("a/b")"},
                    extra_field{"clusters", "cluster", "tls-server-name", R"(5)"},
                    extra_field{"contexts", "context", "unknown", R"(1)"}, extra_field{"", "", "unknown", R"(1)"},
                    extra_field{"", "", "apiVersion", R"("v2")"}, extra_field{"", "", "kind", R"("List")"}));

TEST(kubeconfig, harmless_fields_are_ignored) {
  auto doc = good();
  cluster_of(doc)["insecure-skip-tls-verify"] = false;
  cluster_of(doc)["disable-compression"] = true;
  cluster_of(doc)["extensions"] = json::array{json::object{{"name", "x"}, {"extension", {{"a", 1}}}}};
  user_of(doc)["extensions"] = nullptr;
  doc.as_object()["extensions"] = json::array{};
  EXPECT_TRUE(read(doc, vcluster()));
}

TEST(kubeconfig, only_the_vclusters_own_service_is_reached) {
  for (auto server : {"https://t2.host-ns.svc:443",
                      "https://t1.other.svc:443",
                      "https://t1.host-ns.svc:6443",
                      "http://t1.host-ns.svc:443",
                      "https://t1.host-ns.svc.evil.com:443",
                      "https://S3CRET@t1.host-ns.svc",
                      "https://t1.host-ns.svc/path",
                      "https://t1.host-ns.svc/?a=b",
                      "https://t1.host-ns.svc/#x",
                      "https://t1.host-ns.svc%2f",
                      "https://169.254.169.254",
                      "https://10.0.0.1:443",
                      "https://kubernetes.default.svc",
                      "https://t1.host-ns.svc.:443",
                      "t1.host-ns.svc",
                      "",
                      "https://",
                      "https://t1.host-ns.svc:0",
                      "https://t1.host-ns.svc:99999",
                      "HTTPS://t1.host-ns.svc\\@evil"}) {
    auto doc = good();
    cluster_of(doc)["server"] = server;
    refused(doc, vcluster(), "/clusters/0/cluster/server");
  }
  auto doc = good();
  cluster_of(doc)["server"] = "https://t1.host-ns.svc/";
  EXPECT_TRUE(read(doc, vcluster())) << "443 is the default port";
}

TEST(kubeconfig, the_loopback_that_vcluster_writes_stands_for_its_service) {
  auto doc = good();
  cluster_of(doc)["server"] = "https://localhost:8443";
  auto r = read(doc, vcluster());
  ASSERT_TRUE(r) << to_string(r.error());
  EXPECT_EQ(r->url(), "https://t1.host-ns.svc:443");
  EXPECT_EQ(r->tls_server_name, "localhost") << "the name that its certificate has";
  cluster_of(doc)["tls-server-name"] = "t1.host-ns.svc";
  EXPECT_EQ(read(doc, vcluster())->tls_server_name, "t1.host-ns.svc");
  auto strict = vcluster();
  strict.loopback_is_only_host = false;
  refused(doc, strict, "/clusters/0/cluster/server");
}

TEST(kubeconfig, registered_clusters_are_public_and_not_ours) {
  kubeconfig_policy policy;
  policy.refused_hosts = {"api.host.example.com"};
  auto with = [](const char* server) {
    auto doc = good();
    cluster_of(doc)["server"] = server;
    return doc;
  };
  EXPECT_TRUE(read(with("https://k8s.example.com:6443"), policy));
  EXPECT_TRUE(read(with("https://8.8.8.8:6443"), policy));
  for (auto server :
       {"https://localhost:8443", "https://127.0.0.1", "https://[::1]", "https://169.254.169.254", "https://[fd00:ec2::254]",
        "https://10.1.2.3", "https://0.0.0.0", "https://224.0.0.1", "https://[::ffff:10.0.0.1]", "https://[64:ff9b::a00:1]",
        "https://kubernetes", "https://kubernetes.default.svc", "https://a.b.svc.cluster.local", "https://x.internal",
        "https://api.host.example.com", "https://2130706433", "https://0x7f.1", "https://k8s.example.com/path"}) {
    refused(with(server), policy, "/clusters/0/cluster/server");
  }
  auto doc = with("https://k8s.example.com");
  cluster_of(doc)["tls-server-name"] = "kubernetes.default.svc";
  refused(doc, policy, "/clusters/0/cluster/tls-server-name");
  policy.addresses = [](const http::ip_address& a) -> result<void> {
    if (http::parse_network("10.0.0.0/8")->contains(a)) return {};
    return error(errc::permission_denied, "AddressRefused", "");
  };
  EXPECT_TRUE(read(with("https://10.1.2.3"), policy)) << "the operator allowed this network";
}

TEST(kubeconfig, the_authority_is_needed_and_must_be_certificates) {
  auto doc = good();
  cluster_of(doc).erase("certificate-authority-data");
  refused(doc, vcluster(), "/clusters/0/cluster/certificate-authority-data");
  for (const auto& bad :
       {std::string("not base64!"), crypto::base64_encode("no pem"), crypto::base64_encode(user_pair().private_key),
        crypto::base64_encode(std::string(65 * 1024, 'x')), crypto::base64_encode(ca().certificate) + "\n"}) {
    cluster_of(doc)["certificate-authority-data"] = bad;
    refused(doc, vcluster(), "/clusters/0/cluster/certificate-authority-data");
  }
}

TEST(kubeconfig, exactly_one_way_to_authenticate) {
  auto doc = good();
  user_of(doc)["token"] = "S3CRET";
  refused(doc, vcluster(), "/users/0/user");
  doc = good();
  doc.as_object()["users"].as_array()[0].as_object()["user"] = json::object{};
  refused(doc, vcluster(), "/users/0/user");
  doc = good();
  user_of(doc).erase("client-key-data");
  refused(doc, vcluster(), "/users/0/user");
  doc = good();
  user_of(doc)["client-key-data"] = crypto::base64_encode(ca().private_key);
  refused(doc, vcluster(), "/users/0/user");
}

TEST(kubeconfig, exactly_one_chain) {
  for (auto section : {"clusters", "contexts", "users"}) {
    auto doc = good();
    auto& list = doc.as_object()[section].as_array();
    list.push_back(list[0]);
    refused(doc, vcluster(), std::string("/") + section);
    list.clear();
    refused(doc, vcluster(), std::string("/") + section);
    doc.as_object().erase(section);
    refused(doc, vcluster(), std::string("/") + section);
    doc.as_object()[section] = "S3CRET";
    refused(doc, vcluster(), std::string("/") + section);
  }
  auto doc = good();
  doc.as_object()["current-context"] = "S3CRET";
  refused(doc, vcluster(), "/current-context");
  doc = good();
  part(doc, "contexts", "context")["cluster"] = "S3CRET";
  refused(doc, vcluster(), "/contexts/0/context/cluster");
  doc = good();
  part(doc, "contexts", "context")["user"] = "S3CRET";
  refused(doc, vcluster(), "/contexts/0/context/user");
}

TEST(kubeconfig, yaml_that_two_readers_understand_differently_is_refused) {
  auto text = yaml::write(good());
  EXPECT_TRUE(read_kubeconfig(text, vcluster()));
  EXPECT_EQ(read_kubeconfig(text + "kind: Config\n", vcluster()).error().reason(), "DuplicateKey");
  EXPECT_FALSE(read_kubeconfig(text + "---\n" + text, vcluster()));
  EXPECT_FALSE(read_kubeconfig("extensions: &a []\npreferences: *a\n" + text, vcluster()));
  EXPECT_FALSE(read_kubeconfig("", vcluster()));
  EXPECT_FALSE(read_kubeconfig("[]", vcluster()));
  EXPECT_EQ(read_kubeconfig(text + "# " + std::string(300 * 1024, 'x'), vcluster()).error().code(), errc::too_large);
}

TEST(kubeconfig, what_is_written_is_read_back) {
  auto first = *read(good(), vcluster());
  auto again = read_kubeconfig(write_kubeconfig(first, "y"), vcluster());
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->url(), first.url());
  EXPECT_EQ(again->ca_pem, first.ca_pem);
  EXPECT_EQ(again->client_certificate_pem, first.client_certificate_pem);
  EXPECT_EQ(again->client_key_pem.reveal(), first.client_key_pem.reveal());
  cluster_access with_token;
  with_token.host = "t1.host-ns.svc";
  with_token.ca_pem = ca().certificate;
  with_token.token = secret("no");
  with_token.tls_server_name = "localhost";
  again = read_kubeconfig(write_kubeconfig(with_token, "null"), vcluster());
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->token.reveal(), "no");
  EXPECT_EQ(again->tls_server_name, "localhost");
}

TEST(kubeconfig, addresses_with_colons_are_bracketed) {
  cluster_access a;
  a.host = "2001:db8::1";
  a.port = 6443;
  EXPECT_EQ(a.url(), "https://[2001:db8::1]:6443");
}
