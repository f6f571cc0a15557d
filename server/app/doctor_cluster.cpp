// What doctor looks at on clusters, in Git, and at the addresses of apps.
#include "server/app/connections.hpp"
#include "server/app/doctor_subject.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/crds.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <array>
#include <ctime>
#include <filesystem>

namespace kubeopera::inline v1::app {
namespace {

// RFC 9110, 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT". 0 where it is something else.
double http_date(std::string_view text) {
  std::tm t{};
  std::string owned(text);
  const char* end = ::strptime(owned.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &t);
  return end && *end == '\0' ? static_cast<double>(::timegm(&t)) : 0;
}

std::string host_remedy(const doctor_subject& s) {
  return s.embedded ? "stop the server and start it again: " + s.start_command
                    : std::string("correct KUBECONFIG, or look whether the API server runs and lets this machine in");
}

// True when the API server answers.
task<bool> judge_version(const doctor_subject& s, examination& out) {
  http::request ask("GET", "/version");
  auto before = now_seconds();
  auto answer = co_await s.host->raw(std::move(ask));
  auto after = now_seconds();
  if (!answer || answer->status != 200) {
    auto what = answer ? "it answers " + std::to_string(answer->status) : words_of(answer.error());
    out.fail("host cluster", "reachable", what, host_remedy(s));
    co_return false;
  }
  auto body = json::read_object(answer->body);
  std::string version(body ? json::get_string(*body, {"gitVersion"}) : "");
  int minor = body ? std::atoi(std::string(json::get_string(*body, {"minor"})).c_str()) : 0;
  out.ok("host cluster", "reachable", "Kubernetes " + version);
  if (minor < 28)
    out.warn("host cluster", "version", version + " is older than what kubeopera is tried on", "upgrade it to 1.28 or newer");
  else
    out.ok("host cluster", "version", "1.28 or newer");
  // The header counts whole seconds.
  auto theirs = http_date(answer->headers.get("Date").value_or(""));
  if (theirs > 0) judge_clock(out, "host cluster", theirs, before - 1, after);
  co_return true;
}

task<void> judge_crd(const doctor_subject& s, const json::object& wanted, examination& out) {
  std::string name(kube::name_of(wanted));
  auto remedy = s.embedded ? "start the server again, it installs them: " + s.start_command
                           : std::string("run: kubeopera crds | kubectl apply --server-side -f -");
  auto live = co_await s.host->get(kube::types::custom_resource_definitions(), {"", name});
  if (!live) {
    out.fail("host cluster", "resources", name + ": " + words_of(live.error()), remedy);
    co_return result<void>();
  }
  auto serves = [&](std::string_view version) {
    const auto* all = json::get_array(*live, {"spec", "versions"});
    return all && std::any_of(all->begin(), all->end(), [&](const json::value& v) {
             return v.is_object() && json::get_string(v.get_object(), {"name"}) == version &&
                    json::get_bool(v.get_object(), {"served"});
           });
  };
  bool complete = true;
  if (const auto* versions = json::get_array(wanted, {"spec", "versions"}))
    for (const auto& v : *versions) complete = complete && serves(json::get_string(v.as_object(), {"name"}));
  if (!complete)
    out.fail("host cluster", "resources", name + " does not serve the version that kubeopera uses", remedy);
  else if (!kube::condition_true(*live, "Established"))
    out.fail("host cluster", "resources", name + " is not established", remedy);
  else
    out.ok("host cluster", "resources", name + " is established");
  co_return result<void>();
}

struct right {
  const char *group, *resource, *subresource, *verb;
  bool everywhere;
};

// What the roles api and app-controller do on the host cluster.
constexpr std::array rights = {
    right{"apps.kubeopera.io", "kubeoperaapps", "", "list", false},
    right{"apps.kubeopera.io", "kubeoperaapps", "", "watch", false},
    right{"apps.kubeopera.io", "kubeoperaapps", "", "create", false},
    right{"apps.kubeopera.io", "kubeoperaapps", "", "update", false},
    right{"apps.kubeopera.io", "kubeoperaapps", "", "patch", false},
    right{"apps.kubeopera.io", "kubeoperaapps", "", "delete", false},
    right{"apps.kubeopera.io", "kubeoperaapps", "status", "patch", false},
    right{"tenancy.kubeopera.io", "kubeoperatenants", "", "list", false},
    right{"tenancy.kubeopera.io", "kubeoperatenants", "", "watch", false},
    right{"tenancy.kubeopera.io", "kubeoperatenants", "", "create", false},
    right{"tenancy.kubeopera.io", "kubeoperatenants", "", "patch", false},
    right{"tenancy.kubeopera.io", "kubeoperatenants", "", "delete", false},
    right{"", "secrets", "", "get", true},
    right{"coordination.k8s.io", "leases", "", "create", false},
    right{"coordination.k8s.io", "leases", "", "update", false},
};

task<bool> may(const doctor_subject& s, right r) {
  json::object what{{"group", r.group}, {"resource", r.resource}, {"verb", r.verb}};
  if (*r.subresource) what["subresource"] = r.subresource;
  if (!r.everywhere) what["namespace"] = s.configured.system_namespace;
  json::object review{{"apiVersion", "authorization.k8s.io/v1"},
                      {"kind", "SelfSubjectAccessReview"},
                      {"spec", json::object{{"resourceAttributes", std::move(what)}}}};
  http::request ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json::write(review));
  ask.headers.set("Content-Type", "application/json");
  KUBEOPERA_CO_TRY(auto answer, co_await s.host->raw(std::move(ask)));
  if (answer.status != 201)
    co_return error(errc::unsupported, "NotServed", "access reviews are answered with " + std::to_string(answer.status));
  KUBEOPERA_CO_TRY(auto body, json::read_object(answer.body));
  co_return json::get_bool(body, {"status", "allowed"});
}

task<void> judge_rights(const doctor_subject& s, examination& out) {
  std::string denied;
  for (const auto& r : rights) {
    auto allowed = co_await may(s, r);
    if (!allowed && allowed.error().code() != errc::unsupported) co_return allowed.error();
    if (!allowed) {
      out.warn("host cluster", "permissions", words_of(allowed.error()), "compare the roles of the account with those shipped");
      co_return result<void>();
    }
    if (*allowed) continue;
    if (!denied.empty()) denied += ", ";
    denied += std::string(r.verb) + " " + r.resource + (*r.subresource ? std::string("/") + r.subresource : std::string());
  }
  if (denied.empty())
    out.ok("host cluster", "permissions", "all " + std::to_string(rights.size()) + " that are needed");
  else
    out.fail("host cluster", "permissions", "not allowed: " + denied,
             "add these verbs to the account's Role in namespace " + s.configured.system_namespace + " (secrets: ClusterRole)");
  co_return result<void>();
}

}  // namespace

