// Reading of heads: where they end, what they say, and what makes them ambiguous.
#include "src/http/text.hpp"
#include "src/http/wire.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace kubeopera::inline v1::http::wire {

namespace {

constexpr std::size_t max_headers = 128;
constexpr std::size_t max_target_bytes = 16u << 10;

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// What the header lines say about framing.
struct framing {
  std::optional<std::uint64_t> length;
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
  bool expect_continue = false;
  std::size_t hosts = 0;
};

std::optional<fault> note_length(std::string_view value, framing& f) {
  if (f.length) return fault{400, "DuplicateContentLength", "more than one Content-Length"};
  std::uint64_t n = 0;
  auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), n);
  if (value.empty() || value.size() > 18 || ec != std::errc() || end != value.data() + value.size()) {
    return fault{400, "BadContentLength", "Content-Length is not a plain number"};
  }
  f.length = n;
  return std::nullopt;
}

void note_connection(std::string_view value, framing& f) {
  while (!value.empty()) {
    auto comma = value.find(',');
    auto option = trim(value.substr(0, comma));
    if (iequals(option, "close")) f.close = true;
    if (iequals(option, "keep-alive")) f.keep_alive = true;
    value.remove_prefix(comma == std::string_view::npos ? value.size() : comma + 1);
  }
}

// host or [v6], and perhaps a port (RFC 9110 section 7.2).
bool is_host(std::string_view value) {
  auto all = [](std::string_view s, auto fits) { return !s.empty() && std::all_of(s.begin(), s.end(), fits); };
  bool bracketed = !value.empty() && value.front() == '[';
  auto end = bracketed ? value.find(']') : value.find(':');
  auto host = value.substr(0, end);
  if (bracketed) {
    if (end == std::string_view::npos || !all(host.substr(1), [](char c) { return hex_value(c) >= 0 || c == ':' || c == '.'; }))
      return false;
    value.remove_prefix(end + 1);
  } else {
    if (!all(host, [](char c) { return is_alpha(c) || is_digit(c) || c == '-' || c == '.' || c == '_'; })) return false;
    value.remove_prefix(host.size());
  }
  return value.empty() || (value.front() == ':' && value.size() <= 6 && all(value.substr(1), is_digit));
}

