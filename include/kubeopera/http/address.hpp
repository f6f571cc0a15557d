// IP addresses, networks, and which of them a client may connect to.
#pragma once

#include <kubeopera/core/result.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::http {

/// An IPv4 or IPv6 address as bytes in network order; IPv4 uses the first four.
struct ip_address {
  ip_address() = default;
  std::array<std::uint8_t, 16> bytes{};
  bool v6 = false;
  friend bool operator==(const ip_address&, const ip_address&) = default;
};

/// Strict dotted quad (no leading zeros, no short or hex forms) or RFC 4291 text. Errors: invalid_argument (BadAddress).
result<ip_address> parse_ip(std::string_view text);
std::string to_string(const ip_address& address);

struct network {
  network() = default;
  ip_address base;
  unsigned prefix = 0;
  bool contains(const ip_address& address) const noexcept;
};

/// "10.0.0.0/8". Errors: invalid_argument (BadNetwork), also where host bits are set.
result<network> parse_network(std::string_view text);

/// Asked for every address that a host name resolved to, before any connection. An error refuses the whole host.
/// Thread safety: must be callable from any thread.
using address_policy = std::function<result<void>(const ip_address&)>;

/// Refuses whatever is not public internet: private, loopback, link-local, documentation, multicast, reserved, and the IPv6 forms
/// that embed such an IPv4 address; plus also. Errors of the policy: permission_denied (reason AddressRefused).
address_policy public_internet_only(std::vector<network> also = {});
/// True for what public_internet_only() lets through.
bool is_public(const ip_address& address) noexcept;

}  // namespace kubeopera::inline v1::http