task<void> examine_cluster(std::shared_ptr<const doctor_subject> s, examination& out) {
  if (!s->host) co_return result<void>();
  if (!s->host_access->client_certificate_pem.empty())
    judge_certificate(out, "host cluster", "certificate", s->host_access->client_certificate_pem,
                      "have a new client certificate signed for the account and put it into the kubeconfig");
  KUBEOPERA_CO_TRY(bool there, co_await judge_version(*s, out));
  if (!there) co_return result<void>();
  auto wanted = manifest::crds();
  for (const auto& crd : wanted) KUBEOPERA_CO_CHECK(co_await judge_crd(*s, crd, out));
  co_return co_await judge_rights(*s, out);
}

// ---- vClusters ------------------------------------------------------------------------------------------------------

namespace {

std::string secret_remedy(const std::string& ns, const std::string& name) {
  return "delete the Secret and let the vCluster write it anew: kubectl -n " + ns + " delete secret vc-" + name +
         "; then restart the vCluster";
}

// True when there is nothing to say.
task<bool> judge_vcluster(const doctor_subject& s, kube::object tenant, examination& out) {
  std::string name(kube::name_of(tenant)), area = "vcluster " + name;
  auto which = vcluster::reference_of(tenant);
  if (!which || !kube::condition_true(tenant, "Ready")) {
    out.warn(area, "ready", "it is not ready",
             "look at its conditions: kubectl -n " + s.configured.system_namespace + " describe kubeoperatenant " + name);
    co_return false;
  }
  auto remedy = secret_remedy(which->host_namespace, name);
  auto found = co_await s.host->get(kube::types::secrets(), {which->host_namespace, "vc-" + name});
  if (!found) {
    out.fail(area, "kubeconfig", "Secret vc-" + name + ": " + words_of(found.error()), remedy);
    co_return false;
  }
  auto text = crypto::base64_decode(json::get_string(*found, {"data", "config"}));
  auto policy = kube::kubeconfig_policy::for_vcluster(name, which->host_namespace);
  auto access = text ? kube::read_kubeconfig(*text, policy) : result<kube::cluster_access>(text.error());
  if (!access) {
    out.fail(area, "kubeconfig", "Secret vc-" + name + " holds no kubeconfig that can be used: " + words_of(access.error()),
             remedy);
    co_return false;
  }
  if (!access->client_certificate_pem.empty()) {
    auto before = out.findings.size();
    judge_certificate(out, area, "certificate", access->client_certificate_pem, remedy);
    if (out.findings.back().state != cli::health::ok) co_return false;
    out.findings.resize(before);  // what is well is told once for all
  }
  auto place = s.connect_to ? s.connect_to(access->host) : std::string();
  if (s.embedded && place.empty()) {
    out.warn(area, "reachable", "embedded.json does not name it yet", "ask again in a second");
    co_return false;
  }
  auto client = kube::make_client(s.executor, *access, place);
  if (!client) co_return client.error();
  auto answer = co_await (*client)->raw(http::request("GET", "/version"));
  if (answer && answer->status == 200) co_return true;
  auto what = answer ? "it answers " + std::to_string(answer->status) : words_of(answer.error());
  out.fail(area, "reachable", what, "look at its pods: kubectl -n " + which->host_namespace + " get pods; then: " + remedy);
  co_return false;
}

}  // namespace

