// Kubeconfigs: what is accepted leads to the one server that may be, over TLS with roots of its own, with one way to
// authenticate.
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/kube/kubeconfig.hpp>

using namespace kubeopera;

namespace {

void check(const kube::cluster_access& a, const kube::kubeconfig_policy& policy) {
  KUBEOPERA_PROPERTY(a.url().starts_with("https://") && a.port > 0);
  KUBEOPERA_PROPERTY(crypto::count_certificates(a.ca_pem).has_value());
  KUBEOPERA_PROPERTY(a.token.empty() != a.client_certificate_pem.empty());
  for (unsigned char c : a.token.reveal()) KUBEOPERA_PROPERTY(c > ' ' && c < 0x7f);
  auto again = kube::read_kubeconfig(kube::write_kubeconfig(a, "c"), policy);
  KUBEOPERA_PROPERTY(again && again->host == a.host && again->port == a.port && again->token.reveal() == a.token.reveal());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto ours = kube::kubeconfig_policy::for_vcluster("t1", "host-ns");
  static const kube::kubeconfig_policy registered;
  if (size > 16'384) return 0;
  auto text = as_text(data, size);
  if (auto a = kube::read_kubeconfig(text, ours)) {
    KUBEOPERA_PROPERTY(a->host == "t1.host-ns.svc" && a->port == 443);
    check(*a, ours);
  }
  if (auto a = kube::read_kubeconfig(text, registered)) {
    auto address = http::parse_ip(a->host);
    KUBEOPERA_PROPERTY(address ? http::is_public(*address)
                               : a->host.find('.') != std::string::npos && !a->host.ends_with(".svc"));
    check(*a, registered);
  }
  return 0;
}