std::optional<fault> note(std::string_view name, std::string_view value, framing& f) {
  switch (name.size()) {
    case 4:
      if (!iequals(name, "host")) return std::nullopt;
      ++f.hosts;
      if (!is_host(value)) return fault{400, "BadHost", "the Host header is not a host and port"};
      return std::nullopt;
    case 6:
      if (!iequals(name, "expect")) return std::nullopt;
      if (!iequals(value, "100-continue")) return fault{417, "ExpectationFailed", "only 100-continue can be expected"};
      f.expect_continue = true;
      return std::nullopt;
    case 10:
      if (iequals(name, "connection")) note_connection(value, f);
      return std::nullopt;
    case 14:
      return iequals(name, "content-length") ? note_length(value, f) : std::nullopt;
    case 17:
      if (!iequals(name, "transfer-encoding")) return std::nullopt;
      if (f.chunked || !iequals(value, "chunked")) {
        return fault{400, "BadTransferEncoding", "Transfer-Encoding is not exactly chunked"};
      }
      f.chunked = true;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// "Content_Length": gateways that turn names into variables take it for the real one.
bool is_framing_alias(std::string_view name) {
  if (name.find_first_of("_.") == std::string_view::npos || (name.size() != 14 && name.size() != 17)) return false;
  auto plain = to_lower(name);
  std::replace_if(plain.begin(), plain.end(), [](char c) { return c == '_' || c == '.'; }, '-');
  return plain == "content-length" || plain == "transfer-encoding";
}

std::optional<fault> parse_header_line(std::string_view line, fields& out, framing& f) {
  if (line.front() == ' ' || line.front() == '\t') return fault{400, "FoldedHeader", "a header line is folded"};
  auto colon = line.find(':');
  if (colon == std::string_view::npos) return fault{400, "BadHeader", "a header line has no colon"};
  auto name = line.substr(0, colon);
  if (!is_token(name)) return fault{400, "BadHeaderName", "a header name holds a character that it may not"};
  if (is_framing_alias(name)) return fault{400, "BadHeaderName", "a header's name could be read as one that frames the body"};
  auto value = trim(line.substr(colon + 1));
  if (!is_field_value(value)) return fault{400, "BadHeaderValue", "a header value holds a control character"};
  if (auto bad = note(name, value, f)) return bad;
  out.add(std::string(name), std::string(value));
  return std::nullopt;
}

// lines: header lines, each with its CRLF, and the empty line at the end.
std::optional<fault> parse_headers(std::string_view lines, fields& out, framing& f) {
  for (std::size_t count = 0;; ++count) {
    auto end = lines.find("\r\n");
    if (end == std::string_view::npos) return fault{400, "BadHead", "the head is not complete"};
    if (end == 0) return lines.size() == 2 ? std::nullopt : std::optional(fault{400, "BadHead", "text after the head"});
    if (count == max_headers) return fault{431, "TooManyHeaders", "more than 128 header lines"};
    if (auto bad = parse_header_line(lines.substr(0, end), out, f)) return bad;
    lines.remove_prefix(end + 2);
  }
}

std::optional<fault> parse_version(std::string_view version, bool& http_1_0) {
  http_1_0 = version == "HTTP/1.0";
  if (http_1_0 || version == "HTTP/1.1") return std::nullopt;
  bool shaped =
      version.size() == 8 && version.substr(0, 5) == "HTTP/" && is_digit(version[5]) && version[6] == '.' && is_digit(version[7]);
  if (shaped) return fault{505, "HttpVersion", "only HTTP/1.1 and HTTP/1.0 are spoken here"};
  return fault{400, "BadRequestLine", "the request line has no HTTP version"};
}

std::optional<fault> parse_request_line(std::string_view line, request_head& out) {
  auto first = line.find(' ');
  auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return fault{400, "BadRequestLine", "the request line has not three parts"};
  auto method = line.substr(0, first);
  auto target = line.substr(first + 1, last - first - 1);
  if (!is_token(method)) return fault{400, "BadMethod", "the method is not a token"};
  if (auto bad = parse_version(line.substr(last + 1), out.http_1_0)) return bad;
  if (method == "CONNECT") return fault{405, "MethodNotAllowed", "CONNECT is not served"};
  if (target.size() > max_target_bytes) return fault{414, "TargetTooLong", "the target is too long"};
  if (target.empty() || target.front() != '/') return fault{400, "NotOriginForm", "the target must begin with a slash"};
  bool clean = std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (!clean) return fault{400, "BadTarget", "the target holds a byte that must be percent-encoded"};
  out.method = method;
  out.target = target;
  return std::nullopt;
}

}  // namespace

std::size_t head_scanner::scan(std::string_view buffer, std::size_t limit, std::optional<fault>& bad) {
  while (scanned_ < buffer.size()) {
    const char* start = buffer.data() + scanned_;
    const auto* lf = static_cast<const char*>(std::memchr(start, '\n', buffer.size() - scanned_));
    std::size_t end = lf ? static_cast<std::size_t>(lf - buffer.data()) : buffer.size();
    if (end > limit) {
      bad = fault{431, "HeadTooLarge", "the head is too large"};
      return 0;
    }
    scanned_ = lf ? end + 1 : end;
    if (!lf) break;
    auto line = buffer.substr(line_, end - line_);
    if (line.empty() || line.back() != '\r') {
      bad = fault{400, "BareLineFeed", "a line ends in LF without CR"};
      return 0;
    }
    line.remove_suffix(1);
    if (line.find('\r') != std::string_view::npos || line.find('\0') != std::string_view::npos) {
      bad = fault{400, "StrayControl", "a line holds a CR or NUL"};
      return 0;
    }
    bool first = line_ == 0;
    line_ = end + 1;
    if (line.empty() && first) {
      bad = fault{400, "EmptyLine", "the head begins with an empty line"};
      return 0;
    }
    if (line.empty()) return end + 1;
  }
  return 0;
}

std::optional<fault> parse_request_head(std::string_view head, request_head& out) {
  auto end = head.find("\r\n");
  if (end == std::string_view::npos) return fault{400, "BadRequestLine", "the request line is not complete"};
  if (auto bad = parse_request_line(head.substr(0, end), out)) return bad;
  framing f;
  if (auto bad = parse_headers(head.substr(end + 2), out.headers, f)) return bad;
  if (f.hosts > 1 || (f.hosts == 0 && !out.http_1_0)) return fault{400, "BadHost", "there must be exactly one Host header"};
  if (f.chunked && f.length) return fault{400, "AmbiguousLength", "both Transfer-Encoding and Content-Length"};
  if (f.chunked && out.http_1_0) return fault{400, "BadTransferEncoding", "HTTP/1.0 has no Transfer-Encoding"};
  out.body = f.chunked ? body_kind::chunked : f.length.value_or(0) > 0 ? body_kind::length : body_kind::none;
  out.content_length = f.length.value_or(0);
  out.keep_alive = !f.close && (!out.http_1_0 || f.keep_alive);
  out.expect_continue = f.expect_continue && !out.http_1_0 && out.body != body_kind::none;
  return std::nullopt;
}

std::optional<fault> parse_response_head(std::string_view head, bool to_head, response_head& out) {
  fault malformed{502, "BadStatusLine", "the status line cannot be read"};
  auto end = head.find("\r\n");
  if (end == std::string_view::npos || end < 12) return malformed;
  auto line = head.substr(0, end);
  out.http_1_0 = line.substr(0, 9) == "HTTP/1.0 ";
  if (!out.http_1_0 && line.substr(0, 9) != "HTTP/1.1 ") return malformed;
  auto [stop, ec] = std::from_chars(line.data() + 9, line.data() + 12, out.status);
  if (ec != std::errc() || stop != line.data() + 12 || out.status < 100 || (line.size() > 12 && line[12] != ' '))
    return malformed;
  framing f;
  if (auto bad = parse_headers(head.substr(end + 2), out.headers, f)) return bad;
  if (f.chunked && f.length) return fault{502, "AmbiguousLength", "both Transfer-Encoding and Content-Length"};
  out.content_length = f.length.value_or(0);
  if (to_head || out.status < 200 || out.status == 204 || out.status == 304) {
    out.body = body_kind::none;
  } else if (f.chunked) {
    out.body = body_kind::chunked;
  } else if (f.length) {
    out.body = *f.length > 0 ? body_kind::length : body_kind::none;
  } else {
    out.body = body_kind::until_close;
  }
  out.keep_alive = !f.close && (!out.http_1_0 || f.keep_alive) && out.body != body_kind::until_close;
  return std::nullopt;
}

}  // namespace kubeopera::inline v1::http::wire