task<void> examine_vclusters(std::shared_ptr<const doctor_subject> s, examination& out) {
  if (!s->host) co_return result<void>();
  kube::list_options o;
  auto tenants = co_await kube::list_all(*s->host, kube::types::kubeopera_tenants(), s->configured.system_namespace, o);
  if (!tenants) co_return result<void>();  // told under "host cluster"
  std::size_t well = 0;
  for (const auto& t : tenants->items) {
    auto fine = co_await judge_vcluster(*s, t, out);
    if (!fine) co_return fine.error();
    if (*fine) ++well;
  }
  if (well == tenants->items.size()) out.ok("vclusters", "kubeconfigs", std::to_string(well) + " are valid and answer");
  co_return result<void>();
}

// ---- Git ------------------------------------------------------------------------------------------------------------

namespace {

std::string git_remedy(const doctor_subject& s, const error& e) {
  if (s.embedded)
    return "restore " + s.directory + "/fleet.git from a backup or a clone: git clone --bare CLONE " + s.directory + "/fleet.git";
  if (e.code() == errc::not_found) return "create the repository, or correct FLUX_GIT_URL";
  if (e.code() == errc::unauthenticated || e.code() == errc::permission_denied)
    return "correct the credentials in the Secret that FLUX_GIT_SECRET_REF names; they must be allowed to push";
  return "look whether the Git server runs, and whether FLUX_GIT_URL and the network lead there";
}

// Files for ssh live as long as this.
class key_folder {
 public:
  key_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kubeopera-doctor-XXXXXX").string();
    if (::mkdtemp(name.data())) path = name;
  }
  ~key_folder() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
  key_folder(const key_folder&) = delete;
  key_folder& operator=(const key_folder&) = delete;
  std::string path;
};

task<std::unique_ptr<gitops::remote>> fleet_of(std::shared_ptr<const doctor_subject> s, std::string key_dir) {
  if (s->fleet) co_return s->fleet();
  if (key_dir.empty()) co_return error(errc::unavailable, "CannotWrite", "no temporary folder can be made");
  KUBEOPERA_CO_TRY(auto make, co_await open_remote(s->executor, s->configured, s->host, nullptr, key_dir));
  co_return make();
}

}  // namespace

