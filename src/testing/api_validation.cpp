// Validation of objects: metadata for all kinds, and what manifests get wrong most for the built-in ones.
#include "src/testing/api_validation.hpp"

#include "src/testing/api_codec.hpp"
#include "src/testing/api_crd.hpp"
#include "src/testing/api_selector.hpp"
#include "src/testing/api_strategy.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/object.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {

namespace words {
const char* const subdomain =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const char* const label =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const char* const dns1035 =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
    "with an "
    "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const char* const label_value =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const char* const qualified_name =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. "
    "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const char* const immutable = "field is immutable";
}  // namespace words

bool qualified_part_ok(std::string_view s) noexcept {
  auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return !s.empty() && s.size() <= 63 && alnum(s.front()) && alnum(s.back()) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool qualified_name_ok(std::string_view s) noexcept {
  auto slash = s.find('/');
  if (slash == std::string_view::npos) return qualified_part_ok(s);
  return kube::is_dns_subdomain(s.substr(0, slash)) && qualified_part_ok(s.substr(slash + 1));
}

void check_labels(const json::object* labels, const std::string& path, problems& out) {
  if (!labels) return;
  for (const auto& kv : *labels) {
    if (!qualified_name_ok(kv.key())) out.push_back(invalid_value(path, go_quote(kv.key()), words::qualified_name));
    auto v = json::as_view(kv.value());
    if (!v.empty() && !qualified_part_ok(v)) out.push_back(invalid_value(path, go_quote(v), words::label_value));
  }
}

void check_name(const kind_info& kind, std::string_view name, const std::string& path, problems& out) {
  bool rbac = kind.group == "rbac.authorization.k8s.io";
  if (rbac) {
    if (name == "." || name == ".." || name.find_first_of("/%") != std::string_view::npos) {
      out.push_back(invalid_value(path, go_quote(name), "may not contain '/' or '%'"));
    }
    return;
  }
  bool label_only = kind.is("", "namespaces");
  if (kind.is("", "services")) {
    bool ok = kube::is_dns_label(name) && !(name[0] >= '0' && name[0] <= '9');
    if (!ok) out.push_back(invalid_value(path, go_quote(name), words::dns1035));
    return;
  }
  std::size_t limit = label_only ? 63 : 253;
  if (name.size() > limit) {
    out.push_back(invalid_value(path, go_quote(name), "must be no more than " + std::to_string(limit) + " characters"));
  } else if (label_only ? !kube::is_dns_label(name) : !kube::is_dns_subdomain(name)) {
    out.push_back(invalid_value(path, go_quote(name), label_only ? words::label : words::subdomain));
  }
}

namespace {

void check_meta(const kind_info& kind, const json::object& o, problems& out) {
  const auto* meta = json::get_object(o, {"metadata"});
  if (!meta) return;
  auto name = json::get_string(*meta, {"name"});
  if (name.empty()) {
    out.push_back(required_value("metadata.name", "name or generateName is required"));
  } else if (!kind.is("apiextensions.k8s.io", "customresourcedefinitions")) {
    check_name(kind, name, "metadata.name", out);
  }
  check_labels(json::get_object(*meta, {"labels"}), "metadata.labels", out);
  if (const auto* annotations = json::get_object(*meta, {"annotations"})) {
    std::size_t total = 0;
    for (const auto& kv : *annotations) {
      total += kv.key().size() + json::as_view(kv.value()).size();
      if (!qualified_name_ok(kv.key()))
        out.push_back(invalid_value("metadata.annotations", go_quote(kv.key()), words::qualified_name));
    }
    if (total > 256 * 1024) {
      out.push_back({"FieldValueTooLong", "metadata.annotations", "Too long: may not be more than 262144 bytes"});
    }
  }
  if (const auto* finalizers = json::get_array(*meta, {"finalizers"})) {
    for (const auto& f : *finalizers) {
      auto v = json::as_view(f);
      if (!qualified_name_ok(v)) out.push_back(invalid_value("metadata.finalizers", go_quote(v), words::qualified_name));
    }
  }
  if (const auto* owners = json::get_array(*meta, {"ownerReferences"})) {
    int controllers = 0;
    for (const auto& r : *owners) {
      const auto* x = r.if_object();
      if (!x) continue;
      for (const char* f : {"apiVersion", "kind", "name", "uid"}) {
        if (json::get_string(*x, {f}).empty()) {
          out.push_back(
              invalid_value("metadata.ownerReferences." + std::string(f), "\"\"", std::string(f) + " must not be empty"));
        }
      }
      if (json::get_bool(*x, {"controller"})) ++controllers;
    }
    if (controllers > 1) {
      out.push_back(invalid_value("metadata.ownerReferences", json::write(json::value(*owners)),
                                  "Only one reference can have Controller set to true"));
    }
  }
}

string_pairs label_pairs(const json::object* labels) {
  string_pairs out;
  if (labels) {
    for (const auto& kv : *labels) out.emplace_back(std::string(kv.key()), std::string(json::as_view(kv.value())));
  }
  std::sort(out.begin(), out.end());
  return out;
}

void check_count(const json::object& o, std::initializer_list<std::string_view> path, const std::string& shown, problems& out) {
  const auto* v = json::find(o, path);
  if (v && v->is_int64() && v->get_int64() < 0) {
    out.push_back(invalid_value(shown, json::write(*v), "must be greater than or equal to 0"));
  }
}

void check_workload(const kind_info& kind, const json::object& o, problems& out) {
  check_count(o, {"spec", "replicas"}, "spec.replicas", out);
  check_count(o, {"spec", "minReadySeconds"}, "spec.minReadySeconds", out);
  const auto* selector = json::get_object(o, {"spec", "selector"});
  const auto* labels = json::get_object(o, {"spec", "template", "metadata", "labels"});
  if (!selector) {
    out.push_back(required_value("spec.selector"));
  } else if (selector->empty()) {
    out.push_back(invalid_value("spec.selector", "{}", "empty selector is invalid for " + kind.singular));
  } else if (!label_selector::from_object(selector).matches(label_pairs(labels))) {
    out.push_back(invalid_value("spec.template.metadata.labels", labels ? json::write(*labels) : "null",
                                "`selector` does not match template `labels`"));
  }
  check_labels(labels, "spec.template.metadata.labels", out);
  if (const auto* spec = json::get_object(o, {"spec", "template", "spec"})) {
    validate_pod_spec(*spec, "spec.template.spec", out);
    auto policy = json::get_string(*spec, {"restartPolicy"});
    if (policy != "Always") out.push_back(unsupported_value("spec.template.spec.restartPolicy", go_quote(policy), {"Always"}));
  }
}

void check_job(const json::object& o, const std::string& path, problems& out) {
  const auto* spec = json::get_object(o, {"template", "spec"});
  if (!spec) return;
  for (const char* f : {"parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"}) {
    check_count(o, {f}, path + "." + f, out);
  }
  validate_pod_spec(*spec, path + ".template.spec", out);
  auto policy = json::get_string(*spec, {"restartPolicy"});
  if (policy == "Always" || policy.empty()) {
    out.push_back(required_value(path + ".template.spec.restartPolicy", "valid values: \"OnFailure\", \"Never\""));
  }
}

using check = void (*)(const kind_info&, const json::object&, problems&);
struct rule {
  const char* plural;
  check run;
};

void check_job_kind(const kind_info&, const json::object& o, problems& out) {
  if (const auto* spec = json::get_object(o, {"spec"})) check_job(*spec, "spec", out);
}
void check_cron_job(const kind_info&, const json::object& o, problems& out) {
  if (json::get_string(o, {"spec", "schedule"}).empty()) out.push_back(required_value("spec.schedule"));
  if (const auto* spec = json::get_object(o, {"spec", "jobTemplate", "spec"})) check_job(*spec, "spec.jobTemplate.spec", out);
}
void check_pod(const kind_info&, const json::object& o, problems& out) {
  if (const auto* spec = json::get_object(o, {"spec"})) validate_pod_spec(*spec, "spec", out);
}
void check_crd(const kind_info&, const json::object& o, problems& out) {
  for (auto& p : validate_crd(o)) out.push_back(std::move(p));
}
void check_secret(const kind_info&, const json::object& o, problems& out) {
  auto type = json::get_string(o, {"type"});
  auto need = [&](std::initializer_list<const char*> keys) {
    for (const char* k : keys) {
      const auto* data = json::get_object(o, {"data"});
      if (!data || !data->if_contains(k)) out.push_back(required_value("data[" + std::string(k) + "]"));
    }
  };
  if (type == "kubernetes.io/tls") need({"tls.crt", "tls.key"});
  if (type == "kubernetes.io/dockerconfigjson") need({".dockerconfigjson"});
  if (type == "kubernetes.io/ssh-auth") need({"ssh-privatekey"});
}

const rule rules[] = {
    {"deployments", check_workload},
    {"replicasets", check_workload},
    {"statefulsets", check_workload},
    {"daemonsets", check_workload},
    {"jobs", check_job_kind},
    {"cronjobs", check_cron_job},
    {"pods", check_pod},
    {"customresourcedefinitions", check_crd},
    {"secrets", check_secret},
    {"services", check_service},
    {"ingresses", check_ingress},
    {"horizontalpodautoscalers", check_hpa},
    {"poddisruptionbudgets", check_pdb},
    {"leases", check_lease},
};

void check_content(const kind_info& kind, const json::object& o, problems& out) {
  if (kind.custom) {
    for (auto& p : validate_custom(*kind.custom, o)) out.push_back(std::move(p));
    return;
  }
  for (const auto& r : rules) {
    if (kind.plural == r.plural) r.run(kind, o, out);
  }
}

void keep_same(const json::object& before, const json::object& after, std::initializer_list<std::string_view> path,
               const std::string& shown, problems& out) {
  static const json::value none;
  const auto *a = json::find(before, path), *b = json::find(after, path);
  const json::value &x = a ? *a : none, &y = b ? *b : none;
  if (x != y) out.push_back(invalid_value(shown, json::write(y), words::immutable));
}

void check_new_finalizers(const json::object& before, const json::object& after, problems& out) {
  if (!kube::being_deleted(before)) return;
  const auto *old = json::get_array(before, {"metadata", "finalizers"}),
             *now = json::get_array(after, {"metadata", "finalizers"});
  if (!now) return;
  std::string fresh;
  for (const auto& f : *now) {
    if (!old || std::find(old->begin(), old->end(), f) == old->end())
      fresh += (fresh.empty() ? "" : ", ") + go_quote(json::as_view(f));
  }
  if (!fresh.empty()) {
    out.push_back(forbidden_value(
        "metadata.finalizers",
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{" + fresh + "}"));
  }
}

void check_pod_update(const json::object& before, const json::object& after, problems& out) {
  auto fixed = [](const json::object& pod) {
    json::object spec = pod.at("spec").as_object();
    for (const char* list : {"containers", "initContainers"}) {
      auto* all = spec.if_contains(list);
      for (std::size_t i = 0; all && all->is_array() && i < all->get_array().size(); ++i) {
        if (auto* c = all->get_array()[i].if_object()) c->erase("image");
      }
    }
    for (const char* f :
         {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "ephemeralContainers", "schedulingGates"}) {
      spec.erase(f);
    }
    return spec;
  };
  if (fixed(before) != fixed(after)) {
    out.push_back(
        forbidden_value("spec",
                        "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
                        "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
                        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"));
  }
}

void check_immutable(const kind_info& kind, const json::object& before, const json::object& after, problems& out) {
  const std::string& p = kind.plural;
  if (kind.group == "apps" && p != "controllerrevisions") keep_same(before, after, {"spec", "selector"}, "spec.selector", out);
  if (p == "jobs") {
    keep_same(before, after, {"spec", "selector"}, "spec.selector", out);
    keep_same(before, after, {"spec", "template"}, "spec.template", out);
    keep_same(before, after, {"spec", "completionMode"}, "spec.completionMode", out);
  }
  if (p == "secrets") keep_same(before, after, {"type"}, "type", out);
  if ((p == "secrets" || p == "configmaps") && json::get_bool(before, {"immutable"})) {
    if (!json::get_bool(after, {"immutable"}))
      out.push_back(forbidden_value("immutable", "field is immutable when `immutable` is set"));
    for (const char* f : {"data", "binaryData"}) {
      const auto *a = before.if_contains(f), *b = after.if_contains(f);
      static const json::value none;
      if ((a ? *a : none) != (b ? *b : none)) out.push_back(forbidden_value(f, "field is immutable when `immutable` is set"));
    }
  }
  if (p == "rolebindings" || p == "clusterrolebindings") keep_same(before, after, {"roleRef"}, "roleRef", out);
  if (p == "services") {
    auto a = json::get_string(before, {"spec", "clusterIP"}), b = json::get_string(after, {"spec", "clusterIP"});
    if (!a.empty() && a != b)
      out.push_back(invalid_value("spec.clusterIPs[0]", "[" + go_quote(b) + "]", "may not change once set"));
  }
  if (kind.is("", "pods")) check_pod_update(before, after, out);
}

}  // namespace

problems validate_create(const kind_info& kind, const json::object& o) {
  problems out;
  check_meta(kind, o, out);
  check_content(kind, o, out);
  return out;
}

problems validate_update(const kind_info& kind, const json::object& before, const json::object& after,
                         std::string_view subresource) {
  problems out;
  check_new_finalizers(before, after, out);
  // Custom objects are checked by two strategies, which both say this.
  if (kind.custom && !out.empty()) out.push_back(out.front());
  check_meta(kind, after, out);
  if (subresource.empty()) check_immutable(kind, before, after, out);
  check_content(kind, after, out);
  return out;
}

}  // namespace kubeopera::inline v1::testing::api
