// Grammars of the words that a spec is made of. Each function says what is wrong, or returns an empty string.
#pragma once

#include <string>
#include <string_view>

namespace kubeopera::inline v1::manifest::grammar {

std::string app_name(std::string_view s);
/// DNS-1123 label, subdomain.
std::string dns_label(std::string_view s);
std::string dns_subdomain(std::string_view s);
/// A public host name: at least two labels, the last not numeric.
std::string host_name(std::string_view s);
/// Registry image reference, or empty.
std::string image_or_empty(std::string_view s);
std::string env_name(std::string_view s);
std::string secret_key(std::string_view s);
std::string port_name(std::string_view s);
/// An https URL without user, query and fragment.
std::string repository(std::string_view s);
std::string git_revision(std::string_view s);
/// A path inside a repository.
std::string relative_path(std::string_view s);
std::string url_path(std::string_view s);
/// An absolute, normalised path at which an empty directory may be mounted.
std::string mount_path(std::string_view s);
std::string count_or_percent(std::string_view s);
std::string label_key(std::string_view s);
std::string label_value(std::string_view s);
std::string rfc3339(std::string_view s);
std::string no_nul(std::string_view s);
std::string quantity(std::string_view s);

}  // namespace kubeopera::inline v1::manifest::grammar
