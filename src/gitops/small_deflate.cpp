// LZ77, greedy, with Huffman codes that are known beforehand. Formats: RFC 1950, RFC 1951 (sections 3.2.2 to 3.2.7).
#include "src/gitops/small_deflate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <libdeflate.h>
#include <span>
#include <utility>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

namespace {

// Bits as they are sent: the first in the lowest place.
struct code {
  std::uint32_t bits = 0;
  std::uint32_t count = 0;
};

constexpr std::size_t min_match = 4, max_match = 258, window = 32768;
constexpr std::size_t symbols = 286, distances = 30;
constexpr unsigned hash_bits = 12;

std::uint32_t reversed(std::uint32_t value, std::uint32_t count) {
  std::uint32_t out = 0;
  for (std::uint32_t i = 0; i < count; ++i) out |= (value >> i & 1) << (count - 1 - i);
  return out;
}

// The codes that go with lengths: shorter ones first, among equals in order of the symbols.
std::vector<code> codes_of(std::span<const std::uint8_t> bits_of_symbol) {
  std::vector<code> out(bits_of_symbol.size());
  std::uint32_t next = 0;
  for (std::uint32_t bits = 1; bits <= 15; ++bits, next <<= 1)
    for (std::size_t s = 0; s < out.size(); ++s)
      if (bits_of_symbol[s] == bits) out[s] = {reversed(next++, bits), bits};
  return out;
}

// A set of codes, ready for use.
struct code_table {
  std::vector<code> head;  // what a block begins with
  std::array<code, 256> literals;
  std::array<code, max_match + 1> lengths;  // by length of the match, extra bits included
  std::array<code, distances> distance;     // by symbol, without the extra bits
  code end;

  code_table(std::span<const std::uint8_t> symbol_bits, std::span<const std::uint8_t> distance_bits) {
    auto all = codes_of(symbol_bits);
    std::copy_n(all.begin(), 256, literals.begin());
    end = all[256];
    std::uint32_t length = 3;
    for (std::uint32_t s = 257; s < 285; ++s) {
      std::uint32_t extra = s < 265 ? 0 : (s - 261) / 4;
      for (std::uint32_t value = 0; value < 1u << extra && length < max_match; ++value, ++length)
        lengths[length] = {all[s].bits | value << all[s].count, all[s].count + extra};
    }
    lengths[max_match] = all[285];
    auto far = codes_of(distance_bits);
    std::copy_n(far.begin(), distances, distance.begin());
  }

  code distance_of(std::size_t far) const {
    auto d = static_cast<std::uint32_t>(far - 1);
    if (d < 4) return distance[d];
    auto extra = static_cast<std::uint32_t>(std::bit_width(d)) - 2;
    auto c = distance[2 * extra + (d >> extra)];
    return {c.bits | (d & ((1u << extra) - 1)) << c.count, c.count + extra};
  }
};

// The codes that RFC 1951 fixes: nothing needs to be said of them.
const code_table& fixed_codes() {
  static const code_table table = [] {
    std::array<std::uint8_t, 288> bits;
    for (std::size_t s = 0; s < bits.size(); ++s) bits[s] = s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8;
    std::array<std::uint8_t, 32> far;
    far.fill(5);
    code_table out(bits, far);
    out.head = {{3, 3}};  // the last block, fixed codes
    return out;
  }();
  return table;
}

// How a block says which codes it uses: their lengths, with runs of equal ones shortened.
std::vector<code> head_of(std::span<const std::uint8_t> symbol_bits, std::span<const std::uint8_t> distance_bits) {
  constexpr std::array<std::uint8_t, 19> order = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  constexpr std::uint8_t again = 16;
  std::array<std::uint8_t, 19> bits{};
  bits[again] = bits[8] = 2;
  bits[9] = bits[14] = 3;
  bits[7] = bits[13] = 4;
  bits[1] = bits[2] = bits[3] = bits[5] = 5;
  auto words = codes_of(bits);
  std::vector<code> out = {{5, 3}, {symbols - 257, 5}, {distances - 1, 5}, {order.size() - 4, 4}};  // the last block, own codes
  for (auto s : order) out.push_back({bits[s], 3});
  std::vector<std::uint8_t> all(symbol_bits.begin(), symbol_bits.end());
  all.insert(all.end(), distance_bits.begin(), distance_bits.end());
  for (std::size_t at = 0; at < all.size();) {
    auto value = all[at];
    auto end = at;
    while (end < all.size() && all[end] == value) ++end;
    out.push_back(words[value]);
    for (++at; end - at >= 3;) {
      auto times = std::min<std::size_t>(end - at, 6);
      out.push_back(words[again]);
      out.push_back({static_cast<std::uint32_t>(times) - 3, 2});
      at += times;
    }
    for (; at < end; ++at) out.push_back(words[value]);
  }
  return out;
}

// Codes for trees of many entries: ids are even noise, and between them stand a match of the mode (and the first letter or the
// common beginning of the name) with the entry before, a letter or two and a zero.
const code_table& tree_codes() {
  static const code_table table = [] {
    std::array<std::uint8_t, symbols> bits;
    bits.fill(8);
    bits[0] = 5;
    std::fill(bits.begin() + 128, bits.begin() + 128 + 49, std::uint8_t(9));  // bytes that names do not hold
    std::fill(bits.begin() + 256, bits.begin() + 260, std::uint8_t(13));      // the end, and matches of 3 to 5
    bits[260] = 7;
    bits[261] = 5;              // seven bytes: "40000 " and a letter
    bits[265] = bits[266] = 7;  // 11 to 14
    std::fill(bits.begin() + 267, bits.begin() + 272, std::uint8_t(13));
    std::fill(bits.begin() + 272, bits.end(), std::uint8_t(14));
    std::array<std::uint8_t, distances> far;
    far.fill(8);
    std::fill(far.begin(), far.begin() + 5, std::uint8_t(7));
    far[9] = 1;   // 25 to 32
    far[10] = 2;  // 33 to 48
    far[11] = 3;  // 49 to 64
    code_table out(bits, far);
    out.head = head_of(bits, far);
    return out;
  }();
  return table;
}

class bit_writer {
 public:
  bit_writer(char* at, const code_table& codes) : codes_(codes), at_(at) {}
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
      auto first = codes_.literals[static_cast<unsigned char>(from[0])],
           second = codes_.literals[static_cast<unsigned char>(from[1])];
      put({first.bits | second.bits << first.count, first.count + second.count});
    }
    if (from < to) put(codes_.literals[static_cast<unsigned char>(*from)]);
  }
  void put_match(std::size_t length, std::size_t distance) {
    put(codes_.lengths[length]);
    put(codes_.distance_of(distance));
  }
  char* finish() {
    std::memcpy(at_, &held_, 8);
    return at_ + (count_ + 7) / 8;
  }

 private:
  static_assert(std::endian::native == std::endian::little);
  const code_table& codes_;
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
  if (static_cast<std::size_t>(end - b) > max_match) end = b + max_match;
  while (b < end && *a == *b) ++a, ++b;
  return static_cast<std::size_t>(b - begin);
}

