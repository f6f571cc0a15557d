// Hand-written matchers; sources: RFC 1123, the distribution reference grammar, Kubernetes validation, git check-ref-format.
#include "src/manifest/grammar.hpp"

#include <kubeopera/manifest/quantity.hpp>

#include <algorithm>
#include <array>

namespace kubeopera::inline v1::manifest::grammar {
namespace {

bool lower(char c) { return c >= 'a' && c <= 'z'; }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool digit(char c) { return c >= '0' && c <= '9'; }
bool alnum(char c) { return lower(c) || upper(c) || digit(c); }
bool lower_alnum(char c) { return lower(c) || digit(c); }

template <class Pred>
bool all(std::string_view s, Pred p) {
  return std::all_of(s.begin(), s.end(), p);
}

bool is_label(std::string_view s) {
  if (s.empty() || s.size() > 63 || !lower_alnum(s.front()) || !lower_alnum(s.back())) return false;
  return all(s, [](char c) { return lower_alnum(c) || c == '-'; });
}

// Calls f for each part; stops at the first false.
template <class F>
bool each_part(std::string_view s, char separator, F f) {
  for (;;) {
    auto end = s.find(separator);
    if (!f(s.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    s.remove_prefix(end + 1);
  }
}

bool is_subdomain(std::string_view s) { return s.size() <= 253 && each_part(s, '.', is_label); }

bool is_port(std::string_view s) {
  if (s.empty() || s.size() > 5 || s.front() == '0' || !all(s, digit)) return false;
  int n = 0;
  for (char c : s) n = n * 10 + (c - '0');
  return n >= 1 && n <= 65535;
}

// [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*
bool image_component(std::string_view s) {
  if (s.empty() || !lower_alnum(s.front()) || !lower_alnum(s.back())) return false;
  for (std::size_t i = 0; i < s.size();) {
    if (lower_alnum(s[i])) {
      ++i;
      continue;
    }
    auto end = i;
    while (end < s.size() && s[end] == s[i]) ++end;
    auto run = end - i;
    bool ok = (s[i] == '.' && run == 1) || (s[i] == '_' && run <= 2) || s[i] == '-';
    if (!ok || !lower_alnum(s[end])) return false;
    i = end;
  }
  return true;
}

bool registry_host(std::string_view s) {
  auto colon = s.find(':');
  if (colon != std::string_view::npos && !is_port(s.substr(colon + 1))) return false;
  auto name = s.substr(0, colon);
  return name.size() <= 253 && each_part(name, '.', [](std::string_view part) {
           return !part.empty() && part.size() <= 63 && alnum(part.front()) && alnum(part.back()) &&
                  all(part, [](char c) { return alnum(c) || c == '-'; });
         });
}

bool digest(std::string_view s) {
  auto colon = s.find(':');
  if (colon == std::string_view::npos) return false;
  auto algorithm = s.substr(0, colon);
  auto hex = s.substr(colon + 1);
  bool length = (algorithm == "sha256" && hex.size() == 64) || (algorithm == "sha512" && hex.size() == 128);
  return length && all(hex, [](char c) { return digit(c) || (c >= 'a' && c <= 'f'); });
}

bool path_part(std::string_view part) { return !part.empty() && part != "." && part != ".."; }

}  // namespace

std::string dns_label(std::string_view s) {
  return is_label(s) ? "" : "must be a DNS label: lower-case letters, digits and '-', at most 63, no '-' at the ends";
}

std::string dns_subdomain(std::string_view s) {
  return is_subdomain(s) ? "" : "must be a DNS name: lower-case labels joined by dots, at most 253 characters";
}

std::string app_name(std::string_view s) {
  if (!is_label(s) || s.size() > 53 || !lower(s.front()))
    return "must begin with a lower-case letter and have only lower-case letters, digits and '-', at most 53, no '-' at the end";
  constexpr std::array<std::string_view, 5> taken{"default", "cert-manager", "ingress-nginx", "external-dns", "vcluster"};
  if (std::find(taken.begin(), taken.end(), s) != taken.end() || s.starts_with("kube-") || s.starts_with("kubeopera") ||
      s.ends_with("-system"))
    return "is reserved for the platform (it names a namespace)";
  return {};
}

std::string host_name(std::string_view s) {
  if (!is_subdomain(s) || s.find('.') == std::string_view::npos)
    return "must be a host name with at least two lower-case labels, at most 253 characters";
  auto last = s.substr(s.rfind('.') + 1);
  bool hex = last.size() >= 2 && last.starts_with("0x") &&
             all(last.substr(2), [](char c) { return digit(c) || (c >= 'a' && c <= 'f'); });
  return all(last, digit) || hex ? "must be a host name, not an IP address" : "";
}

std::string image_or_empty(std::string_view s) {
  if (s.empty()) return {};
  const std::string message = "must be an image reference like registry.example.com/team/app:1.4 or …@sha256:<64 hex digits>";
  auto at = s.find('@');
  if (at != std::string_view::npos) {
    if (!digest(s.substr(at + 1))) return message;
    s = s.substr(0, at);
  }
  auto slash = s.rfind('/');
  auto colon = s.find(':', slash == std::string_view::npos ? 0 : slash);
  if (colon != std::string_view::npos) {
    auto tag = s.substr(colon + 1);
    bool ok = !tag.empty() && tag.size() <= 128 && (alnum(tag[0]) || tag[0] == '_') &&
              all(tag, [](char c) { return alnum(c) || c == '_' || c == '.' || c == '-'; });
    if (!ok) return message;
    s = s.substr(0, colon);
  }
  if (s.size() > 255) return message;
  auto first = s.substr(0, s.find('/'));
  bool has_host = first.size() != s.size() && (first.find_first_of(".:") != std::string_view::npos || first == "localhost" ||
                                               std::any_of(first.begin(), first.end(), upper));
  if (has_host) {
    if (!registry_host(first)) return message;
    s.remove_prefix(first.size() + 1);
  }
  return each_part(s, '/', image_component) ? "" : message;
}

std::string env_name(std::string_view s) {
  if (s.empty() || s.size() > 128 || digit(s[0]) || !all(s, [](char c) { return alnum(c) || c == '_'; }))
    return "must have only letters, digits and '_', and not begin with a digit";
  if (s.starts_with("KUBERNETES_") || s.starts_with("KUBEOPERA_"))
    return "begins with a prefix that is reserved for the platform";
  return {};
}

std::string secret_key(std::string_view s) {
  bool ok = !s.empty() && s.size() <= 253 && s != "." && !s.starts_with("..") &&
            all(s, [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
  return ok ? "" : "must be a Secret key: letters, digits, '-', '_' and '.'";
}

std::string port_name(std::string_view s) {
  bool ok = is_label(s) && s.size() <= 15 && std::any_of(s.begin(), s.end(), lower) && s.find("--") == std::string_view::npos;
  return ok ? "" : "must be a port name: at most 15 lower-case letters, digits and '-', with at least one letter";
}

std::string repository(std::string_view s) {
  const std::string message = "must be an https URL without user name, query and fragment";
  if (!s.starts_with("https://")) return message;
  s.remove_prefix(8);
  auto slash = s.find('/');
  if (slash == std::string_view::npos || slash + 1 == s.size()) return message;
  auto authority = s.substr(0, slash);
  auto colon = authority.find(':');
  if (colon != std::string_view::npos && !is_port(authority.substr(colon + 1))) return message;
  if (!host_name(authority.substr(0, colon)).empty()) return message;
  auto path = s.substr(slash + 1);
  bool ok = each_part(path, '/', path_part) &&
            all(path, [](char c) { return alnum(c) || std::string_view("-._~/+").find(c) != std::string_view::npos; });
  return ok ? "" : message;
}

std::string git_revision(std::string_view s) {
  bool ok = !s.empty() && s.front() != '-' && s.front() != '/' && s.back() != '/' && s.back() != '.' && !s.ends_with(".lock") &&
            s.find("..") == std::string_view::npos && s.find("//") == std::string_view::npos &&
            s.find("/.") == std::string_view::npos && s.front() != '.' &&
            all(s, [](char c) { return alnum(c) || std::string_view("-._/+").find(c) != std::string_view::npos; });
  return ok ? "" : "must be a branch, a tag or a commit";
}

std::string relative_path(std::string_view s) {
  if (s == ".") return {};
  bool ok = !s.empty() && s.front() != '-' && each_part(s, '/', path_part) &&
            all(s, [](char c) { return alnum(c) || std::string_view("-._/+@").find(c) != std::string_view::npos; });
  return ok ? "" : "must be a path inside the repository: relative, without . and .. steps";
}

std::string url_path(std::string_view s) {
  bool ok = !s.empty() && s.front() == '/' && all(s, [](char c) { return c > 0x20 && c < 0x7F && c != '#'; });
  return ok ? "" : "must be a path that begins with '/' and has no blanks";
}

std::string mount_path(std::string_view s) {
  if (s.size() < 2 || s.front() != '/' || !each_part(s.substr(1), '/', path_part) ||
      !all(s, [](char c) { return alnum(c) || std::string_view("-._/@+").find(c) != std::string_view::npos; }))
    return "must be an absolute path without . and .. steps";
  for (std::string_view closed : {"/proc", "/sys", "/dev", "/etc", "/tmp", "/var/run/secrets", "/run/secrets"})
    if (s == closed || (s.starts_with(closed) && s[closed.size()] == '/'))
      return "may not be " + std::string(closed) + " or under it";
  return {};
}

std::string count_or_percent(std::string_view s) {
  auto number = s.ends_with('%') ? s.substr(0, s.size() - 1) : s;
  bool ok = !number.empty() && number.size() <= 3 && all(number, digit) && (number.size() == 1 || number[0] != '0');
  if (ok && s.ends_with('%') && number.size() == 3 && number != "100") ok = false;
  return ok ? "" : "must be a count like 1 or a percentage like 25%";
}

std::string label_value(std::string_view s) {
  bool ok = s.empty() || (s.size() <= 63 && alnum(s.front()) && alnum(s.back()) &&
                          all(s, [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; }));
  return ok ? "" : "must be a label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at each end";
}

std::string label_key(std::string_view s) {
  if (s.find('/') != std::string_view::npos) return "keys with a prefix are reserved for the platform";
  if (s == "pod-template-hash") return "is reserved for Kubernetes";
  return !s.empty() && label_value(s).empty()
             ? ""
             : "must be a label key: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at each end";
}

std::string rfc3339(std::string_view s) {
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:dd";
  const std::string message = "must be a time like 2026-01-31T12:00:00Z";
  if (s.size() < shape.size() + 1 || s.back() != 'Z') return message;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 'd' ? !digit(s[i]) : s[i] != shape[i]) return message;
  auto two = [&](std::size_t i) { return (s[i] - '0') * 10 + (s[i + 1] - '0'); };
  if (two(5) < 1 || two(5) > 12 || two(8) < 1 || two(8) > 31 || two(11) > 23 || two(14) > 59 || two(17) > 60) return message;
  auto rest = s.substr(shape.size(), s.size() - shape.size() - 1);
  if (rest.empty()) return {};
  return rest[0] == '.' && rest.size() > 1 && rest.size() <= 10 && all(rest.substr(1), digit) ? "" : message;
}

std::string no_nul(std::string_view s) { return s.find('\0') == std::string_view::npos ? "" : "may not hold a NUL character"; }

std::string quantity(std::string_view s) {
  auto q = manifest::quantity::parse(s);
  if (!q) return q.error().message();
  return q->negative() || q->zero() ? "must be more than zero" : "";
}

}  // namespace kubeopera::inline v1::manifest::grammar
