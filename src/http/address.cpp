// IP address text, networks, and the public-internet policy.
#include "src/http/text.hpp"

#include <kubeopera/http/address.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstring>

namespace kubeopera::inline v1::http {

namespace {

error bad_address(std::string_view text) {
  return {errc::invalid_argument, "BadAddress", "not an IP address: " + std::string(text.substr(0, 64))};
}

network must(std::string_view text) { return parse_network(text).value(); }

// IANA special-purpose registries (RFC 6890 and its updates).
const std::vector<network>& refused_v4() {
  static const std::vector<network> all = {
      must("0.0.0.0/8"),     must("10.0.0.0/8"),      must("100.64.0.0/10"),  must("127.0.0.0/8"),    must("169.254.0.0/16"),
      must("172.16.0.0/12"), must("192.0.0.0/24"),    must("192.0.2.0/24"),   must("192.88.99.0/24"), must("192.168.0.0/16"),
      must("198.18.0.0/15"), must("198.51.100.0/24"), must("203.0.113.0/24"), must("224.0.0.0/4"),    must("240.0.0.0/4")};
  return all;
}

// Everything outside 2000::/3 is refused as well, which covers the loopback, mapped, local and multicast ranges.
const std::vector<network>& refused_v6() {
  static const std::vector<network> all = {must("2001::/23"), must("2001:db8::/32"), must("2002::/16"), must("3fff::/20")};
  return all;
}

bool in_any(const std::vector<network>& all, const ip_address& address) noexcept {
  return std::any_of(all.begin(), all.end(), [&](const network& n) { return n.contains(address); });
}

}  // namespace

result<ip_address> parse_ip(std::string_view text) {
  ip_address out;
  if (text.size() > INET6_ADDRSTRLEN) return bad_address(text);
  std::string copy(text);
  if (text.find(':') != std::string_view::npos) {
    out.v6 = true;
    if (::inet_pton(AF_INET6, copy.c_str(), out.bytes.data()) != 1 || copy.size() != std::strlen(copy.c_str()))
      return bad_address(text);
    return out;
  }
  const char* at = copy.data();
  const char* end = at + copy.size();
  for (std::size_t i = 0; i < 4; ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return bad_address(text);
    if (at == end || !is_digit(*at) || (*at == '0' && at + 1 != end && is_digit(at[1]))) return bad_address(text);
    auto [next, ec] = std::from_chars(at, end, out.bytes[i]);
    if (ec != std::errc()) return bad_address(text);
    at = next;
  }
  if (at != end) return bad_address(text);
  return out;
}

std::string to_string(const ip_address& address) {
  char buffer[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(address.v6 ? AF_INET6 : AF_INET, address.bytes.data(), buffer, sizeof buffer);
  return buffer;
}

bool network::contains(const ip_address& address) const noexcept {
  if (address.v6 != base.v6) return false;
  for (unsigned bit = 0; bit < prefix; bit += 8) {
    auto i = bit / 8;
    auto mask = static_cast<std::uint8_t>(prefix - bit >= 8 ? 0xff : 0xff << (8 - (prefix - bit)));
    if ((address.bytes[i] & mask) != (base.bytes[i] & mask)) return false;
  }
  return true;
}

result<network> parse_network(std::string_view text) {
  error bad(errc::invalid_argument, "BadNetwork", "not a network: " + std::string(text.substr(0, 64)));
  auto slash = text.find('/');
  if (slash == std::string_view::npos) return bad;
  auto base = parse_ip(text.substr(0, slash));
  if (!base) return bad;
  auto digits = text.substr(slash + 1);
  network out;
  out.base = *base;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), out.prefix);
  if (ec != std::errc() || end != digits.data() + digits.size() || out.prefix > (out.base.v6 ? 128u : 32u)) return bad;
  for (unsigned bit = out.prefix; bit < (out.base.v6 ? 128u : 32u); ++bit) {
    if (out.base.bytes[bit / 8] >> (7 - bit % 8) & 1) return bad;
  }
  return out;
}

bool is_public(const ip_address& address) noexcept {
  if (!address.v6) return !in_any(refused_v4(), address);
  static const network global = must("2000::/3");
  if (!global.contains(address)) return false;
  return !in_any(refused_v6(), address);
}

address_policy public_internet_only(std::vector<network> also) {
  return [also = std::move(also)](const ip_address& address) -> result<void> {
    bool refused = !is_public(address) || in_any(also, address);
    if (!refused) return {};
    return error(errc::permission_denied, "AddressRefused",
                 "the address " + to_string(address) + " is not on the public internet");
  };
}

}  // namespace kubeopera::inline v1::http
