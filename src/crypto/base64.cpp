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

result<std::string> decode(std::string_view text, const std::array<std::uint8_t, 256>& reverse) {
  if (text.size() % 4 == 1) return bad("the length is impossible");
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int have = 0;
  for (char c : text) {
    auto v = reverse[static_cast<unsigned char>(c)];
    if (v == 0xff) return bad("a character outside the alphabet");
    bits = bits << 6 | v;
    have += 6;
    if (have >= 8) {
      have -= 8;
      out += static_cast<char>(bits >> have & 0xff);
    }
  }
  if (bits & ((1u << have) - 1)) return bad("unused bits are not zero");
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

}  // namespace kubeopera::inline v1::crypto
