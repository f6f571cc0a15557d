// The words of a spec: what a grammar accepts is read the same by those who get it (URLs, paths, shells, Kubernetes).
#include "src/manifest/grammar.hpp"
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/http/url.hpp>

#include <algorithm>
#include <string>

using namespace kubeopera;
namespace grammar = kubeopera::manifest::grammar;

namespace {

bool plain(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}
bool steps(std::string_view s) { return ("/" + std::string(s) + "/").find("/../") != std::string::npos; }

void hosts(std::string_view s) {
  if (grammar::host_name(s).empty()) {
    auto url = http::parse_url("https://" + std::string(s) + "/");
    KUBEOPERA_PROPERTY(url && url->host == s && !url->host_is_address && url->port == 443);
  }
  if (grammar::repository(s).empty()) {
    auto url = http::parse_url(s);
    KUBEOPERA_PROPERTY(url && url->tls() && !url->host_is_address && url->target.find_first_of("?#@") == std::string::npos);
  }
  if (grammar::dns_label(s).empty()) KUBEOPERA_PROPERTY(grammar::dns_subdomain(s).empty() && s.size() <= 63);
  if (grammar::app_name(s).empty()) KUBEOPERA_PROPERTY(grammar::dns_label(s).empty());
}

void paths(std::string_view s) {
  if (grammar::mount_path(s).empty()) KUBEOPERA_PROPERTY(s.front() == '/' && plain(s) && !steps(s) && !s.starts_with("/proc/"));
  if (grammar::relative_path(s).empty()) KUBEOPERA_PROPERTY(s.front() != '/' && s.front() != '-' && plain(s) && !steps(s));
  if (grammar::git_revision(s).empty())
    KUBEOPERA_PROPERTY(s.front() != '-' && plain(s) && s.find("..") == std::string_view::npos);
  if (grammar::url_path(s).empty()) KUBEOPERA_PROPERTY(s.front() == '/' && plain(s));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto s = as_text(data, size);
  hosts(s);
  paths(s);
  if (!s.empty() && grammar::image_or_empty(s).empty()) {
    KUBEOPERA_PROPERTY(plain(s) && s.front() != '-' && !steps(s) && s.find("//") == std::string_view::npos);
    KUBEOPERA_PROPERTY(std::count(s.begin(), s.end(), '@') <= 1);
    // A digest can be added to what has none, and to nothing else.
    auto pinned = std::string(s) + "@sha256:" + std::string(64, 'a');
    KUBEOPERA_PROPERTY(grammar::image_or_empty(pinned).empty() == (s.find('@') == std::string_view::npos));
  }
  if (grammar::env_name(s).empty()) KUBEOPERA_PROPERTY(plain(s) && s.find('=') == std::string_view::npos);
  if (grammar::secret_key(s).empty()) KUBEOPERA_PROPERTY(s.find('/') == std::string_view::npos && s != "." && s != "..");
  if (grammar::label_key(s).empty()) KUBEOPERA_PROPERTY(!s.empty() && grammar::label_value(s).empty());
  if (grammar::port_name(s).empty()) KUBEOPERA_PROPERTY(grammar::dns_label(s).empty());
  if (grammar::rfc3339(s).empty()) KUBEOPERA_PROPERTY(s.back() == 'Z' && s.size() <= 30);
  return 0;
}
