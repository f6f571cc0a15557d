// The rules of each field. What must hold between fields is in validate.cpp.
#include "src/manifest/grammar.hpp"

#include <kubeopera/manifest/app_spec.hpp>

namespace kubeopera::inline v1::manifest {
namespace {
constexpr std::size_t max_text = 32 * 1024;
}  // namespace

void secret_key_ref::rules(json::rule_set& r) {
  r.type_doc("One key of a Secret in the app's namespace");
  r("name").required().length(1, 253).check(grammar::dns_subdomain).doc("Name of the Secret").example("shop-database");
  r("key").required().length(1, 253).check(grammar::secret_key).doc("Key in the Secret").example("password");
}

void env_var::rules(json::rule_set& r) {
  r.type_doc("An environment variable: exactly one of value, secret_ref and secret");
  r("name").required().length(1, 128).check(grammar::env_name).doc("Name of the variable").example("LOG_LEVEL");
  r("value").length(0, max_text).check(grammar::no_nul).doc("Plain value, kept in Git");
  r("secret_ref").doc("Value from a Secret that exists");
  r("secret")
      .length(1, max_text)
      .check(grammar::no_nul)
      .write_only()
      .doc("Value to be kept in a Secret of the vCluster, never in Git and never given back");
}

void git_source::rules(json::rule_set& r) {
  r.type_doc("Where the image is built from");
  r("repository")
      .required()
      .length(1, 2048)
      .check(grammar::repository)
      .doc("https URL of the Git repository")
      .example("https://github.com/acme/shop");
  r("revision").length(1, 255).check(grammar::git_revision).doc("Branch, tag or commit");
  r("dockerfile").length(1, 1024).check(grammar::relative_path).doc("Path of the Dockerfile in the repository");
  r("context").length(1, 1024).check(grammar::relative_path).doc("Directory that is the build context");
}

void resource_amounts::rules(json::rule_set& r) {
  r("cpu").length(1, 40).check(grammar::quantity).doc("Cores, as a Kubernetes quantity").example("250m");
  r("memory").length(1, 40).check(grammar::quantity).doc("Bytes, as a Kubernetes quantity").example("256Mi");
}

void resource_settings::rules(json::rule_set& r) {
  r.type_doc("CPU and memory of one replica");
  r("requests").doc("What a replica is sure to get");
  r("limits").doc("What a replica may use at most");
}

void autoscaling_settings::rules(json::rule_set& r) {
  r.type_doc("Replicas that follow the CPU load");
  r("min_replicas").range(1, 200).doc("Replicas at rest");
  r("max_replicas").required().range(1, 200).doc("Replicas at most");
  r("cpu_percent").range(1, 500).doc("Aimed-at CPU use in percent of the request");
}

void http_check::rules(json::rule_set& r) {
  r.type_doc("Healthy when a GET answers 200 to 399");
  r("path").length(1, 1024).check(grammar::url_path).doc("Path to ask for").example("/healthz");
  r("port").range(1, 65535).doc("Port; the app's own where left out");
}

void tcp_check::rules(json::rule_set& r) {
  r.type_doc("Healthy when the port takes a connection");
  r("port").range(1, 65535).doc("Port; the app's own where left out");
}

void exec_check::rules(json::rule_set& r) {
  r.type_doc("Healthy when a command in the container exits with 0");
  r("command").required().items(64).doc("Program and arguments; no shell");
}

void health_check::rules(json::rule_set& r) {
  r.type_doc("One check: exactly one of http, tcp and exec");
  r("initial_delay_seconds").range(0, 3600).doc("Wait before the first check");
  r("period_seconds").range(1, 3600).doc("Time between checks");
  r("timeout_seconds").range(1, 300).doc("Time for an answer");
  r("failure_threshold").range(1, 1000).doc("Failures in a row that count");
  r("success_threshold").range(1, 100).doc("Successes in a row that count; 1 for liveness and startup");
}

void health_checks::rules(json::rule_set& r) {
  r.type_doc("Health checks; a missing readiness check becomes a TCP check of the app's port");
  r("readiness").doc("Whether a replica gets requests");
  r("liveness").doc("Whether a replica is restarted");
  r("startup").doc("Holds the other two back until it succeeds");
}

void extra_port::rules(json::rule_set& r) {
  r.type_doc("A port beside the main one, reachable inside the vCluster");
  r("name").required().length(1, 15).check(grammar::port_name).doc("Name of the port").example("metrics");
  r("port").required().range(1, 65535).doc("Port number");
  r("protocol").doc("TCP or UDP");
}

void deployment_strategy::rules(json::rule_set& r) {
  r.type_doc("How a new version replaces the old one");
  r("type").doc("rolling: replica by replica");
  r("max_surge")
      .length(1, 4)
      .check(grammar::count_or_percent)
      .doc("Replicas more than wanted while rolling; a count or a percentage");
  r("max_unavailable")
      .length(1, 4)
      .check(grammar::count_or_percent)
      .doc("Replicas fewer than wanted while rolling; a count or a percentage");
}

void security_settings::rules(json::rule_set& r) {
  r.type_doc("What the image needs beyond the Pod Security level restricted");
  r("run_as_non_root").doc("false for images that must start as root; the namespace then has the level baseline");
  r("run_as_user")
      .range(0, 2147483647)
      .doc(
          "User and group id of the process; 10001 where left out and run_as_non_root is true. Set the image's own numeric id "
          "where its files need it");
  r("read_only_root_filesystem").doc("false for images that write anywhere");
  r("writable_paths").items(16).doc("Directories that the image writes to; each becomes an empty directory. /tmp is always one");
}

void app_spec::rules(json::rule_set& r) {
  r.type_doc("Everything about an app");
  r("name")
      .required()
      .length(1, 53)
      .check(grammar::app_name)
      .pattern("^[a-z]([-a-z0-9]*[a-z0-9])?$")
      .doc("Name of the app; also of its namespace")
      .example("shop");
  r("image")
      .length(0, 512)
      .check(grammar::image_or_empty)
      .doc("Container image; left out when source is given")
      .example("ghcr.io/acme/shop:1.4.2");
  r("source").doc("Git repository to build the image from");
  r("port").required().range(1, 65535).doc("Port that the container listens on").example(8080);
  r("ports").items(16).doc("More ports").list_map("name");
  r("replicas").range(0, 200).doc("Replicas, where autoscaling is off");
  r("autoscaling").doc("Replicas that follow the load");
  r("command").items(64).doc("Replaces the image's entry point");
  r("args").items(256).doc("Replaces the image's arguments");
  r("env").items(200).doc("Environment variables").list_map("name");
  r("resources").doc("CPU and memory of one replica");
  r("health").doc("Health checks");
  r("domain")
      .length(1, 253)
      .check(grammar::host_name)
      .doc("Custom domain; the platform's own address where left out")
      .example("shop.example.com");
  r("tls").doc("HTTPS with a certificate");
  r("registry_credentials")
      .length(1, 253)
      .check(grammar::dns_subdomain)
      .doc("Name of the Secret with credentials of a private registry");
  r("strategy").doc("How a new version replaces the old one");
  r("security").doc("What the image needs beyond the strictest settings");
  r("termination_grace_seconds").range(0, 3600).doc("Time to shut down before the container is killed");
  r("labels").items(32).doc("Labels for people");
  r("stopped").doc("No replicas run; their number is remembered");
  r("paused").doc("Changes are recorded but not rolled out");
  r("restarted_at")
      .length(20, 30)
      .check(grammar::rfc3339)
      .doc("A new time restarts the replicas")
      .example("2026-01-31T12:00:00Z");
}

std::string env_secret_name(const app_spec& spec) { return spec.name + "-env"; }

std::map<std::string, std::string> extract_secrets(app_spec& spec) {
  std::map<std::string, std::string> values;
  for (auto& e : spec.env) {
    if (!e.secret) continue;
    values[e.name] = std::move(*e.secret);
    e.secret.reset();
    secret_key_ref ref;
    ref.name = env_secret_name(spec);
    ref.key = e.name;
    e.secret_ref = std::move(ref);
  }
  return values;
}

}  // namespace kubeopera::inline v1::manifest
