// What the API's requests and replies look like. Described once: codec, OpenAPI and field errors come from here.
#pragma once

#include <kubeopera/json/codec.hpp>
#include <kubeopera/kube/object.hpp>
#include <kubeopera/manifest/app_spec.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::api {

std::string check_dns_label(std::string_view text);

// ---- CloudSpaces and vClusters --------------------------------------------------------------------------------------

struct quota_model {
  std::string cpu = "4";
  std::string memory = "8Gi";
  int pods = 50;
  static void rules(json::rule_set& r) {
    r.type_doc("What all apps of a vCluster may use together.");
    r("cpu").doc("Kubernetes quantity").length(1, 32);
    r("memory").doc("Kubernetes quantity").length(1, 32);
    r("pods").range(1, 1000);
  }
};
KUBEOPERA_DESCRIBE(quota_model, (cpu, memory, pods))

struct create_cloudspace_request {
  std::string name;
  std::string display_name;
  quota_model quota;
  static void rules(json::rule_set& r) {
    r("name")
        .required()
        .length(1, 40)
        .check(check_dns_label)
        .doc("DNS label; part of the default addresses of its apps.")
        .example("shop");
    r("display_name").length(0, 120);
    r("quota").doc("Quota of the first vCluster.");
  }
};
KUBEOPERA_DESCRIBE(create_cloudspace_request, (name, display_name, quota))

struct cloudspace_view {
  std::string id, name, display_name, default_vcluster;
  int vclusters = 0, apps = 0;
  std::string phase;
  std::string created_at, updated_at;
  static void rules(json::rule_set& r) {
    r("default_vcluster").doc("The tenant_cr_name that apps go to when they name none.");
    r("phase").doc("provisioning, ready or deleting");
  }
};
KUBEOPERA_DESCRIBE(cloudspace_view, (id, name, display_name, default_vcluster, vclusters, apps, phase, created_at, updated_at))

struct create_vcluster_request {
  std::string name;
  quota_model quota;
  static void rules(json::rule_set& r) {
    r("name").required().length(1, 40).check(check_dns_label).doc("Name within the CloudSpace.");
  }
};
KUBEOPERA_DESCRIBE(create_vcluster_request, (name, quota))

struct vcluster_view {
  std::string name, tenant_cr_name;
  bool is_default = false;
  quota_model quota;
  std::string phase, message, created_at;
  static void rules(json::rule_set& r) {
    r("tenant_cr_name").doc("The KubeOperaTenant on the host cluster; what apps refer to.");
    r("phase").doc("provisioning, ready, failed or deleting");
  }
};
KUBEOPERA_DESCRIBE(vcluster_view, (name, tenant_cr_name, is_default, quota, phase, message, created_at))

// ---- apps -----------------------------------------------------------------------------------------------------------

struct create_app_request : manifest::app_spec {
  std::string cloudspace_id;
  std::optional<std::string> tenant_cr_name;
  static void rules(json::rule_set& r) {
    manifest::app_spec::rules(r);
    r("cloudspace_id").required().doc("The CloudSpace the app belongs to.");
    r("tenant_cr_name").doc("The vCluster to deploy into; the CloudSpace's default where absent.");
  }
};
KUBEOPERA_DESCRIBE_DERIVED(create_app_request, (manifest::app_spec), (cloudspace_id, tenant_cr_name))

struct condition_view {
  std::string type, status, reason, message, since;
};
KUBEOPERA_DESCRIBE(condition_view, (type, status, reason, message, since))

struct app_status_view {
  std::string phase;
  std::int64_t observed_revision = 0;
  std::optional<std::string> commit;
  int ready_replicas = 0, desired_replicas = 0;
  std::vector<condition_view> conditions;
  std::optional<std::string> message;
  static void rules(json::rule_set& r) {
    r("phase").doc("pending, deploying, running, stopped, paused, degraded, failed, deleting or unknown");
    r("observed_revision").doc("The newest revision that the app-controller has delivered.");
    r("message").doc("Why live data is missing, where it is.");
  }
};
KUBEOPERA_DESCRIBE(app_status_view, (phase, observed_revision, commit, ready_replicas, desired_replicas, conditions, message))

/// One line of a list: what the database knows.
struct app_summary {
  std::string id, name, cloudspace_id, tenant_cr_name, image, host, url, state;
  std::int64_t revision = 0;
  std::string created_at, updated_at;
  static void rules(json::rule_set& r) { r("state").doc("active, stopped, paused or deleting: what is asked for"); }
};
KUBEOPERA_DESCRIBE(app_summary,
                   (id, name, cloudspace_id, tenant_cr_name, image, host, url, state, revision, created_at, updated_at))

