// Rules of the custom resources, which become the descriptions and limits of the CRDs.
#include "src/manifest/grammar.hpp"

#include <kubeopera/manifest/resources.hpp>

namespace kubeopera::inline v1::manifest {

void resource_condition::rules(json::rule_set& r) {
  r.type_doc("One aspect of the resource's state");
  r("type").required().length(1, 316).doc("Which aspect");
  r("status").required().one_of({"True", "False", "Unknown"});
  r("reason").required().length(1, 1024).doc("One CamelCase word");
  r("message").length(0, 32768).doc("A sentence for people");
  r("lastTransitionTime").required().doc("When status last changed");
  r("observedGeneration").range(0, INT64_MAX).doc("Generation that this speaks of");
}

void app_resource_spec::rules(json::rule_set& r) {
  r.type_doc("Desired state of an app, as the API recorded it");
  r("app_id").required().length(1, 63).doc("Id of the app");
  r("tenant_id").required().length(1, 63).doc("Id of the tenant that owns it");
  r("cloudspace").length(0, 63).doc("Slug of the CloudSpace");
  r("tenant_ref")
      .required()
      .length(1, 63)
      .check(grammar::dns_label)
      .doc("Name of the KubeOperaTenant whose vCluster runs the app");
  r("revision").required().range(1, INT64_MAX).doc("Revision of the app, counted from 1");
  r("host").required().length(1, 253).check(grammar::host_name).doc("Address of the app, decided by the API");
  r("actor").length(0, 253).doc("Who made this revision");
  r("request_id").length(0, 128).doc("Request that made this revision");
  r("app").required().doc("What the user says about the app");
}

void app_resource_status::rules(json::rule_set& r) {
  r.type_doc("Observed state of an app");
  r("observedGeneration").doc("Generation that was last acted on");
  r("conditions").doc("Ready, Reconciling, Stalled and one for each step").items(32).list_map("type");
  r("phase").doc("One word for people");
  r("commit").doc("Commit of the fleet repository that holds the manifests");
  r("revision").doc("Revision that the commit renders");
  r("template_hash").doc("Hash of the pod template of that revision");
  r("template_revision").doc("Revision that brought that pod template");
  r("content_hash").doc("Hash of the manifests of that revision");
  r("address").doc("Where the app answers");
  r("vcluster").doc("vCluster that runs the app");
}

void tenant_quota::rules(json::rule_set& r) {
  r.type_doc("Room of the vCluster on the host");
  r("cpu").length(1, 40).check(grammar::quantity).doc("Cores in all").example("8");
  r("memory").length(1, 40).check(grammar::quantity).doc("Bytes in all").example("16Gi");
  r("pods").range(1, 10000).doc("Pods at most");
}

void tenant_resource_spec::rules(json::rule_set& r) {
  r.type_doc("One vCluster of a CloudSpace");
  r("tenant_id").required().length(1, 63).doc("Id of the tenant that owns it");
  r("cloudspace").required().length(1, 63).doc("Slug of the CloudSpace");
  r("display_name").length(0, 253).doc("Name for people");
  r("quota").doc("Room on the host");
  r("kubernetes_version")
      .length(1, 40)
      .doc("Version of the vCluster's API server; the platform's default where left out")
      .example("1.36");
}

void tenant_resource_status::rules(json::rule_set& r) {
  r.type_doc("Observed state of a vCluster");
  r("observedGeneration").doc("Generation that was last acted on");
  r("conditions").doc("Ready, Reconciling, Stalled and one for each step").items(32).list_map("type");
  r("phase").doc("One word for people");
  r("host_namespace").doc("Namespace of the host cluster in which it runs");
  r("kubeconfig_secret").doc("Secret with its kubeconfig, in host_namespace");
}

}  // namespace kubeopera::inline v1::manifest
