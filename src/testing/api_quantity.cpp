// Quantities ("500m", "1Gi") and times as Go's apimachinery reads and writes them.
#include "src/testing/api_codec.hpp"

#include <kubeopera/core/clock.hpp>

#include <algorithm>

namespace kubeopera::inline v1::testing::api {
namespace {

struct suffix {
  std::string_view text;
  int binary;   // power of two
  int decimal;  // power of ten
};
constexpr suffix suffixes[] = {{"", 0, 0},    {"n", 0, -9},  {"u", 0, -6},  {"m", 0, -3}, {"k", 0, 3},   {"M", 0, 6},
                               {"G", 0, 9},   {"T", 0, 12},  {"P", 0, 15},  {"E", 0, 18}, {"Ki", 10, 0}, {"Mi", 20, 0},
                               {"Gi", 30, 0}, {"Ti", 40, 0}, {"Pi", 50, 0}, {"Ei", 60, 0}};

struct parsed {
  bool ok = false, binary = false, exponent = false;
  __int128 nanos = 0;
};

__int128 power10(int n) {
  __int128 out = 1;
  while (n-- > 0) out *= 10;
  return out;
}

parsed parse(std::string_view text) {
  parsed out;
  bool negative = false;
  std::size_t i = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    i = 1;
  }
  __int128 mantissa = 0;
  int decimals = 0, digits = 0;
  bool point = false;
  for (; i < text.size() && ((text[i] >= '0' && text[i] <= '9') || text[i] == '.'); ++i) {
    if (text[i] == '.') {
      if (point) return out;
      point = true;
      continue;
    }
    if (++digits > 24) return out;
    mantissa = mantissa * 10 + (text[i] - '0');
    if (point) ++decimals;
  }
  if (digits == 0) return out;
  std::string_view tail = text.substr(i);
  int ten = 0, two = 0;
  if (!tail.empty() && (tail[0] == 'e' || tail[0] == 'E') && tail.size() > 1 && tail != "Ei") {
    out.exponent = true;
    int sign = 1;
    std::size_t at = 1;
    if (tail[1] == '-' || tail[1] == '+') {
      sign = tail[1] == '-' ? -1 : 1;
      at = 2;
    }
    if (at >= tail.size() || tail.size() - at > 2) return out;
    for (; at < tail.size(); ++at) {
      if (tail[at] < '0' || tail[at] > '9') return out;
      ten = ten * 10 + (tail[at] - '0');
    }
    ten *= sign;
  } else {
    const auto* s = std::find_if(std::begin(suffixes), std::end(suffixes), [&](const suffix& x) { return x.text == tail; });
    if (s == std::end(suffixes)) return out;
    ten = s->decimal;
    two = s->binary;
  }
  int scale = 9 + ten - decimals;
  if (scale > 27 || scale < -27) return out;
  __int128 v = mantissa;
  if (two > 0) v <<= std::min(two, 60);
  if (scale >= 0) {
    v *= power10(scale);
  } else {
    __int128 d = power10(-scale);
    v = (v + d - 1) / d;
  }
  out.nanos = negative ? -v : v;
  out.binary = two > 0;
  out.ok = true;
  return out;
}

std::string digits_of(__int128 v) {
  if (v == 0) return "0";
  bool negative = v < 0;
  if (negative) v = -v;
  std::string out;
  for (; v > 0; v /= 10) out += static_cast<char>('0' + static_cast<int>(v % 10));
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

std::string decimal_form(__int128 nanos) {
  int power = -9;
  while (nanos != 0 && nanos % 1000 == 0 && power < 18) {
    nanos /= 1000;
    power += 3;
  }
  if (nanos == 0) return "0";
  for (const auto& s : suffixes) {
    if (s.binary == 0 && s.decimal == power) return digits_of(nanos) + std::string(s.text);
  }
  return digits_of(nanos);
}

std::string binary_form(__int128 nanos) {
  constexpr __int128 unit = 1'000'000'000;
  if (nanos % unit != 0) return decimal_form(nanos);
  __int128 v = nanos / unit;
  int power = 0;
  while (v != 0 && v % 1024 == 0 && power < 60) {
    v /= 1024;
    power += 10;
  }
  for (const auto& s : suffixes) {
    if (s.decimal == 0 && s.binary == power) return digits_of(v) + std::string(s.text);
  }
  return digits_of(v);
}

}  // namespace

std::string canonical_quantity(std::string_view text) {
  parsed p = parse(text);
  if (!p.ok) return {};
  if (p.exponent) return std::string(text);
  return p.binary ? binary_form(p.nanos) : decimal_form(p.nanos);
}

__int128 quantity_millis(std::string_view text) {
  parsed p = parse(text);
  constexpr __int128 unit = 1'000'000;
  return p.nanos >= 0 ? (p.nanos + unit - 1) / unit : p.nanos / unit;
}

std::string format_quantity(__int128 millis, bool binary) {
  __int128 nanos = millis * 1'000'000;
  return binary ? binary_form(nanos) : decimal_form(nanos);
}

std::string time_problem(std::string_view text, bool micro) {
  std::string layout = micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
  auto complain = [&](std::string_view rest, std::string_view want) {
    return "parsing time \"" + std::string(text) + "\" as \"" + layout + "\": cannot parse \"" + std::string(rest) + "\" as \"" +
           std::string(want) + "\"";
  };
  struct part {
    std::size_t digits;
    std::string_view want;
    char after;
  };
  constexpr part parts[] = {{4, "2006", '-'}, {2, "01", '-'}, {2, "02", 'T'}, {2, "15", ':'}, {2, "04", ':'}, {2, "05", 0}};
  std::size_t at = 0;
  for (const auto& p : parts) {
    for (std::size_t i = 0; i < p.digits; ++i) {
      if (at + i >= text.size() || text[at + i] < '0' || text[at + i] > '9')
        return complain(text.substr(std::min(at, text.size())), p.want);
    }
    at += p.digits;
    if (p.after && (at >= text.size() || text[at] != p.after)) {
      return complain(text.substr(std::min(at, text.size())), std::string_view(&p.after, 1));
    }
    if (p.after) ++at;
  }
  std::size_t fraction = at;
  if (at < text.size() && text[at] == '.') {
    ++at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  }
  if (micro && at - fraction != 7) return complain(text.substr(fraction), ".000000");
  std::string_view zone = text.substr(at);
  bool offset = zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':';
  if (zone != "Z" && !offset) return complain(zone, "Z07:00");
  return parse_rfc3339(text) ? std::string() : "parsing time \"" + std::string(text) + "\": out of range";
}

}  // namespace kubeopera::inline v1::testing::api
