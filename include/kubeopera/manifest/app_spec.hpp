// Everything a user says about an app: the body of the REST API and spec.app of a KubeOperaApp, described once.
// Not here: what the platform decides (host, namespace, revision); see render.hpp.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/json/codec.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::manifest {

/// One key of a Secret in the app's namespace.
struct secret_key_ref {
  std::string name, key;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(secret_key_ref, (name, key))

/// An environment variable: exactly one of value, secret_ref and secret.
struct env_var {
  std::string name;
  std::optional<std::string> value;
  std::optional<secret_key_ref> secret_ref;
  std::optional<std::string> secret;  ///< accepted, never written: extract_secrets() moves it into a Secret
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(env_var, (name, value, secret_ref, secret))

/// Where the image is built from. Until the first build the app has no image.
struct git_source {
  std::string repository;  ///< https URL without credentials
  std::string revision = "main";
  std::string dockerfile = "Dockerfile";
  std::string context = ".";
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(git_source, (repository, revision, dockerfile, context))

/// Kubernetes quantities; what is left out gets the platform's default.
struct resource_amounts {
  std::optional<std::string> cpu, memory;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(resource_amounts, (cpu, memory))

struct resource_settings {
  resource_amounts requests, limits;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(resource_settings, (requests, limits))

struct autoscaling_settings {
  int min_replicas = 1;
  int max_replicas = 1;
  int cpu_percent = 80;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(autoscaling_settings, (min_replicas, max_replicas, cpu_percent))

struct http_check {
  std::string path = "/";
  std::optional<int> port;  ///< the app's port where left out
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(http_check, (path, port))

struct tcp_check {
  std::optional<int> port;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(tcp_check, (port))

struct exec_check {
  std::vector<std::string> command;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(exec_check, (command))

/// Exactly one of http, tcp and exec.
struct health_check {
  std::optional<http_check> http;
  std::optional<tcp_check> tcp;
  std::optional<exec_check> exec;
  int initial_delay_seconds = 0;
  int period_seconds = 10;
  int timeout_seconds = 2;
  int failure_threshold = 3;
  int success_threshold = 1;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(health_check, (http, tcp, exec, initial_delay_seconds, period_seconds, timeout_seconds, failure_threshold,
                                  success_threshold))

/// A missing readiness check becomes a TCP check of the app's port; liveness and startup are checked only when asked for.
struct health_checks {
  std::optional<health_check> readiness, liveness, startup;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(health_checks, (readiness, liveness, startup))

enum class port_protocol { TCP, UDP };
KUBEOPERA_DESCRIBE_ENUM(port_protocol, TCP, UDP)

/// A port beside the main one; the Service carries it, the address does not.
struct extra_port {
  std::string name;
  int port = 0;
  port_protocol protocol = port_protocol::TCP;
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(extra_port, (name, port, protocol))

enum class strategy_type { rolling };
KUBEOPERA_DESCRIBE_ENUM(strategy_type, rolling)

struct deployment_strategy {
  strategy_type type = strategy_type::rolling;
  std::string max_surge = "25%";  ///< a count or a percentage
  std::string max_unavailable = "0";
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(deployment_strategy, (type, max_surge, max_unavailable))

/// What the image needs beyond the Pod Security level "restricted"; each step down is the user's own choice.
struct security_settings {
  bool run_as_non_root = true;              ///< false: level "baseline", with the capabilities that root images use
  std::optional<std::int64_t> run_as_user;  ///< user and group; 10001 for non-root apps that say nothing
  bool read_only_root_filesystem = true;
  std::vector<std::string> writable_paths;  ///< each an emptyDir; /tmp is always one
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(security_settings, (run_as_non_root, run_as_user, read_only_root_filesystem, writable_paths))

/// One app. Member names are the JSON names.
struct app_spec {
  std::string name;   ///< DNS label; also the namespace
  std::string image;  ///< empty only while source has not been built yet
  std::optional<git_source> source;
  int port = 0;
  std::vector<extra_port> ports;
  int replicas = 1;
  std::optional<autoscaling_settings> autoscaling;  ///< where set, replicas is not used
  std::vector<std::string> command, args;
  std::vector<env_var> env;
  resource_settings resources;
  health_checks health;
  std::optional<std::string> domain;  ///< custom domain; the platform's own host where left out
  bool tls = true;
  std::optional<std::string> registry_credentials;  ///< name of an image pull Secret
  deployment_strategy strategy;
  security_settings security;
  int termination_grace_seconds = 30;
  std::map<std::string, std::string> labels;  ///< for people; never the platform's own keys
  bool stopped = false;                       ///< no pods; replicas is remembered
  bool paused = false;                        ///< the Deployment does not roll out changes
  std::optional<std::string> restarted_at;    ///< RFC 3339; a new value restarts the pods
  static void rules(json::rule_set& r);
};
KUBEOPERA_DESCRIBE(app_spec,
                   (name, image, source, port, ports, replicas, autoscaling, command, args, env, resources, health, domain, tls,
                    registry_credentials, strategy, security, termination_grace_seconds, labels, stopped, paused, restarted_at))

/// Everything that is wrong with a spec: each field's own rule, and what must hold between fields (limits not under requests,
/// unique names, exactly one kind of check ...). Pointers are relative to the spec. Empty when it is fine. Pure.
std::vector<violation> validate(const app_spec& spec);

/// Decodes and validates in one pass, so that wrong types and wrong values are reported together.
/// Errors: invalid_argument (InvalidBody) with every violation. Pure.
result<app_spec> read_app_spec(const json::value& v);

/// The Secret that holds what users marked secret: "<app>-env".
std::string env_secret_name(const app_spec& spec);
/// Moves every env_var::secret out: the variable becomes a reference to env_secret_name() with its own name as the key.
/// @return the values by key, to be written to that Secret in the vCluster and nowhere else
std::map<std::string, std::string> extract_secrets(app_spec& spec);

}  // namespace kubeopera::inline v1::manifest