void compress(std::string_view content, bit_writer& out) {
  std::array<std::uint16_t, 1u << hash_bits> last{};  // position + 1 of what hashed there
  const char* begin = content.data();
  const char* end = begin + content.size();
  const char *at = begin, *literals = begin;
  while (end - at >= static_cast<std::ptrdiff_t>(min_match)) {
    auto word = load32(at);
    auto& slot = last[word * 2654435761u >> (32 - hash_bits)];
    const char* before = begin + slot - 1;
    bool known = slot && static_cast<std::size_t>(at - before) <= window && load32(before) == word;
    slot = static_cast<std::uint16_t>(at - begin + 1);
    if (!known) {
      ++at;
      continue;
    }
    out.put_literals(literals, at);
    auto length = match_length(before, at, end);
    out.put_match(length, static_cast<std::size_t>(at - before));
    at += length;
    literals = at;
  }
  out.put_literals(literals, end);
}

void compress_tree(std::string_view tree, bit_writer& out) {
  const char *at = tree.data(), *end = at + tree.size(), *before = nullptr;
  while (at < end) {
    const auto* nul = static_cast<const char*>(std::memchr(at, 0, static_cast<std::size_t>(end - at)));
    const char* next = nul && end - nul > 21 ? nul + 21 : end;
    auto same = before && static_cast<std::size_t>(at - before) <= window ? match_length(before, at, nul ? nul : end) : 0;
    if (same >= min_match)
      out.put_match(same, static_cast<std::size_t>(at - before));
    else
      same = 0;
    out.put_literals(at + same, next);
    before = std::exchange(at, next);
  }
}

template <class Compress>
void append_stream(std::string& out, std::string_view content, const code_table& codes, Compress compress_into) {
  auto start = out.size();
  out.resize(start + 2 + content.size() * 9 / 8 + 256);  // no byte takes more than nine bits, no match more than its bytes would
  char* at = out.data() + start;
  *at++ = 0x78;
  *at++ = 0x01;
  bit_writer bits(at, codes);
  for (auto c : codes.head) bits.put(c);
  compress_into(content, bits);
  bits.put(codes.end);
  at = bits.finish();
  auto sum = libdeflate_adler32(1, content.data(), content.size());
  for (int shift = 24; shift >= 0; shift -= 8) *at++ = static_cast<char>(sum >> shift);
  out.resize(static_cast<std::size_t>(at - out.data()));
}

}  // namespace

void append_small_deflate(std::string& out, std::string_view content) { append_stream(out, content, fixed_codes(), compress); }

void append_tree_deflate(std::string& out, std::string_view tree) {
  constexpr std::size_t many_entries = 1000;  // bytes; from there on the codes are worth their head
  append_stream(out, tree, tree.size() < many_entries ? fixed_codes() : tree_codes(), compress_tree);
}

}  // namespace kubeopera::inline v1::gitops::detail
