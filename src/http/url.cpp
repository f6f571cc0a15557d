// Strict reading of targets and URLs.
#include "src/http/text.hpp"

#include <kubeopera/http/address.hpp>
#include <kubeopera/http/url.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::http {

namespace {

constexpr std::size_t max_target = 8192;

error bad(std::string reason, std::string message) { return {errc::invalid_argument, std::move(reason), std::move(message)}; }

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view s) noexcept {
  for (std::size_t i = 0; i < s.size();) {
    auto c = static_cast<unsigned char>(s[i]);
    std::size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (n == 0 || i + n > s.size()) return false;
    for (std::size_t k = 1; k < n; ++k) {
      if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return false;
    }
    if (n > 2) {
      auto second = static_cast<unsigned char>(s[i + 1]);
      if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) ||
          (c == 0xf4 && second > 0x8f)) {
        return false;
      }
    }
    i += n;
  }
  return true;
}

bool has_control(std::string_view s) noexcept {
  return std::any_of(s.begin(), s.end(), [](char c) {
    auto u = static_cast<unsigned char>(c);
    return u < 0x20 || u == 0x7f;
  });
}

// The value of the escape at text[i] ('%'), or -1.
int escape_at(std::string_view text, std::size_t i) noexcept {
  if (i + 2 >= text.size()) return -1;
  int hi = hex_value(text[i + 1]), lo = hex_value(text[i + 2]);
  return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

// What no target may hold anywhere, before anything is decoded.
result<void> check_raw(std::string_view text) {
  if (text.size() > max_target) return bad("TargetTooLong", "the target is longer than 8 KiB");
  if (text.empty() || text.front() != '/') return bad("NotOriginForm", "the target must begin with a slash");
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (u <= 0x20 || u == 0x7f) return bad("ControlCharacter", "the target holds a space or control character");
    if (u >= 0x80) return bad("BadEncoding", "the target holds a byte that must be percent-encoded");
    if (c == '\\') return bad("Backslash", "the target holds a backslash");
    if (c == '#') return bad("Fragment", "the target holds a fragment");
  }
  return {};
}

// One path segment: escapes that could mean structure to another reader are refused, not decoded.
result<std::string> decode_segment(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == ';') return bad("Semicolon", "the path holds a semicolon");
    if (raw[i] != '%') {
      out += raw[i];
      continue;
    }
    int c = escape_at(raw, i);
    if (c < 0) return bad("BadEncoding", "the path holds a broken percent-escape");
    if (c == 0) return bad("EncodedNul", "the path holds an encoded NUL");
    if (c == '/') return bad("EncodedSlash", "the path holds an encoded slash");
    if (c == '\\') return bad("EncodedBackslash", "the path holds an encoded backslash");
    if (c == '.') return bad("EncodedDot", "the path holds an encoded dot");
    if (c == '%') return bad("DoubleEncoding", "the path holds an encoded percent sign");
    if (c == ';') return bad("Semicolon", "the path holds an encoded semicolon");
    if (c < 0x20 || c == 0x7f) return bad("ControlCharacter", "the path holds an encoded control character");
    out += static_cast<char>(c);
    i += 2;
  }
  if (out == "." || out == "..") return bad("DotSegment", "the path holds a dot segment");
  if (!is_utf8(out)) return bad("NotUtf8", "the path is not UTF-8");
  return out;
}

result<void> split_path(std::string_view path, std::vector<std::string>& out) {
  path.remove_prefix(1);
  if (path.empty()) return {};
  for (;;) {
    auto slash = path.find('/');
    auto raw = path.substr(0, slash);
    bool last = slash == std::string_view::npos;
    if (raw.empty() && !last) return bad("EmptySegment", "the path holds two slashes in a row");
    KUBEOPERA_TRY(out.emplace_back(), decode_segment(raw));
    if (last) return {};
    path.remove_prefix(slash + 1);
  }
}

result<std::string> decode_query_part(std::string_view raw) {
  KUBEOPERA_TRY(auto text, percent_decode(raw, true));
  if (has_control(text)) return bad("ControlCharacter", "the query holds a control character");
  if (!is_utf8(text)) return bad("NotUtf8", "the query is not UTF-8");
  return text;
}

