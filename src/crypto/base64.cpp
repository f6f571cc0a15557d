// Base64 in both alphabets. One encoding only is accepted for each byte string.
#include <kubeopera/crypto/hash.hpp>

#include <array>

namespace kubeopera::inline v1::crypto {

namespace {

constexpr char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char url_safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::uint8_t, 256> reverse_of(const char* alphabet) {
  std::array<std::uint8_t, 256> out{};
  out.fill(0xff);
  for (std::uint8_t i = 0; i < 64; ++i) out[static_cast<unsigned char>(alphabet[i])] = i;
  return out;
}
constexpr auto standard_reverse = reverse_of(standard);
constexpr auto url_reverse = reverse_of(url_safe);

std::string encode(std::string_view data, const char* alphabet, bool pad) {
  std::string out;
  out.reserve((data.size() + 2) / 3 * 4);
  std::size_t i = 0;
  auto at = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(data[k])); };
  for (; i + 3 <= data.size(); i += 3) {
    auto v = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    const char four[] = {alphabet[v >> 18], alphabet[v >> 12 & 63], alphabet[v >> 6 & 63], alphabet[v & 63]};
    out.append(four, 4);
  }
  if (auto left = data.size() - i; left == 1) {
    auto v = at(i) << 16;
    out += {alphabet[v >> 18], alphabet[v >> 12 & 63]};
    if (pad) out += "==";
  } else if (left == 2) {
    auto v = at(i) << 16 | at(i + 1) << 8;
    out += {alphabet[v >> 18], alphabet[v >> 12 & 63], alphabet[v >> 6 & 63]};
    if (pad) out += '=';
  }
  return out;
}

error bad(const char* message) { return {errc::invalid_argument, "BadBase64", message}; }

// Four characters a step; the values of bad characters have their top bit set, so one test a step finds them.
std::optional<std::size_t> decode_into(std::string_view text, const std::array<std::uint8_t, 256>& reverse, char* out) noexcept {
  const auto* in = reinterpret_cast<const unsigned char*>(text.data());
  char* to = out;
  std::size_t left = text.size();
  for (; left >= 4; left -= 4, in += 4) {
    std::uint32_t a = reverse[in[0]], b = reverse[in[1]], c = reverse[in[2]], d = reverse[in[3]];
    if ((a | b | c | d) & 0x80) return std::nullopt;
    auto v = a << 18 | b << 12 | c << 6 | d;
    *to++ = static_cast<char>(v >> 16);
    *to++ = static_cast<char>(v >> 8);
    *to++ = static_cast<char>(v);
  }
  if (left == 0) return static_cast<std::size_t>(to - out);
  if (left == 1) return std::nullopt;
  std::uint32_t a = reverse[in[0]], b = reverse[in[1]], c = left == 3 ? reverse[in[2]] : 0;
  if ((a | b | c) & 0x80) return std::nullopt;
  auto v = a << 18 | b << 12 | c << 6;
  if (v & (left == 2 ? 0xffff : 0xff)) return std::nullopt;  // unused bits
  *to++ = static_cast<char>(v >> 16);
  if (left == 3) *to++ = static_cast<char>(v >> 8);
  return static_cast<std::size_t>(to - out);
}

result<std::string> decode(std::string_view text, const std::array<std::uint8_t, 256>& reverse) {
  std::string out(text.size() / 4 * 3 + 3, '\0');
  auto size = decode_into(text, reverse, out.data());
  if (!size) return bad("a character outside the alphabet, an impossible length, or unused bits that are not zero");
  out.resize(*size);
  return out;
}

}  // namespace

std::string base64_encode(std::string_view data) { return encode(data, standard, true); }
std::string base64url_encode(std::string_view data) { return encode(data, url_safe, false); }

result<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0) return bad("the length is not a multiple of four");
  if (text.ends_with("=="))
    text.remove_suffix(2);
  else if (text.ends_with('='))
    text.remove_suffix(1);
  return decode(text, standard_reverse);
}

result<std::string> base64url_decode(std::string_view text) { return decode(text, url_reverse); }

std::optional<std::size_t> base64url_decode_into(std::string_view text, char* out) noexcept {
  return decode_into(text, url_reverse, out);
}

}  // namespace kubeopera::inline v1::crypto
