// What doctor looks at, however it is deployed.
#pragma once

#include "server/app/config.hpp"
#include "server/cli/doctor_report.hpp"

#include <kubeopera/core/async.hpp>
#include <kubeopera/gitops/committer.hpp>
#include <kubeopera/kube/kubeconfig.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::app {

/// Findings in the order of their making. Not thread-safe.
class examination {
 public:
  void ok(std::string area, std::string check, std::string message) { add(cli::health::ok, area, check, message, ""); }
  void warn(std::string area, std::string check, std::string message, std::string remedy) {
    add(cli::health::warning, area, check, message, remedy);
  }
  void fail(std::string area, std::string check, std::string message, std::string remedy) {
    add(cli::health::failed, area, check, message, remedy);
  }
  std::vector<cli::finding> findings;

 private:
  void add(cli::health h, std::string& area, std::string& check, std::string& message, std::string remedy) {
    findings.push_back({std::move(area), std::move(check), h, std::move(message), std::move(remedy)});
  }
};

struct doctor_subject {
  asio::any_io_executor executor;
  bool embedded = false;
  bool running = true;        ///< embedded: whether its server runs
  std::string directory;      ///< data or store folder
  std::string start_command;  ///< "kubeopera embedded --data-dir …"
  settings configured;        ///< database_url, jwt_secret and the rest, from wherever they come
  std::string key_place;      ///< where the token key is set
  std::string api_url;        ///< embedded and running
  std::optional<kube::cluster_access> host_access;
  std::shared_ptr<kube::client> host;  ///< null where it cannot be reached for lack of configuration
  std::function<std::string(const std::string& service_host)> connect_to;
  std::function<std::unique_ptr<gitops::remote>()> fleet;  ///< empty: not known, see fleet_of()
  bool check_addresses = false;
  int apps_https_port = 443;
  std::string apps_ca_pem, apps_connect_to;
};

/// The embedded server in data_dir; what cannot be read becomes findings.
doctor_subject embedded_subject(asio::any_io_executor executor, const std::string& data_dir, examination& out);
/// What `kubeopera serve` would work with.
doctor_subject environment_subject(asio::any_io_executor executor, examination& out);

/// One area each. Errors: what ends the area early; what was found until then stays.
task<void> examine_server(std::shared_ptr<const doctor_subject> s, examination& out);
task<void> examine_database(std::shared_ptr<const doctor_subject> s, examination& out);
task<void> examine_broker(std::shared_ptr<const doctor_subject> s, examination& out);
task<void> examine_cluster(std::shared_ptr<const doctor_subject> s, examination& out);
task<void> examine_vclusters(std::shared_ptr<const doctor_subject> s, examination& out);
task<void> examine_fleet(std::shared_ptr<const doctor_subject> s, examination& out);
task<void> examine_addresses(std::shared_ptr<const doctor_subject> s, examination& out);
void examine_secrets(const doctor_subject& s, examination& out);
void examine_machine(const doctor_subject& s, examination& out);

/// "message (detail)", for operators.
std::string words_of(const error& e);
/// A finding about the difference between a clock of theirs, read in between two of ours, and ours.
void judge_clock(examination& out, const std::string& area, double their_seconds, double before, double after);
double now_seconds();
/// A finding about the end of a certificate.
void judge_certificate(examination& out, const std::string& area, const std::string& check, const std::string& pem,
                       const std::string& remedy);

}  // namespace kubeopera::inline v1::app
