// Finding the ends of scalars by the few rules that the styles have.
#include "src/yaml/span.hpp"

#include <algorithm>

namespace kubeopera::inline v1::yaml {
namespace {

constexpr std::string_view blanks = " \t\n";

std::size_t skip_properties(std::string_view text, std::size_t pos) {
  while (pos < text.size() && (text[pos] == '!' || text[pos] == '&')) {
    pos = std::min(text.find_first_of(blanks, pos), text.size());
    pos = std::min(text.find_first_not_of(blanks, pos), text.size());
  }
  return pos;
}

std::optional<std::size_t> quoted_end(std::string_view text, std::size_t pos) {
  char quote = text[pos];
  for (std::size_t i = pos + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (text[i] == quote && quote == '\'' && i + 1 < text.size() && text[i + 1] == quote)
      ++i;
    else if (text[i] == quote)
      return i + 1;
  }
  return std::nullopt;
}

// The header line, then every line that is empty or indented at least as the first one that is not.
std::size_t block_end(std::string_view text, std::size_t pos) {
  std::size_t indent = 0;
  for (std::size_t line = std::min(text.find('\n', pos), text.size()); line < text.size();) {
    auto begin = line + 1;
    auto next = std::min(text.find('\n', begin), text.size());
    auto content = std::min(text.find_first_not_of(' ', begin), text.size());
    if (content < next) {
      if (indent == 0 && text[content] == '\t') return begin;  // where indentation is measured, a tab is no content
      if (indent == 0) indent = content - begin;
      if (indent == 0 || content - begin < indent) return begin;
    }
    line = next;
  }
  return text.size();
}

}  // namespace

std::optional<span> locate_scalar(std::string_view text, std::size_t pos, std::string_view value) {
  pos = skip_properties(text, pos);
  if (pos >= text.size()) return span{text.size(), text.size()};
  char first = text[pos];
  if (first == '"' || first == '\'') {
    auto end = quoted_end(text, pos);
    if (!end) return std::nullopt;
    return span{pos, *end, scalar_style::quoted};
  }
  if (first == '|' || first == '>') return span{pos, block_end(text, pos), scalar_style::block};
  return span{pos, text.substr(pos).starts_with(value) ? pos + value.size() : pos};
}

bool is_explicit_key(std::string_view text, std::size_t pos) {
  if (pos == 0) return false;
  auto before = text.find_last_not_of(' ', pos - 1);
  return before != std::string_view::npos && before + 1 < pos && text[before] == '?' &&
         (before == 0 || blanks.find(text[before - 1]) != std::string_view::npos);
}

bool is_block_header(std::string_view text, std::size_t pos) {
  auto end = std::min(text.find('\n', pos), text.size());
  auto rest = text.substr(pos + 1, end - pos - 1);
  while (!rest.empty() && (rest[0] == '-' || rest[0] == '+' || (rest[0] >= '1' && rest[0] <= '9'))) rest.remove_prefix(1);
  auto content = rest.find_first_not_of(' ');
  return content == std::string_view::npos || (content > 0 && rest[content] == '#');
}

bool colon_follows(std::string_view text, std::size_t pos, bool blank_after) {
  auto next = text.find_first_not_of(blank_after ? blanks : " \t", pos);
  if (next == std::string_view::npos || text[next] != ':') return false;
  return !blank_after || next + 1 >= text.size() || blanks.find(text[next + 1]) != std::string_view::npos;
}

}  // namespace kubeopera::inline v1::yaml
