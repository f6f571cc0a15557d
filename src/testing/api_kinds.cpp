// The table of built-in kinds. A line: plural singular Kind scope short-names categories verbs flags [subresources...]; "-" is
// none. Verbs: * all, n all but deletecollection, or letters c(reate) g(et) l(ist). Flags: g generation, r DELETE returns the
// object.
#include "src/testing/api_kinds.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace kubeopera::inline v1::testing::api {
namespace {

constexpr std::string_view table = R"(= v1
bindings binding Binding N - - c -
componentstatuses componentstatus ComponentStatus C cs - gl -
configmaps configmap ConfigMap N cm - * -
endpoints endpoints Endpoints N ep - * -
events event Event N ev - * -
limitranges limitrange LimitRange N limits - * -
namespaces namespace Namespace C ns - n - finalize:Namespace:u status
nodes node Node C no - * - proxy:NodeProxyOptions:p status
persistentvolumeclaims persistentvolumeclaim PersistentVolumeClaim N pvc - * r status
persistentvolumes persistentvolume PersistentVolume C pv - * r status
pods pod Pod N po all * gr attach:PodAttachOptions:x binding:Binding:c ephemeralcontainers:Pod:s eviction:policy/v1/Eviction:c exec:PodExecOptions:x log:Pod:g portforward:PodPortForwardOptions:x proxy:PodProxyOptions:p resize:Pod:s status
podtemplates podtemplate PodTemplate N - - * r
replicationcontrollers replicationcontroller ReplicationController N rc all * g scale status
resourcequotas resourcequota ResourceQuota N quota - * r status
secrets secret Secret N - - * -
serviceaccounts serviceaccount ServiceAccount N sa - * r token:authentication.k8s.io/v1/TokenRequest:c
services service Service N svc all * r proxy:ServiceProxyOptions:p status
= apiregistration.k8s.io/v1
apiservices apiservice APIService C - api-extensions * -
= apps/v1
controllerrevisions controllerrevision ControllerRevision N - - * -
daemonsets daemonset DaemonSet N ds all * g status
deployments deployment Deployment N deploy all * g scale status
replicasets replicaset ReplicaSet N rs all * g scale status
statefulsets statefulset StatefulSet N sts all * g scale status
= events.k8s.io/v1
= authentication.k8s.io/v1
selfsubjectreviews selfsubjectreview SelfSubjectReview C - - c -
tokenreviews tokenreview TokenReview C - - c -
= authorization.k8s.io/v1
selfsubjectaccessreviews selfsubjectaccessreview SelfSubjectAccessReview C - - c -
= autoscaling/v2
horizontalpodautoscalers horizontalpodautoscaler HorizontalPodAutoscaler N hpa all * - status
= autoscaling/v1
= batch/v1
cronjobs cronjob CronJob N cj all * g status
jobs job Job N - all * g status
= certificates.k8s.io/v1
certificatesigningrequests certificatesigningrequest CertificateSigningRequest C csr - * -
= networking.k8s.io/v1
ingressclasses ingressclass IngressClass C - - * g
ingresses ingress Ingress N ing - * g status
networkpolicies networkpolicy NetworkPolicy N netpol - * g
= policy/v1
poddisruptionbudgets poddisruptionbudget PodDisruptionBudget N pdb - * g status
= rbac.authorization.k8s.io/v1
clusterrolebindings clusterrolebinding ClusterRoleBinding C - - * -
clusterroles clusterrole ClusterRole C - - * -
rolebindings rolebinding RoleBinding N - - * -
roles role Role N - - * -
= storage.k8s.io/v1
storageclasses storageclass StorageClass C sc - * -
= admissionregistration.k8s.io/v1
mutatingwebhookconfigurations mutatingwebhookconfiguration MutatingWebhookConfiguration C - api-extensions * g
validatingwebhookconfigurations validatingwebhookconfiguration ValidatingWebhookConfiguration C - api-extensions * g
= apiextensions.k8s.io/v1
customresourcedefinitions customresourcedefinition CustomResourceDefinition C crd,crds api-extensions * g status
= scheduling.k8s.io/v1
priorityclasses priorityclass PriorityClass C pc - * g
= coordination.k8s.io/v1
leases lease Lease N - - * -
= node.k8s.io/v1
= discovery.k8s.io/v1
endpointslices endpointslice EndpointSlice N - - * g
= resource.k8s.io/v1
= flowcontrol.apiserver.k8s.io/v1
)";

