// JSON output; numbers in the shortest form that reads back, laid out as Go does.
#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace kubeopera::inline v1::json {
namespace {

void append_double(std::string& out, double d) {
  if (!std::isfinite(d)) {
    out += "null";
    return;
  }
  char buf[64];
  auto abs = std::fabs(d);
  // Go begins with exponents at 1e21; beyond 2^63 the digits alone would read as an integer that does not fit.
  bool exponent = abs != 0 && (abs < 1e-6 || abs >= 9223372036854775808.0);
  auto [end, ec] = std::to_chars(buf, buf + sizeof buf, d, exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string_view text(buf, static_cast<std::size_t>(end - buf));
  if (exponent) {
    // Go drops the leading zero of a two-digit exponent: 1e-09 becomes 1e-9.
    auto n = text.size();
    if (n >= 4 && text[n - 4] == 'e' && text[n - 2] == '0') {
      out += text.substr(0, n - 2);
      out += text[n - 1];
      return;
    }
  }
  out += text;
}

enum class style { stored, sorted, pretty };

void append(std::string& out, const value& v, style how, int depth);

void newline(std::string& out, style how, int depth) {
  if (how != style::pretty) return;
  out += '\n';
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
}

void append_member(std::string& out, std::string_view key, const value& v, bool& first, style how, int depth) {
  if (!first) out += ',';
  first = false;
  newline(out, how, depth + 1);
  append_quoted(out, key);
  out += how == style::pretty ? ": " : ":";
  append(out, v, how, depth + 1);
}

void append_object(std::string& out, const object& o, style how, int depth) {
  out += '{';
  bool first = true;
  if (how == style::sorted) {
    std::vector<std::string_view> keys;
    keys.reserve(o.size());
    for (const auto& m : o) keys.push_back(m.key());
    std::sort(keys.begin(), keys.end());
    for (auto k : keys) append_member(out, k, o.at(k), first, how, depth);
  } else {
    for (const auto& m : o) append_member(out, m.key(), m.value(), first, how, depth);
  }
  if (!first) newline(out, how, depth);
  out += '}';
}

void append(std::string& out, const value& v, style how, int depth) {
  switch (v.kind()) {
    case kind::null:
      out += "null";
      return;
    case kind::bool_:
      out += v.get_bool() ? "true" : "false";
      return;
    case kind::int64:
      out += std::to_string(v.get_int64());
      return;
    case kind::uint64:
      out += std::to_string(v.get_uint64());
      return;
    case kind::double_:
      append_double(out, v.get_double());
      return;
    case kind::string:
      append_quoted(out, as_view(v));
      return;
    case kind::object:
      append_object(out, v.get_object(), how, depth);
      return;
    case kind::array: {
      out += '[';
      bool first = true;
      for (const auto& e : v.get_array()) {
        if (!first) out += ',';
        first = false;
        newline(out, how, depth + 1);
        append(out, e, how, depth + 1);
      }
      if (!first) newline(out, how, depth);
      out += ']';
      return;
    }
  }
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  static const char* hex = "0123456789abcdef";
  out += '"';
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(from, i - from));
    from = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += "\\u00";
        out += hex[c >> 4];
        out += hex[c & 15];
    }
  }
  out.append(text.substr(from));
  out += '"';
}

std::string write(const value& v) {
  std::string out;
  append(out, v, style::stored, 0);
  return out;
}

std::string write(const object& o) {
  std::string out;
  append_object(out, o, style::stored, 0);
  return out;
}

std::string write_canonical(const value& v) {
  std::string out;
  append(out, v, style::sorted, 0);
  return out;
}

std::string write_pretty(const value& v) {
  std::string out;
  append(out, v, style::pretty, 0);
  return out;
}

}  // namespace kubeopera::inline v1::json
