// Driving yaml-cpp's parser over checked bytes.
#include "src/yaml/parse.hpp"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>

namespace kubeopera::inline v1::yaml {
namespace {

// A stream over bytes that stay where they are.
class view_buffer : public std::streambuf {
 public:
  explicit view_buffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

// Decodes one code point; 0xFFFFFFFF when the bytes are not UTF-8. Moves i on.
char32_t next_code_point(std::string_view s, std::size_t& i) {
  auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
  unsigned char lead = byte(i);
  if (lead < 0x80) return s[i++];
  int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || i + static_cast<std::size_t>(more) >= s.size()) return 0xFFFFFFFF;
  char32_t c = lead & (0x3F >> more);
  for (int k = 1; k <= more; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0xFFFFFFFF;
    c = (c << 6) | (byte(i + k) & 0x3F);
  }
  if ((more == 2 && c < 0x800) || (more == 3 && c < 0x10000) || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0xFFFFFFFF;
  i += static_cast<std::size_t>(more) + 1;
  return c;
}

const char* complaint(char32_t c) {
  if (c == 0xFFFFFFFF) return "bytes that are not UTF-8";
  if (c == 0xFEFF) return "a byte order mark";
  if (c == '\r') return "a carriage return; end lines with a line feed alone";
  if (c == 0) return "a NUL character; the text must be UTF-8";
  if ((c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0 && c != 0x85)) return "a control character";
  if (c == 0x85 || c == 0x2028 || c == 0x2029)
    return "a Unicode line end, which YAML versions treat differently; escape it in double quotes";
  if (c == 0xFFFE || c == 0xFFFF) return "a character that is not one";
  return nullptr;
}

}  // namespace

std::string at(int line, int column, std::string_view what) {
  return "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " + std::string(what);
}

result<void> check_bytes(std::string_view text) {
  int line = 0;
  std::size_t line_start = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t start = i;
    char32_t c = next_code_point(text, i);
    if (const char* why = complaint(c)) {
      auto message = at(line, static_cast<int>(start - line_start), why);
      return error(errc::invalid_argument, "BadCharacter", message).with_violation("", message);
    }
    if (c == '\n') {
      ++line;
      line_start = i;
    }
  }
  return {};
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();)
    if (next_code_point(text, i) == 0xFFFFFFFF) return false;
  return true;
}

result<std::size_t> parse(std::string_view text, YAML::EventHandler& handler, const std::function<std::string()>& pointer,
                          const std::function<bool()>& more) {
  view_buffer buffer(text);
  std::istream in(&buffer);
  std::size_t documents = 0;
  try {
    YAML::Parser parser(in);
    while (more() && parser.HandleNextDocument(handler)) ++documents;
    return documents;
  } catch (const stop& s) {
    return s.cause;
  } catch (const YAML::Exception& e) {
    // The parser quotes single bytes of what it stumbled over; half a character must not get into a message.
    std::string what = e.msg;
    std::replace_if(what.begin(), what.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }, '?');
    auto message = e.mark.is_null() ? what : at(e.mark.line, e.mark.column, what);
    return error(errc::invalid_argument, "MalformedYaml", "not YAML: " + message).with_violation(pointer(), message);
  }
}

}  // namespace kubeopera::inline v1::yaml
