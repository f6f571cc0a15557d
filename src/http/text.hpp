// Character classes of HTTP. Private to the module.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::http {

inline char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

inline bool iequals(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

inline std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

inline bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
inline bool is_alpha(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Value of a hexadecimal digit or -1.
inline int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

namespace detail {
consteval std::array<bool, 256> token_table() {
  std::array<bool, 256> t{};
  for (int c = '0'; c <= '9'; ++c) t[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) t[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) t[static_cast<std::size_t>(c)] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~")) t[static_cast<unsigned char>(c)] = true;
  return t;
}
inline constexpr auto token_chars = token_table();
}  // namespace detail

/// A token (RFC 9110 section 5.6.2): what methods and header names are made of.
inline bool is_token(std::string_view text) noexcept {
  if (text.empty()) return false;
  for (char c : text) {
    if (!detail::token_chars[static_cast<unsigned char>(c)]) return false;
  }
  return true;
}

/// Bytes that a header value may hold: printable ASCII, space, tab and obs-text.
inline bool is_field_value(std::string_view text) noexcept {
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if ((u < 0x20 && u != '\t') || u == 0x7f) return false;
  }
  return true;
}

}  // namespace kubeopera::inline v1::http
