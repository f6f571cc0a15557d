// Scalar resolution by hand-written matchers: regular expressions of the YAML type repository (1.1), the core schema (1.2)
// and go-yaml's resolve table, in that order of appearance.
#include "src/yaml/scalar.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace kubeopera::inline v1::yaml {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool hex_digit(char c) { return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

template <class Set>
bool in(const Set& set, std::string_view text) {
  return std::find(set.begin(), set.end(), text) != set.end();
}

template <class Pred>
std::string_view take(std::string_view& s, Pred p) {
  auto end = std::find_if_not(s.begin(), s.end(), p);
  auto n = static_cast<std::size_t>(end - s.begin());
  auto head = s.substr(0, n);
  s.remove_prefix(n);
  return head;
}

std::string_view without_sign(std::string_view s) {
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.remove_prefix(1);
  return s;
}

constexpr std::array<std::string_view, 4> nulls{"", "~", "null", "Null"};
constexpr std::array<std::string_view, 3> trues{"true", "True", "TRUE"};
constexpr std::array<std::string_view, 3> falses{"false", "False", "FALSE"};
constexpr std::array<std::string_view, 8> old_trues{"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"};
constexpr std::array<std::string_view, 8> old_falses{"n", "N", "no", "No", "NO", "off", "Off", "OFF"};

bool is_null(std::string_view s) { return in(nulls, s) || s == "NULL"; }

bool infinite(std::string_view s) {
  auto rest = without_sign(s);
  return rest == ".inf" || rest == ".Inf" || rest == ".INF" || s == ".nan" || s == ".NaN" || s == ".NAN";
}

// [-+]?(0|[1-9][0-9]*)
bool shared_integer(std::string_view s) {
  s = without_sign(s);
  if (s.empty() || !std::all_of(s.begin(), s.end(), digit)) return false;
  return s == "0" || s[0] != '0';
}

bool shared_hex(std::string_view s) {
  return s.size() > 2 && s.starts_with("0x") && std::all_of(s.begin() + 2, s.end(), hex_digit);
}

// [-+]?(0|[1-9][0-9]*)\.[0-9]+([eE][-+][0-9]+)?
bool shared_real(std::string_view s) {
  s = without_sign(s);
  auto whole = take(s, digit);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0') || s.empty() || s[0] != '.') return false;
  s.remove_prefix(1);
  if (take(s, digit).empty()) return false;
  if (s.empty()) return true;
  if ((s[0] != 'e' && s[0] != 'E') || s.size() < 3 || (s[1] != '-' && s[1] != '+')) return false;
  s.remove_prefix(2);
  return !take(s, digit).empty() && s.empty();
}

// YAML 1.1 base 60: [-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?
bool sexagesimal(std::string_view s) {
  s = without_sign(s);
  if (s.empty() || !digit(s[0])) return false;
  take(s, [](char c) { return digit(c) || c == '_'; });
  bool any = false;
  while (!s.empty() && s[0] == ':') {
    s.remove_prefix(1);
    auto part = take(s, digit);
    if (part.empty() || part.size() > 2 || (part.size() == 2 && part[0] > '5')) return false;
    any = true;
  }
  if (any && !s.empty() && s[0] == '.') {
    s.remove_prefix(1);
    take(s, [](char c) { return digit(c) || c == '_'; });
  }
  return any && s.empty();
}

// Anything that some reader takes for an integer: 0o17, 0b1, 0755, 1_000, 0x_f, -0x1.
bool some_integer(std::string_view s) {
  s = without_sign(s);
  if (s.empty() || !digit(s[0])) return false;
  if (s.size() > 1 && s[0] == '0') {
    char base = static_cast<char>(s[1] | 0x20);
    auto rest = s.substr(2);
    if (base == 'x')
      return !rest.empty() && std::all_of(rest.begin(), rest.end(), [](char c) { return hex_digit(c) || c == '_'; });
    if (base == 'o' || base == 'b')
      return !rest.empty() && std::all_of(rest.begin(), rest.end(), [](char c) { return digit(c) || c == '_'; });
  }
  return std::all_of(s.begin(), s.end(), [](char c) { return digit(c) || c == '_'; });
}

// Anything that some reader takes for a real number: .5, 1., 1e3, 1_0.5, 1.e+2.
bool some_real(std::string_view s) {
  s = without_sign(s);
  auto digits = [](char c) { return digit(c) || c == '_'; };
  bool whole = !s.empty() && digit(s[0]);
  if (whole) take(s, digits);
  bool dot = !s.empty() && s[0] == '.';
  if (dot) s.remove_prefix(1);
  bool fraction = dot && !take(s, digits).empty();
  if (!whole && !fraction) return false;
  if (s.empty()) return true;
  if (s[0] != 'e' && s[0] != 'E') return false;
  s.remove_prefix(1);
  s = without_sign(s);
  return !take(s, digit).empty() && s.empty();
}

