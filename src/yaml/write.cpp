// The block-style emitter. It quotes whatever any reader might misread; it never folds lines.
#include "src/yaml/scalar.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/write.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace kubeopera::inline v1::yaml {
namespace {

// Readers look for the colon of an unmarked key within 1024 characters only.
constexpr std::size_t max_simple_key = 900;

bool number_like(std::string_view s) {
  char c = s[0];
  if (!(c >= '0' && c <= '9') && c != '.') return false;
  constexpr std::string_view alphabet = "0123456789abcdefABCDEFxXoO_+-.:tTzZ ";
  return s.find_first_not_of(alphabet) == std::string_view::npos;
}

// Decodes a code point of possibly damaged UTF-8 (U+FFFD for a bad byte) and moves i on.
char32_t decode(std::string_view s, std::size_t& i) {
  auto lead = static_cast<unsigned char>(s[i]);
  if (lead < 0x80) {
    ++i;
    return lead;
  }
  std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t c = lead & (0x3F >> more);
  bool ok = lead >= 0xC2 && lead <= 0xF4 && i + more < s.size();
  for (std::size_t k = 1; ok && k <= more; ++k) {
    auto b = static_cast<unsigned char>(s[i + k]);
    ok = (b & 0xC0) == 0x80;
    c = (c << 6) | (b & 0x3F);
  }
  ok = ok && !(more == 2 && c < 0x800) && !(more == 3 && c < 0x10000) && c <= 0x10FFFF && !(c >= 0xD800 && c < 0xE000);
  i += ok ? more + 1 : 1;
  return ok ? c : 0xFFFD;
}

// Characters that every reader takes raw inside quotes and literal blocks.
bool printable(char32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;
  return c != 0x2028 && c != 0x2029 && c != 0xFEFF && c != 0xFFFE && c != 0xFFFF;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

void append_quoted(std::string& out, std::string_view s) {
  out.push_back('"');
  for (std::size_t i = 0; i < s.size();) {
    char32_t c = decode(s, i);
    switch (c) {
      case '"':
        out += "\\\"";
        continue;
      case '\\':
        out += "\\\\";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\t':
        out += "\\t";
        continue;
      case '\r':
        out += "\\r";
        continue;
      default:
        break;
    }
    if (printable(c)) {
      append_utf8(out, c);
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    }
  }
  out.push_back('"');
}

// Text of several lines that a literal block keeps byte for byte.
bool literal_safe(std::string_view s) {
  if (s.find('\n') == std::string_view::npos || s[0] == ' ' || s[0] == '\t' || s[0] == '\n') return false;
  for (std::size_t i = 0; i < s.size();) {
    std::size_t start = i;
    char32_t c = decode(s, i);
    if (c == '\n') continue;
    if (c == '\t' ? (start == 0 || s[start - 1] == '\n') : !printable(c)) return false;
    if (c == 0xFFFD && i - start == 1) return false;
  }
  // Lines of blanks only, and blanks at the end of the text, are where readers differ.
  for (std::size_t from = 0; from <= s.size();) {
    auto end = std::min(s.find('\n', from), s.size());
    auto line = s.substr(from, end - from);
    if (!line.empty() && line.find_first_not_of(" \t") == std::string_view::npos) return false;
    from = end + 1;
  }
  return true;
}

void append_literal(std::string& out, std::string_view s, std::size_t indent) {
  std::size_t ends = s.size() - (s.find_last_not_of('\n') + 1);
  out += ends == 0 ? "|-" : ends == 1 ? "|" : "|+";
  out.push_back('\n');
  std::string_view body = ends == 0 ? s : s.substr(0, s.size() - 1);
  for (std::size_t from = 0; from <= body.size();) {
    auto end = std::min(body.find('\n', from), body.size());
    if (end > from) out.append(indent, ' ').append(body.substr(from, end - from));
    from = end + 1;
    if (end < body.size()) out.push_back('\n');
  }
}

void append_double(std::string& out, double d) {
  if (!std::isfinite(d)) throw std::invalid_argument("a document with a number that is not finite");
  std::string text = json::write(json::value(d));
  auto e = text.find_first_of("eE");
  std::string mantissa = text.substr(0, e);
  if (mantissa.find('.') == std::string::npos) mantissa += ".0";
  out += mantissa;
  if (e == std::string::npos) return;
  out.push_back('e');
  if (text[e + 1] != '-' && text[e + 1] != '+') out.push_back('+');
  out += text.substr(e + 1);
}

class emitter {
 public:
  explicit emitter(std::string& out) : out_(out) {}

  // After "key:" or "-": what follows on the line, then the lines below. indent is that of the line's own key.
  void value_after(const json::value& v, std::size_t indent, bool in_list) {
    if (v.is_object() && !v.get_object().empty()) {
      if (in_list) return map(v.get_object(), indent + 2, true);
      out_.push_back('\n');
      return map(v.get_object(), indent + 2, false);
    }
    if (v.is_array() && !v.get_array().empty()) {
      if (in_list) return list(v.get_array(), indent + 2, true);
      out_.push_back('\n');
      return list(v.get_array(), indent, false);
    }
    out_.push_back(' ');
    leaf(v, indent + 2);
  }

  void map(const json::object& o, std::size_t indent, bool first_on_line) {
    for (const auto& [key, v] : o) {
      lead(indent, first_on_line);
      first_on_line = false;
      if (key.size() > max_simple_key) {
        out_ += "? ";
        append_quoted(out_, key);
        out_.push_back('\n');
        out_.append(indent, ' ');
      } else {
        text(key);
      }
      out_.push_back(':');
      value_after(v, indent, false);
    }
  }

  void list(const json::array& a, std::size_t indent, bool first_on_line) {
    for (const auto& v : a) {
      lead(indent, first_on_line);
      first_on_line = false;
      out_.push_back('-');
      value_after(v, indent, true);
    }
  }

  void leaf(const json::value& v, std::size_t indent) {
    if (v.is_string()) {
      std::string_view s = v.get_string();
      if (literal_safe(s))
        append_literal(out_, s, indent);
      else
        text(s);
    } else if (v.is_double()) {
      append_double(out_, v.get_double());
    } else {
      out_ += v.is_object() ? "{}" : v.is_array() ? "[]" : json::write(v);
    }
    out_.push_back('\n');
  }

 private:
  void lead(std::size_t indent, bool first_on_line) {
    if (first_on_line)
      out_.push_back(' ');
    else
      out_.append(indent, ' ');
  }
  void text(std::string_view s) {
    if (is_plain_safe(s))
      out_ += s;
    else
      append_quoted(out_, s);
  }

  std::string& out_;
};

}  // namespace

bool is_plain_safe(std::string_view s) noexcept {
  if (s.empty() || s.back() == ' ' || s.back() == ':' || is_reserved_word(s) || number_like(s)) return false;
  constexpr std::string_view bad_first = " -+?:,[]{}#&*!|>'\"%@`=<";
  if (bad_first.find(s[0]) != std::string_view::npos) return false;
  if (s.starts_with("...") || s.starts_with(".inf") || resolve_strict(s).kind != scalar_kind::text) return false;
  for (std::size_t i = 0; i < s.size(); ++i) {
    auto c = static_cast<unsigned char>(s[i]);
    if (c < 0x20 || c > 0x7E) return false;
    if (c == ':' && s[i + 1] == ' ') return false;
    if (c == '#' && s[i - 1] == ' ') return false;
  }
  return true;
}

std::string write(const json::value& v) {
  std::string out;
  emitter e(out);
  if (v.is_object() && !v.get_object().empty())
    e.map(v.get_object(), 0, false);
  else if (v.is_array() && !v.get_array().empty())
    e.list(v.get_array(), 0, false);
  else
    e.leaf(v, 2);
  return out;
}

std::string write(const json::object& o) {
  std::string out;
  emitter e(out);
  if (o.empty()) return "{}\n";
  e.map(o, 0, false);
  return out;
}

}  // namespace kubeopera::inline v1::yaml
