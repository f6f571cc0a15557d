// LZ77 by a small hash table, greedy, and the fixed Huffman codes. Formats: RFC 1950, RFC 1951 (section 3.2.6).
#include "src/gitops/small_deflate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <libdeflate.h>
#include <utility>

namespace kubeopera::inline v1::gitops::detail {

namespace {

// Bits as they are sent: the first in the lowest place.
struct code {
  std::uint32_t bits = 0;
  std::uint32_t count = 0;
};

constexpr std::uint32_t reversed(std::uint32_t value, std::uint32_t count) {
  std::uint32_t out = 0;
  for (std::uint32_t i = 0; i < count; ++i) out |= (value >> i & 1) << (count - 1 - i);
  return out;
}

constexpr code symbol(std::uint32_t s) {
  if (s < 144) return {reversed(0x30 + s, 8), 8};
  if (s < 256) return {reversed(0x190 + s - 144, 9), 9};
  if (s < 280) return {reversed(s - 256, 7), 7};
  return {reversed(0xc0 + s - 280, 8), 8};
}

constexpr std::size_t min_match = 4, max_match = 258, window = 32768;
constexpr unsigned hash_bits = 12;

constexpr auto literals = [] {
  std::array<code, 256> out{};
  for (std::uint32_t s = 0; s < 256; ++s) out[s] = symbol(s);
  return out;
}();

// By length of the match: its symbol and extra bits in one.
constexpr auto lengths = [] {
  std::array<code, max_match + 1> out{};
  std::uint32_t length = 3;
  for (std::uint32_t s = 257; s < 285; ++s) {
    std::uint32_t extra = s < 265 ? 0 : (s - 261) / 4;
    for (std::uint32_t value = 0; value < 1u << extra && length < max_match; ++value, ++length) {
      auto c = symbol(s);
      out[length] = {c.bits | value << c.count, c.count + extra};
    }
  }
  out[max_match] = symbol(285);
  return out;
}();

code distance_code(std::uint32_t distance) {
  auto d = distance - 1;
  if (d < 4) return {reversed(d, 5), 5};
  auto extra = static_cast<std::uint32_t>(std::bit_width(d)) - 2;
  auto s = 2 * extra + (d >> extra);
  return {reversed(s, 5) | (d & ((1u << extra) - 1)) << 5, 5 + extra};
}

class bit_writer {
 public:
  explicit bit_writer(char* at) : at_(at) {}
  // At most 32 bits at a time.
  void put(code c) {
    held_ |= std::uint64_t(c.bits) << count_;
    count_ += c.count;
    if (count_ < 32) return;
    std::memcpy(at_, &held_, 4);
    at_ += 4;
    held_ >>= 32;
    count_ -= 32;
  }
  void put_literals(const char* from, const char* to) {
    for (; to - from >= 2; from += 2) {
      auto first = literals[static_cast<unsigned char>(from[0])], second = literals[static_cast<unsigned char>(from[1])];
      put({first.bits | second.bits << first.count, first.count + second.count});
    }
    if (from < to) put(literals[static_cast<unsigned char>(*from)]);
  }
  char* finish() {
    std::memcpy(at_, &held_, 8);
    return at_ + (count_ + 7) / 8;
  }

 private:
  static_assert(std::endian::native == std::endian::little);
  char* at_;
  std::uint64_t held_ = 0;
  std::uint32_t count_ = 0;
};

std::uint32_t load32(const char* at) {
  std::uint32_t out;
  std::memcpy(&out, at, 4);
  return out;
}

std::size_t match_length(const char* a, const char* b, const char* end) {
  const char* begin = b;
  end = std::min(end, b + max_match);
  while (b < end && *a == *b) ++a, ++b;
  return static_cast<std::size_t>(b - begin);
}

void compress(std::string_view content, bit_writer& out) {
  std::array<std::uint16_t, 1u << hash_bits> last{};  // position + 1 of what hashed there
  const char* begin = content.data();
  const char* end = begin + content.size();
  const char* at = begin;
  while (end - at >= static_cast<std::ptrdiff_t>(min_match)) {
    auto word = load32(at);
    auto& slot = last[word * 2654435761u >> (32 - hash_bits)];
    const char* before = begin + slot - 1;
    bool known = slot && static_cast<std::size_t>(at - before) <= window && load32(before) == word;
    slot = static_cast<std::uint16_t>(at - begin + 1);
    if (!known) {
      out.put(literals[static_cast<unsigned char>(*at++)]);
      continue;
    }
    auto length = match_length(before, at, end);
    out.put(lengths[length]);
    out.put(distance_code(static_cast<std::uint32_t>(at - before)));
    at += length;
  }
  out.put_literals(at, end);
}

void compress_tree(std::string_view tree, bit_writer& out) {
  const char *at = tree.data(), *end = at + tree.size(), *before = nullptr;
  while (at < end) {
    const auto* nul = static_cast<const char*>(std::memchr(at, 0, static_cast<std::size_t>(end - at)));
    const char* next = nul && end - nul > 21 ? nul + 21 : end;
    auto same = before && static_cast<std::size_t>(at - before) <= window ? match_length(before, at, nul ? nul : end) : 0;
    if (same >= min_match) {
      out.put(lengths[same]);
      out.put(distance_code(static_cast<std::uint32_t>(at - before)));
    } else {
      same = 0;
    }
    out.put_literals(at + same, next);
    before = std::exchange(at, next);
  }
}

template <class Compress>
void append_stream(std::string& out, std::string_view content, Compress compress_into) {
  auto start = out.size();
  out.resize(start + 2 + content.size() * 9 / 8 + 32);
  char* at = out.data() + start;
  *at++ = 0x78;
  *at++ = 0x01;
  bit_writer bits(at);
  bits.put({3, 3});  // the last block, fixed codes
  compress_into(content, bits);
  bits.put(symbol(256));
  at = bits.finish();
  auto sum = libdeflate_adler32(1, content.data(), content.size());
  for (int shift = 24; shift >= 0; shift -= 8) *at++ = static_cast<char>(sum >> shift);
  out.resize(static_cast<std::size_t>(at - out.data()));
}

}  // namespace

void append_small_deflate(std::string& out, std::string_view content) { append_stream(out, content, compress); }

void append_tree_deflate(std::string& out, std::string_view tree) { append_stream(out, tree, compress_tree); }

}  // namespace kubeopera::inline v1::gitops::detail