struct app_view {
  std::string id, name, cloudspace_id, tenant_cr_name, image, host, url, state;
  std::int64_t revision = 0;
  std::string created_at, updated_at, updated_by;
  manifest::app_spec config;
  std::optional<app_status_view> status;
};
KUBEOPERA_DESCRIBE(app_view, (id, name, cloudspace_id, tenant_cr_name, image, host, url, state, revision, created_at, updated_at,
                              updated_by, config, status))

struct domain_request {
  std::optional<std::string> domain;
  std::optional<bool> tls;
  static void rules(json::rule_set& r) {
    r("domain").doc("The new domain; null goes back to the default address.").length(1, 253);
    r("tls").doc("Whether the address is served over HTTPS.");
  }
};
KUBEOPERA_DESCRIBE(domain_request, (domain, tls))

struct env_vars {
  std::vector<manifest::env_var> env;
  static void rules(json::rule_set& r) { r("env").required().items(500); }
};
KUBEOPERA_DESCRIBE(env_vars, (env))

struct app_query {
  std::optional<std::string> cloudspace_id, tenant_cr_name, name, cursor;
  int limit = 50;
  static void rules(json::rule_set& r) {
    r("limit").range(1, 500).doc("Items a page.");
    r("cursor").doc("next_cursor of the page before.");
    r("name").doc("Only apps whose name contains this.").length(1, 63);
  }
};
KUBEOPERA_DESCRIBE(app_query, (cloudspace_id, tenant_cr_name, name, limit, cursor))

struct page_query {
  std::optional<std::string> cursor;
  int limit = 50;
  static void rules(json::rule_set& r) {
    r("limit").range(1, 500).doc("Items a page.");
    r("cursor").doc("next_cursor of the page before.");
  }
};
KUBEOPERA_DESCRIBE(page_query, (limit, cursor))

// ---- live data ------------------------------------------------------------------------------------------------------

struct stage_view {
  std::string name, state;
  std::optional<std::string> since, deadline, cause, message, hint;
  static void rules(json::rule_set& r) {
    r("name").doc("gitops, workload or reachability");
    r("state").doc("pending, running, succeeded, failed or skipped");
    r("cause").doc("One word for what stands in the way, e.g. ImagePullBackOff.");
    r("hint").doc("What to do about it.");
  }
};
KUBEOPERA_DESCRIBE(stage_view, (name, state, since, deadline, cause, message, hint))

struct deploy_status_view {
  std::string app_id, phase, address;
  std::int64_t revision = 0;
  std::optional<std::string> commit, live_url;
  std::vector<stage_view> stages;
  int ready_replicas = 0, desired_replicas = 0;
  std::string checked_at;
  static void rules(json::rule_set& r) {
    r("phase").doc("pending, deploying, live, stopped, paused, failed or deleting");
    r("live_url").doc("Only present once the app answers.");
  }
};
KUBEOPERA_DESCRIBE(deploy_status_view,
                   (app_id, phase, address, revision, commit, live_url, stages, ready_replicas, desired_replicas, checked_at))

struct watch_query {
  bool watch = false;
  static void rules(json::rule_set& r) { r("watch").doc("Stream changes as Server-Sent Events."); }
};
KUBEOPERA_DESCRIBE(watch_query, (watch))

struct container_view {
  std::string name, image, state;
  bool ready = false;
  int restarts = 0;
  std::optional<std::string> reason, message;
  std::optional<int> exit_code;
};
KUBEOPERA_DESCRIBE(container_view, (name, image, state, ready, restarts, reason, message, exit_code))

struct pod_view {
  std::string name, phase;
  bool ready = false;
  int restarts = 0;
  std::optional<std::string> cause, message, node, ip;
  std::string created_at;
  bool current = false;
  std::vector<container_view> containers;
  static void rules(json::rule_set& r) { r("current").doc("Whether the pod belongs to the newest template."); }
};
KUBEOPERA_DESCRIBE(pod_view, (name, phase, ready, restarts, cause, message, node, ip, created_at, current, containers))

struct event_view {
  std::string type, reason, message, object, first_seen, last_seen;
  int count = 1;
};
KUBEOPERA_DESCRIBE(event_view, (type, reason, message, object, first_seen, last_seen, count))

struct log_query {
  std::optional<std::string> pod, container;
  bool follow = false, previous = false, timestamps = false;
  std::optional<int> tail, since_seconds;
  static void rules(json::rule_set& r) {
    r("pod").doc("One pod; all pods of the app, each line with its pod's name, where absent.").length(1, 253);
    r("container").length(1, 63).check(check_dns_label);
    r("tail").range(0, 100000).doc("Lines from the end.");
    r("since_seconds").range(1, 31536000);
  }
};
KUBEOPERA_DESCRIBE(log_query, (pod, container, follow, previous, timestamps, tail, since_seconds))

}  // namespace kubeopera::inline v1::api
