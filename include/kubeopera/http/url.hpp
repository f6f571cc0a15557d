// Targets and URLs, read strictly: what is accepted has one meaning to every peer. Never normalises.
#pragma once

#include <kubeopera/core/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::http {

/// An origin-form target taken apart. "/a/b%20c?x=1&y" has segments {"a","b c"} and query {{"x","1"},{"y",""}}.
struct target {
  target() = default;
  std::vector<std::string> segments;                       ///< decoded; "/" has none, "/a/" has {"a",""}
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in order, duplicates kept ('+' is a space)
  std::string_view raw_path;                               ///< views of what was parsed
  std::string_view raw_query;                              ///< without '?'
  /// First value of a query parameter.
  std::optional<std::string_view> get(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept;
};

/// Reads an origin-form target.
/// Errors: invalid_argument with a reason: NotOriginForm, ControlCharacter, Backslash, Semicolon, EncodedNul, EncodedSlash,
/// EncodedBackslash, EncodedDot, DoubleEncoding, DotSegment, EmptySegment, BadEncoding, NotUtf8, Fragment, TargetTooLong (8 KiB).
/// Lifetime: raw_path and raw_query view text. In the query, %2F, %25 and the like are data and allowed; control characters are
/// not.
result<target> parse_target(std::string_view text);

/// Percent-encodes everything but unreserved characters (RFC 3986 section 2.3).
std::string percent_encode(std::string_view text);
/// Strict percent-decoding; plus_is_space as in queries. Errors: invalid_argument (BadEncoding).
result<std::string> percent_decode(std::string_view text, bool plus_is_space = false);
/// "a=1&b=x%20y", encoded.
std::string encode_query(const std::vector<std::pair<std::string, std::string>>& pairs);

/// An absolute http or https URL.
struct url {
  url() = default;
  std::string scheme;      ///< "http" or "https"
  std::string host;        ///< lower case; IPv6 without brackets
  std::uint16_t port = 0;  ///< 80 or 443 where not written
  bool explicit_port = false;
  std::string target;  ///< path and query, still encoded; at least "/"
  bool host_is_address = false;
  bool tls() const noexcept { return scheme == "https"; }
  /// Host header: host, with brackets and with a port that is not the default.
  std::string authority() const;
  /// "https://host:port" without the target.
  std::string origin() const { return scheme + "://" + authority(); }
};

/// Errors: invalid_argument with a reason: BadScheme, UserInfo, BadHost, BadPort, Fragment, or one of parse_target. A host of
/// digits, dots and hex that is not a strict dotted quad is BadHost.
result<url> parse_url(std::string_view text);

}  // namespace kubeopera::inline v1::http