task<void> examine_fleet(std::shared_ptr<const doctor_subject> s, examination& out) {
  if (!s->fleet && (s->configured.flux_git_url.empty() || (!s->host && !s->configured.flux_git_secret_ref.empty())))
    co_return result<void>();
  key_folder keys;
  auto remote = co_await fleet_of(s, keys.path);
  if (!remote) {
    out.fail("fleet repository", "credentials", words_of(remote.error()), git_remedy(*s, remote.error()));
    co_return result<void>();
  }
  const auto& branch = s->configured.flux_git_branch;
  auto tip = co_await (*remote)->tip(branch);
  if (!tip) {
    out.fail("fleet repository", "reachable", words_of(tip.error()), git_remedy(*s, tip.error()));
    co_return result<void>();
  }
  out.ok("fleet repository", "reachable",
         *tip ? "branch " + branch + " is at " + (*tip)->substr(0, 12)
              : "empty: no branch " + branch + " yet, the first delivery makes it");
  auto push = co_await (*remote)->may_push();
  if (push)
    out.ok("fleet repository", "push", "would be let in");
  else if (push.error().code() == errc::unsupported)
    out.warn("fleet repository", "push", words_of(push.error()), "try it: git push --dry-run with the same credentials");
  else
    out.fail("fleet repository", "push", words_of(push.error()), git_remedy(*s, push.error()));
  co_return result<void>();
}

// ---- addresses of apps, and the server itself -----------------------------------------------------------------------

task<void> examine_addresses(std::shared_ptr<const doctor_subject> s, examination& out) {
  if (!s->check_addresses) co_return result<void>();
  const auto& base = s->configured.apps_base_domain;
  http::client_options o("https://kubeopera-doctor." + base + ":" + std::to_string(s->apps_https_port));
  o.tls.ca_pem = s->apps_ca_pem;
  o.connect_to = s->apps_connect_to;
  KUBEOPERA_CO_TRY(auto client, http::make_client(s->executor, o));
  auto answer = co_await client->send(http::request("GET", "/"), false);
  if (answer) {
    out.ok("addresses", "*." + base, "resolves, and answers over TLS");
    co_return result<void>();
  }
  auto e = answer.error();
  auto remedy = e.reason() == "DnsFailed" ? "make a wildcard DNS record *." + base + " for the ingress controller's address"
                : e.reason() == "TlsFailed"
                    ? "give the ingress controller a certificate for *." + base + " that clients trust (APPS_WILDCARD_TLS_SECRET)"
                    : "look whether the ingress controller runs and its address is open on port 443";
  if (s->embedded) remedy = "stop the server and start it again: " + s->start_command;
  out.fail("addresses", "*." + base, words_of(e), remedy);
  co_return result<void>();
}

task<void> examine_server(std::shared_ptr<const doctor_subject> s, examination& out) {
  if (s->api_url.empty()) co_return result<void>();
  KUBEOPERA_CO_TRY(auto client, http::make_client(s->executor, http::client_options(s->api_url)));
  auto answer = co_await client->send(http::request("GET", "/readyz"), false);
  if (!answer) {
    out.fail("server", "ready", words_of(answer.error()), "look at its log; stop it and start it again: " + s->start_command);
    co_return result<void>();
  }
  if (answer->status == 200) {
    out.ok("server", "ready", s->api_url);
    co_return result<void>();
  }
  std::string sick;
  auto body = json::read_object(answer->body);
  if (const auto* checks = body ? json::get_array(*body, {"checks"}) : nullptr)
    for (const auto& c : *checks)
      if (c.is_object() && !json::get_bool(c.get_object(), {"ok"}))
        sick += (sick.empty() ? "" : ", ") + std::string(json::get_string(c.get_object(), {"name"}));
  out.fail("server", "ready", "not ready: " + sick, "mend what is told of these below; it becomes ready by itself");
  co_return result<void>();
}

}  // namespace kubeopera::inline v1::app