// YYYY-MM-DD, and YYYY-M-D followed by a time.
bool timestamp(std::string_view s) {
  auto date = [&](std::size_t most) {
    auto part = take(s, digit);
    return !part.empty() && part.size() <= most;
  };
  auto year = take(s, digit);
  if (year.size() != 4 || s.empty() || s[0] != '-') return false;
  s.remove_prefix(1);
  if (!date(2) || s.empty() || s[0] != '-') return false;
  s.remove_prefix(1);
  if (!date(2)) return false;
  if (s.empty()) return true;
  return s[0] == 't' || s[0] == 'T' || s[0] == ' ' || s[0] == '\t';
}

std::optional<json::value> parse_integer(std::string_view s) {
  bool negative = !s.empty() && s[0] == '-';
  auto body = without_sign(s);
  int base = 10;
  if (body.size() > 1 && body[0] == '0') {
    char letter = static_cast<char>(body[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 8;
    body.remove_prefix(letter == 'x' || letter == 'o' || letter == 'b' ? 2 : 1);
  }
  std::uint64_t magnitude = 0;
  auto [end, ec] = std::from_chars(body.data(), body.data() + body.size(), magnitude, base);
  if (body.empty() || ec != std::errc() || end != body.data() + body.size()) return std::nullopt;
  constexpr auto top = static_cast<std::uint64_t>(INT64_MAX);
  if (negative) {
    if (magnitude > top + 1) return std::nullopt;
    return json::value(static_cast<std::int64_t>(0 - magnitude));
  }
  if (magnitude <= top) return json::value(static_cast<std::int64_t>(magnitude));
  return json::value(magnitude);
}

std::optional<double> parse_real(std::string_view s) {
  if (!s.empty() && s[0] == '+') s.remove_prefix(1);
  double d = 0;
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), d);
  if (end != s.data() + s.size() || s.empty()) return std::nullopt;
  if (ec == std::errc::result_out_of_range) {
    // Too small reads as zero, too large as infinity; from_chars tells neither.
    return std::strtod(std::string(s).c_str(), nullptr);
  }
  return d;
}

}  // namespace

scalar resolve_strict(std::string_view s) {
  if (is_null(s)) return {scalar_kind::null, nullptr};
  if (in(trues, s)) return {scalar_kind::boolean, true};
  if (in(falses, s)) return {scalar_kind::boolean, false};
  if (in(old_trues, s) || in(old_falses, s) || s == "=" || s == "<<") return {scalar_kind::ambiguous, {}};
  if (infinite(s)) return {scalar_kind::not_json, {}};
  char first = s[0];
  if (!digit(first) && first != '-' && first != '+' && first != '.') return {};
  if (shared_integer(s) || shared_hex(s)) {
    auto v = parse_integer(s);
    if (!v) return {scalar_kind::out_of_range, {}};
    return {scalar_kind::number, *v};
  }
  if (shared_real(s)) {
    auto d = parse_real(s);
    if (!d || std::isinf(*d)) return {scalar_kind::out_of_range, {}};
    return {scalar_kind::number, *d};
  }
  if (some_integer(s) || some_real(s) || sexagesimal(s) || timestamp(s)) return {scalar_kind::ambiguous, {}};
  if (s.find('_') != std::string_view::npos) {
    // Some readers drop every underscore before they look.
    std::string without(s);
    std::erase(without, '_');
    if (some_integer(without) || some_real(without)) return {scalar_kind::ambiguous, {}};
  }
  return {};
}

std::optional<json::value> resolve_go(std::string_view s) {
  if (is_null(s)) return json::value(nullptr);
  if (in(trues, s) || in(old_trues, s)) return json::value(true);
  if (in(falses, s) || in(old_falses, s)) return json::value(false);
  if (infinite(s)) return std::nullopt;
  char first = s[0];
  if (!digit(first) && first != '-' && first != '+' && first != '.') return json::value(s);
  std::string plain(s);
  if (first != '.') std::erase(plain, '_');
  if (first != '.') {
    if (auto v = parse_integer(plain)) return v;
  }
  if (some_real(plain) && plain.find('_') == std::string::npos) {
    auto d = parse_real(plain);
    if (!d || std::isinf(*d)) return json::value(s);
    // On its way through JSON a whole number loses its fraction.
    auto again = json::read(json::write(json::value(*d)));
    return again ? *again : json::value(*d);
  }
  return json::value(s);
}

bool is_reserved_word(std::string_view s) noexcept {
  constexpr std::array<std::string_view, 12> words{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<"};
  if (s.size() > 5) return false;
  std::string lower(s);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return in(words, lower);
}

}  // namespace kubeopera::inline v1::yaml
