// Putting the objects of an app together: checks first, then objects, files and hashes.
#include "src/manifest/grammar.hpp"
#include "src/manifest/objects.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/manifest/render.hpp>
#include <kubeopera/yaml/write.hpp>

#include <utility>

namespace kubeopera::inline v1::manifest {
namespace {

// Part of input_hash: raise it whenever the output for the same input changes.
constexpr const char* generator_version = "kubeopera-manifest/1";

std::string label_or_empty(std::string_view s) { return s.empty() ? std::string() : grammar::label_value(s); }
std::string dns_label_or_empty(std::string_view s) { return s.empty() ? std::string() : grammar::dns_label(s); }
std::string dns_subdomain_or_empty(std::string_view s) { return s.empty() ? std::string() : grammar::dns_subdomain(s); }

result<void> check(const app_spec& spec, const render_context& context) {
  if (auto bad = validate(spec); !bad.empty()) {
    auto message = bad.size() == 1 ? "the app is not valid: " + bad[0].pointer + " " + bad[0].message
                                   : std::to_string(bad.size()) + " fields of the app are not valid";
    return error(errc::invalid_argument, "InvalidApp", message).with_violations(std::move(bad));
  }
  json::read_context at;
  render_context scratch;
  json::codec<render_context>::read(json::encode(context), scratch, at);
  if (auto& bad = at.violations(); !bad.empty())
    return error(errc::invalid_argument, "InvalidContext",
                 "the render context is not valid: " + bad[0].pointer + " " + bad[0].message)
        .with_violations(std::move(bad));
  if (spec.image.empty() && context.image.empty())
    return error(errc::failed_precondition, "NoImage", "the image has not been built yet");
  for (std::size_t i = 0; i < spec.env.size(); ++i)
    if (spec.env[i].secret)
      return error(errc::failed_precondition, "SecretNotExtracted", "a secret value has to be moved to a Secret before rendering")
          .with_violation("/env/" + std::to_string(i) + "/secret", "still holds a value");
  return {};
}

// Ties the pods to their template: the hash, and the revision that brought it.
void annotate(json::object& pod_template, const render_context& context, rendered& out) {
  out.template_hash = crypto::sha256_hex(json::write(pod_template)).substr(0, 16);
  bool same = !context.previous_template_hash.empty() && context.previous_template_hash == out.template_hash;
  out.template_revision = same && context.previous_template_revision > 0 ? context.previous_template_revision : context.revision;
  auto& annotations = json::ensure_object(json::ensure_object(pod_template, "metadata"), "annotations");
  annotations[app_id_annotation] = context.app_id;
  annotations[template_hash_annotation] = out.template_hash;
  annotations[revision_annotation] = std::to_string(out.template_revision);
}

class file_set {
 public:
  explicit file_set(rendered& out) : out_(out) {}

  void add(const char* name, json::object o) {
    out_.files.emplace(name, yaml::write(o));
    names_.emplace_back(name);
    out_.objects.push_back(std::move(o));
  }
  void finish() {
    json::object k{
        {"apiVersion", "kustomize.config.k8s.io/v1beta1"}, {"kind", "Kustomization"}, {"resources", std::move(names_)}};
    out_.files.emplace("kustomization.yaml", yaml::write(k));
    crypto::hasher all(crypto::hash_algorithm::sha256);
    for (const auto& [name, content] : out_.files) {
      all.update(name + "\n" + std::to_string(content.size()) + "\n");
      all.update(content);
    }
    out_.content_hash = crypto::to_hex(all.finish());
  }

 private:
  rendered& out_;
  json::array names_;
};

}  // namespace

void render_context::rules(json::rule_set& r) {
  r.type_doc("What the platform knows about an app that its user does not say");
  r("app_id").required().length(1, 63).check(grammar::label_value).doc("Id of the app");
  r("revision").required().range(1, INT64_MAX).doc("Revision of the app, counted from 1");
  r("host").required().length(1, 253).check(grammar::host_name).doc("Address of the app");
  r("ns").length(0, 63).check(dns_label_or_empty).doc("Namespace; the app's name where left out");
  r("tenant_id").length(0, 63).check(label_or_empty).doc("Id of the tenant, for a label");
  r("cloudspace").length(0, 63).check(label_or_empty).doc("CloudSpace, for a label");
  r("image").length(0, 512).check(grammar::image_or_empty).doc("The built image; the app's own where left out");
  r("image_pull_secret")
      .length(0, 253)
      .check(dns_subdomain_or_empty)
      .doc("Pull Secret; the app's registry_credentials where left out");
  r("traffic").doc("ingress or gateway");
  r("ingress_class").length(1, 253).check(grammar::dns_subdomain).doc("IngressClass");
  r("ingress_namespace").length(1, 63).check(grammar::dns_label).doc("Namespace of the ingress controller");
  r("gateway_name").length(1, 253).check(grammar::dns_subdomain).doc("Gateway that routes hang on");
  r("gateway_namespace").length(1, 63).check(grammar::dns_label).doc("Namespace of the Gateway and its pods");
  r("wildcard_tls_secret").length(0, 253).check(dns_subdomain_or_empty).doc("Certificate of the default hosts");
  r("cluster_issuer").length(1, 253).check(grammar::dns_subdomain).doc("cert-manager issuer of custom domains");
  r("pod_annotations").items(32).doc("More annotations of the pods");
  r("previous_template_hash").length(0, 64).doc("template_hash of the revision before");
  r("previous_template_revision").range(0, INT64_MAX).doc("template_revision of the revision before");
}

result<rendered> render(const app_spec& spec, const render_context& context) {
  KUBEOPERA_CHECK(check(spec, context));
  auto f = objects::make_frame(spec, context);
  rendered out;
  auto pods = objects::pod_template(f);
  annotate(pods, context, out);

  file_set files(out);
  files.add("namespace.yaml", objects::namespace_object(f));
  files.add("network-policy.yaml", objects::network_policy(f));
  files.add("service-account.yaml", objects::service_account(f));
  files.add("service.yaml", objects::service(f));
  files.add("deployment.yaml", objects::deployment(f, std::move(pods)));
  if (f.scaled()) files.add("horizontal-pod-autoscaler.yaml", objects::autoscaler(f));
  if (f.spread()) files.add("pod-disruption-budget.yaml", objects::disruption_budget(f));
  if (context.traffic == traffic_kind::gateway)
    files.add("http-route.yaml", objects::http_route(f));
  else
    files.add("ingress.yaml", objects::ingress(f));
  files.finish();
  return out;
}

std::string input_hash(const app_spec& spec, const render_context& context) {
  crypto::hasher all(crypto::hash_algorithm::sha256);
  all.update(generator_version);
  all.update(json::write_canonical(json::encode(spec)));
  all.update(json::write_canonical(json::encode(context)));
  return crypto::to_hex(all.finish());
}

}  // namespace kubeopera::inline v1::manifest