result<void> split_query(std::string_view query, std::vector<std::pair<std::string, std::string>>& out) {
  while (!query.empty()) {
    auto amp = query.find('&');
    auto pair = query.substr(0, amp);
    query.remove_prefix(amp == std::string_view::npos ? query.size() : amp + 1);
    if (pair.empty()) continue;
    auto equals = pair.find('=');
    KUBEOPERA_TRY(auto name, decode_query_part(pair.substr(0, equals)));
    std::string value;
    if (equals != std::string_view::npos) {
      KUBEOPERA_TRY(value, decode_query_part(pair.substr(equals + 1)));
    }
    out.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

bool unreserved(char c) noexcept { return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~'; }

bool is_dns_name(std::string_view host) noexcept {
  if (host.empty() || host.size() > 253) return false;
  std::size_t label = 0;
  char before = '.';
  for (char c : host) {
    if (c == '.') {
      if (label == 0 || before == '-') return false;
      label = 0;
    } else if (is_alpha(c) || is_digit(c) || c == '_' || (c == '-' && label > 0)) {
      if (++label > 63) return false;
    } else {
      return false;
    }
    before = c;
  }
  return label > 0 && before != '-';
}

// Forms that some resolvers read as an IPv4 address: only digits and dots, or a last label that is a number ("0x7f", "1").
bool looks_numeric(std::string_view host) noexcept {
  auto last = host.substr(host.rfind('.') == std::string_view::npos ? 0 : host.rfind('.') + 1);
  if (last.empty()) return true;
  if (std::all_of(last.begin(), last.end(), is_digit)) return true;
  return last.size() >= 2 && last[0] == '0' && lower(last[1]) == 'x' &&
         std::all_of(last.begin() + 2, last.end(), [](char c) { return hex_value(c) >= 0; });
}

result<void> read_host(std::string_view host, bool bracketed, url& out) {
  if (bracketed) {
    auto ip = parse_ip(host);
    if (!ip || !ip->v6) return bad("BadHost", "the brackets do not hold an IPv6 address");
    out.host = to_string(*ip);
    out.host_is_address = true;
    return {};
  }
  if (looks_numeric(host)) {
    if (!parse_ip(host)) return bad("BadHost", "the host is a number but no dotted IPv4 address");
    out.host_is_address = true;
  } else if (!is_dns_name(host)) {
    return bad("BadHost", "the host is not a DNS name");
  }
  out.host = to_lower(host);
  return {};
}

result<void> read_port(std::string_view text, url& out) {
  unsigned port = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || text.size() > 5 || text[0] == '0' || ec != std::errc() || end != text.data() + text.size() ||
      port > 65535) {
    return bad("BadPort", "the port must be a number from 1 to 65535");
  }
  out.port = static_cast<std::uint16_t>(port);
  out.explicit_port = true;
  return {};
}

result<void> read_authority(std::string_view authority, url& out) {
  if (authority.find('@') != std::string_view::npos) return bad("UserInfo", "the URL must not hold a user or password");
  bool bracketed = !authority.empty() && authority.front() == '[';
  std::string_view host = authority, port;
  bool has_port = false;
  if (bracketed) {
    auto close = authority.find(']');
    if (close == std::string_view::npos) return bad("BadHost", "the bracket of the host is not closed");
    host = authority.substr(1, close - 1);
    auto rest = authority.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return bad("BadHost", "text after the bracketed host");
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else if (auto colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    has_port = true;
  }
  KUBEOPERA_CHECK(read_host(host, bracketed, out));
  if (has_port) KUBEOPERA_CHECK(read_port(port, out));
  return {};
}

}  // namespace

std::optional<std::string_view> target::get(std::string_view name) const noexcept {
  for (const auto& [key, value] : query) {
    if (key == name) return std::string_view(value);
  }
  return std::nullopt;
}

std::size_t target::count(std::string_view name) const noexcept {
  return static_cast<std::size_t>(std::count_if(query.begin(), query.end(), [&](const auto& q) { return q.first == name; }));
}

result<target> parse_target(std::string_view text) {
  KUBEOPERA_CHECK(check_raw(text));
  target out;
  auto mark = text.find('?');
  out.raw_path = text.substr(0, mark);
  if (mark != std::string_view::npos) out.raw_query = text.substr(mark + 1);
  KUBEOPERA_CHECK(split_path(out.raw_path, out.segments));
  KUBEOPERA_CHECK(split_query(out.raw_query, out.query));
  return out;
}

std::string percent_encode(std::string_view text) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (unreserved(c)) {
      out += c;
    } else {
      auto u = static_cast<unsigned char>(c);
      out += {'%', digits[u >> 4], digits[u & 15]};
    }
  }
  return out;
}

result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      int c = escape_at(text, i);
      if (c < 0) return bad("BadEncoding", "a broken percent-escape");
      out += static_cast<char>(c);
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::string encode_query(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out += '&';
    out += percent_encode(name);
    out += '=';
    out += percent_encode(value);
  }
  return out;
}

std::string url::authority() const {
  std::string out = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (tls() ? 443 : 80)) out += ":" + std::to_string(port);
  return out;
}

result<url> parse_url(std::string_view text) {
  url out;
  auto separator = text.find("://");
  if (separator == std::string_view::npos) return bad("BadScheme", "the URL must begin with http:// or https://");
  out.scheme = to_lower(text.substr(0, separator));
  if (out.scheme != "http" && out.scheme != "https") return bad("BadScheme", "the URL must begin with http:// or https://");
  out.port = out.tls() ? 443 : 80;
  auto rest = text.substr(separator + 3);
  auto end = rest.find_first_of("/?#\\");
  KUBEOPERA_CHECK(read_authority(rest.substr(0, end), out));
  std::string_view tail = end == std::string_view::npos ? std::string_view() : rest.substr(end);
  out.target = tail.empty() || tail.front() == '?' ? "/" + std::string(tail) : std::string(tail);
  KUBEOPERA_CHECK(parse_target(out.target));
  return out;
}

}  // namespace kubeopera::inline v1::http
