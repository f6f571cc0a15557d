// Exact quantities in 128-bit nano-units.
#include <kubeopera/manifest/quantity.hpp>

#include <array>
#include <limits>
#include <optional>

namespace kubeopera::inline v1::manifest {
namespace {

using wide = __int128;
constexpr wide nano = 1'000'000'000;
constexpr wide top = (static_cast<wide>(1) << 126);

struct scale {
  int tens = 0;
  int twos = 0;
  quantity::suffixes format = quantity::suffixes::decimal_si;
};

std::optional<scale> read_suffix(std::string_view s) {
  using f = quantity::suffixes;
  constexpr std::string_view si = "num kMGTPE";
  constexpr std::string_view binary = "KMGTPE";
  if (s.empty()) return scale{};
  if (s.size() == 1 && s != " ") {
    auto i = si.find(s[0]);
    if (i != std::string_view::npos) return scale{(static_cast<int>(i) - 3) * 3, 0, f::decimal_si};
  }
  if (s.size() == 2 && s[1] == 'i') {
    auto i = binary.find(s[0]);
    if (i != std::string_view::npos) return scale{0, (static_cast<int>(i) + 1) * 10, f::binary_si};
  }
  if ((s[0] == 'e' || s[0] == 'E') && s.size() > 1) {
    s.remove_prefix(1);
    bool negative = s[0] == '-';
    if (s[0] == '-' || s[0] == '+') s.remove_prefix(1);
    if (s.empty() || s.size() > 3) return std::nullopt;
    int e = 0;
    for (char c : s) {
      if (c < '0' || c > '9') return std::nullopt;
      e = e * 10 + (c - '0');
    }
    return scale{negative ? -e : e, 0, f::decimal_exponent};
  }
  return std::nullopt;
}

error bad(std::string_view text, const char* why) {
  return error(errc::invalid_argument, "InvalidQuantity", "\"" + std::string(text.substr(0, 40)) + "\" " + why);
}

// a times 10^tens times 2^twos, rounded away from zero; nullopt when it does not fit.
std::optional<wide> scaled(wide a, int tens, int twos) {
  for (; twos > 0; --twos) {
    if (a > top / 2) return std::nullopt;
    a *= 2;
  }
  for (; tens > 0; --tens) {
    if (a > top / 10) return std::nullopt;
    a *= 10;
  }
  bool rest = false;
  for (; tens < 0 && a != 0; ++tens) {
    rest = rest || a % 10 != 0;
    a /= 10;
  }
  return a + (rest ? 1 : 0);
}

std::string digits(wide v) {
  if (v == 0) return "0";
  bool negative = v < 0;
  if (negative) v = -v;
  std::string out;
  for (; v != 0; v /= 10) out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(v % 10)));
  return negative ? "-" + out : out;
}

wide divide_up(wide a, wide b) {
  wide q = a / b;
  return a % b == 0 ? q : a > 0 ? q + 1 : q - 1;
}

std::int64_t saturate(wide v) {
  constexpr wide high = std::numeric_limits<std::int64_t>::max();
  constexpr wide low = std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(v > high ? high : v < low ? low : v);
}

}  // namespace

result<quantity> quantity::parse(std::string_view text) {
  auto s = text;
  bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) s.remove_prefix(1);
  wide mantissa = 0;
  int fraction = 0;
  bool any = false;
  bool dot = false;
  std::size_t i = 0;
  for (; i < s.size() && ((s[i] >= '0' && s[i] <= '9') || (s[i] == '.' && !dot)); ++i) {
    if (s[i] == '.') {
      dot = true;
      continue;
    }
    any = true;
    if (mantissa > top / 10) return bad(text, "has too many digits");
    mantissa = mantissa * 10 + (s[i] - '0');
    fraction += dot ? 1 : 0;
  }
  if (!any) return bad(text, "is not a quantity like 250m, 1.5 or 512Mi");
  auto suffix = read_suffix(s.substr(i));
  if (!suffix) return bad(text, "has an unknown suffix; use m, k, M, G, Ki, Mi, Gi ...");
  auto nanos = scaled(mantissa, 9 + suffix->tens - fraction, suffix->twos);
  if (!nanos) return bad(text, "is out of range");
  quantity q;
  q.nanos_ = negative ? -*nanos : *nanos;
  q.format_ = suffix->format;
  return q;
}

std::int64_t quantity::units() const noexcept { return saturate(divide_up(nanos_, nano)); }
std::int64_t quantity::milli() const noexcept { return saturate(divide_up(nanos_, nano / 1000)); }

std::string quantity::str() const {
  if (nanos_ == 0) return "0";
  wide magnitude = nanos_ < 0 ? -nanos_ : nanos_;
  if (format_ == suffixes::binary_si && magnitude >= 1024 * nano) {
    wide whole = divide_up(nanos_, nano);
    std::size_t k = 0;
    constexpr std::array<const char*, 7> names{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    for (; k + 1 < names.size() && whole % 1024 == 0; ++k) whole /= 1024;
    return digits(whole) + names[k];
  }
  wide value = nanos_;
  int tens = -9;
  for (; tens < 18 && value % 1000 == 0; tens += 3) value /= 1000;
  if (format_ == suffixes::decimal_exponent) return digits(value) + (tens == 0 ? "" : "e" + std::to_string(tens));
  constexpr std::array<const char*, 10> names{"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  return digits(value) + names[static_cast<std::size_t>(tens / 3 + 3)];
}

quantity& quantity::operator+=(const quantity& other) noexcept {
  if (nanos_ == 0) format_ = other.format_;
  nanos_ += other.nanos_;
  return *this;
}

}  // namespace kubeopera::inline v1::manifest