struct labels_of {
  const char* plural;
  std::vector<std::string> labels;
};
const std::vector<labels_of>& field_label_table() {
  static const std::vector<labels_of> all = {
      {"pods",
       {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName"}},
      {"events",
       {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent",
        "source.component", "type"}},
      {"secrets", {"type"}},
      {"namespaces", {"status.phase"}},
      {"nodes", {"spec.unschedulable"}},
      {"services", {"spec.clusterIP", "spec.type"}},
      {"replicasets", {"status.replicas"}},
      {"replicationcontrollers", {"status.replicas"}},
      {"jobs", {"status.successful"}},
  };
  return all;
}

std::vector<std::string> comma_list(const std::string& text) {
  std::vector<std::string> out;
  if (text == "-") return out;
  std::stringstream in(text);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

std::vector<std::string> verb_list(const std::string& code) {
  if (code == "*") return {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
  if (code == "n") return {"create", "delete", "get", "list", "patch", "update", "watch"};
  if (code == "s") return {"get", "patch", "update"};
  if (code == "p") return {"create", "delete", "get", "patch", "update"};
  if (code == "x") return {"create", "get"};
  std::vector<std::string> out;
  for (char c : code) {
    if (c == 'c') out.emplace_back("create");
    if (c == 'g') out.emplace_back("get");
    if (c == 'l') out.emplace_back("list");
    if (c == 'u') out.emplace_back("update");
  }
  return out;
}

// status | scale | name:Kind:verbs | name:group/version/Kind:verbs
subresource_info read_subresource(const std::string& text, const std::string& own_kind) {
  subresource_info s;
  if (text == "status") return {"status", "", "", own_kind, verb_list("s")};
  if (text == "scale") return {"scale", "autoscaling", "v1", "Scale", verb_list("s")};
  auto a = text.find(':'), b = text.rfind(':');
  s.name = text.substr(0, a);
  s.kind = text.substr(a + 1, b - a - 1);
  s.verbs = verb_list(text.substr(b + 1));
  if (auto slash = s.kind.find('/'); slash != std::string::npos) {
    auto second = s.kind.find('/', slash + 1);
    s.group = s.kind.substr(0, slash);
    s.version = s.kind.substr(slash + 1, second - slash - 1);
    s.kind = s.kind.substr(second + 1);
  }
  return s;
}

kind_ptr read_kind(const std::string& line, const std::string& group, const std::string& version) {
  auto k = std::make_shared<kind_info>();
  std::stringstream in(line);
  std::string scope, shorts, categories, verbs, flags;
  in >> k->plural >> k->singular >> k->kind >> scope >> shorts >> categories >> verbs >> flags;
  k->group = group;
  k->version = version;
  k->list_kind = k->kind + "List";
  k->namespaced = scope == "N";
  k->short_names = comma_list(shorts);
  k->categories = comma_list(categories);
  k->verbs = verb_list(verbs);
  k->generation = flags.find('g') != std::string::npos;
  k->returns_deleted = flags.find('r') != std::string::npos;
  for (std::string word; in >> word;) k->subresources.push_back(read_subresource(word, k->kind));
  k->t = builtin_types().find(k->kind);
  for (const auto& row : field_label_table()) {
    if (row.plural == k->plural) k->field_labels = row.labels;
  }
  return k;
}

kind_table read_table() {
  kind_table out;
  std::stringstream in{std::string(table)};
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("= ", 0) == 0) {
      std::string gv = line.substr(2);
      auto slash = gv.find('/');
      std::string group = slash == std::string::npos ? "" : gv.substr(0, slash);
      if (out.groups.empty() || out.groups.back().name != group) out.groups.push_back({group, {}});
      out.groups.back().versions.push_back({slash == std::string::npos ? gv : gv.substr(slash + 1), {}});
      continue;
    }
    auto& g = out.groups.back();
    g.versions.back().kinds.push_back(read_kind(line, g.name, g.versions.back().version));
  }
  return out;
}

}  // namespace

bool kind_info::has_verb(std::string_view verb) const noexcept {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

const subresource_info* kind_info::subresource(std::string_view name) const noexcept {
  for (const auto& s : subresources) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

std::string kind_info::head() const {
  return custom ? "{\"apiVersion\":\"" + api_version() + "\",\"kind\":\"" + kind + "\","
                : "{\"kind\":\"" + kind + "\",\"apiVersion\":\"" + api_version() + "\",";
}

kind_ptr kind_table::find(std::string_view group, std::string_view version, std::string_view plural) const {
  for (const auto& g : groups) {
    if (g.name != group) continue;
    for (const auto& v : g.versions) {
      if (v.version != version) continue;
      for (const auto& k : v.kinds) {
        if (k->plural == plural) return k;
      }
    }
  }
  return nullptr;
}

bool kind_table::serves(std::string_view group, std::string_view version) const {
  for (const auto& g : groups) {
    if (g.name != group) continue;
    for (const auto& v : g.versions) {
      if (v.version == version) return true;
    }
  }
  return false;
}

void kind_table::replace_custom(const std::string& group, const std::string& plural, const std::vector<kind_ptr>& kinds) {
  for (auto& g : groups) {
    if (g.name != group) continue;
    for (auto& v : g.versions) std::erase_if(v.kinds, [&](const kind_ptr& k) { return k->custom && k->plural == plural; });
    std::erase_if(g.versions, [](const group_version& v) { return v.kinds.empty(); });
  }
  // Built-in groups keep their empty versions, so only custom groups may vanish.
  std::erase_if(groups, [&](const group_info& g) { return g.name == group && g.versions.empty(); });
  for (const auto& k : kinds) {
    auto g = std::find_if(groups.begin(), groups.end(), [&](const group_info& x) { return x.name == group; });
    if (g == groups.end()) g = groups.insert(groups.end(), group_info{group, {}});
    auto v =
        std::find_if(g->versions.begin(), g->versions.end(), [&](const group_version& x) { return x.version == k->version; });
    if (v == g->versions.end()) v = g->versions.insert(g->versions.end(), group_version{k->version, {}});
    auto at = std::lower_bound(v->kinds.begin(), v->kinds.end(), k,
                               [](const kind_ptr& a, const kind_ptr& b) { return a->plural < b->plural; });
    v->kinds.insert(at, k);
  }
}

const kind_table& builtin_kinds() {
  static const kind_table* all = new kind_table(read_table());
  return *all;
}

kind_ptr builtin_kind(std::string_view group, std::string_view plural) {
  for (const auto& g : builtin_kinds().groups) {
    if (g.name != group) continue;
    for (const auto& v : g.versions) {
      for (const auto& k : v.kinds) {
        if (k->plural == plural) return k;
      }
    }
  }
  throw std::logic_error("no built-in kind " + std::string(plural));
}

}  // namespace kubeopera::inline v1::testing::api
