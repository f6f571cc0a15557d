#include "server/app/doctor_subject.hpp"

#include "server/app/connections.hpp"
#include "server/embedded/postgres_process.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/yaml/read.hpp>

#include <csignal>
#include <filesystem>
#include <map>

namespace kubeopera::inline v1::app {
namespace {

namespace fs = std::filesystem;

std::string remedy_for_setting(const std::string& name) {
  if (name == "DATABASE_URL") return "set DATABASE_URL to postgres://USER:PASSWORD@HOST:5432/DATABASE";
  if (name == "AUTH_JWT_ACCESS_SECRET")
    return "set AUTH_JWT_ACCESS_SECRET to the output of: openssl rand -base64 48 (the same for every process)";
  return "correct " + name + "; server/app/config.hpp lists every setting";
}

result<kube::cluster_access> read_access(const std::string& kubeconfig_file) {
  KUBEOPERA_TRY(auto text, slurp(kubeconfig_file));
  kube::kubeconfig_policy policy;
  policy.addresses = [](const http::ip_address&) { return result<void>(); };  // the operator's word
  return kube::read_kubeconfig(text, policy);
}

void reach_host(doctor_subject& s, result<kube::cluster_access> access, const std::string& remedy, examination& out) {
  if (access) {
    auto client = kube::make_client(s.executor, *access);
    if (client) {
      s.host_access = std::move(*access);
      s.host = std::move(*client);
      return;
    }
    access = client.error();
  }
  out.fail("host cluster", "credentials", words_of(access.error()), remedy);
}

// Where the services of the simulated host cluster are: the port of each vCluster's own kubeconfig.
std::function<std::string(const std::string&)> service_map(const json::object& info) {
  std::map<std::string, std::string> places;
  if (const auto* all = json::get_object(info, {"vclusters"}))
    for (const auto& m : *all) {
      auto access = read_access(std::string(json::as_view(m.value())));
      std::string name(m.key());
      if (access) places[name + ".vc-" + name + ".svc"] = access->host + ":" + std::to_string(access->port);
    }
  return [places](const std::string& host) {
    auto it = places.find(host);
    return it == places.end() ? std::string() : it->second;
  };
}

void read_running(doctor_subject& s, const json::object& info, examination& out) {
  s.api_url = json::get_string(info, {"api_url"});
  reach_host(s, read_access(std::string(json::get_string(info, {"kubeconfig"}))),
             "start the server again: it writes the file anew", out);
  s.connect_to = service_map(info);
  // "*:PORT:ADDRESS", as curl takes it.
  std::string resolve(json::get_string(info, {"apps_resolve"}));
  auto colon = resolve.find(':'), last = resolve.rfind(':');
  auto ca = slurp(std::string(json::get_string(info, {"apps_ca"})));
  if (colon == std::string::npos || last == colon || !ca) return;
  s.check_addresses = true;
  s.apps_ca_pem = std::move(*ca);
  auto port = resolve.substr(colon + 1, last - colon - 1);
  s.apps_https_port = std::atoi(port.c_str());
  s.apps_connect_to = resolve.substr(last + 1) + ":" + port;
}

}  // namespace

doctor_subject embedded_subject(asio::any_io_executor executor, const std::string& data_dir, examination& out) {
  doctor_subject s;
  fs::path dir = fs::absolute(data_dir);
  s.executor = executor;
  s.embedded = true;
  s.directory = dir.string();
  s.start_command = "kubeopera embedded --data-dir " + data_dir;
  s.key_place = (dir / "token.key").string();
  s.configured.apps_base_domain = "apps.kubeopera.localhost";
  s.configured.database_url = embedded::postgres_process::url_of((dir / "postgres").string());
  if (auto key = slurp(s.key_place)) s.configured.jwt_secret = secret(std::move(*key));
  auto repository = (dir / "fleet.git").string();
  s.fleet = [repository] { return gitops::make_file_remote(repository, nullptr); };
  auto text = slurp((dir / "embedded.json").string());
  auto info = text ? json::read_object(*text) : result<json::object>(text.error());
  auto pid = info ? static_cast<pid_t>(json::get_int(*info, {"pid"})) : 0;
  s.running = pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
  if (!s.running) {
    out.fail("server", "process", "no server runs on " + data_dir, "start it: " + s.start_command);
    return s;
  }
  out.ok("server", "process", "runs, process " + std::to_string(pid));
  read_running(s, *info, out);
  return s;
}

doctor_subject environment_subject(asio::any_io_executor executor, examination& out) {
  doctor_subject s;
  s.executor = executor;
  std::vector<violation> bad;
  s.configured = collect_settings(bad);
  s.directory = s.configured.store_dir;
  s.start_command = "kubeopera serve --roles api,app,app-controller";
  s.key_place = "AUTH_JWT_ACCESS_SECRET";
  for (const auto& v : bad) out.fail("settings", v.pointer, v.message, remedy_for_setting(v.pointer));
  if (s.configured.flux_git_url.empty())
    out.fail("settings", "FLUX_GIT_URL", "is required by the role app-controller",
             "set FLUX_GIT_URL to the https:// or ssh:// address of the fleet repository");
  if (bad.empty() && !s.configured.flux_git_url.empty()) out.ok("settings", "environment", "complete");
  reach_host(s, host_access(s.configured), "set KUBECONFIG to a kubeconfig file with one cluster, or run inside the cluster",
             out);
  s.check_addresses = s.configured.apps_base_domain != settings().apps_base_domain;
  return s;
}

}  // namespace kubeopera::inline v1::app
