#include "server/cli/terminal.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/write.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace kubeopera::inline v1::cli {

bool fancy() {
  static const bool yes = [] {
    const char* term = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR") && term && std::strcmp(term, "dumb") != 0;
  }();
  return yes;
}

namespace {

std::string paint(const char* code, std::string_view text) {
  if (!fancy()) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string cell(const json::value& item, const std::vector<std::string>& path) {
  const json::value* at = &item;
  for (const auto& step : path) {
    auto* o = at->if_object();
    at = o ? o->if_contains(step) : nullptr;
    if (!at) return "-";
  }
  if (at->is_string()) return at->get_string().empty() ? "-" : std::string(json::as_view(*at));
  return at->is_null() ? "-" : json::write(*at);
}

}  // namespace

std::string bold(std::string_view t) { return paint("1", t); }
std::string dim(std::string_view t) { return paint("2", t); }
std::string green(std::string_view t) { return paint("32", t); }
std::string red(std::string_view t) { return paint("31", t); }
std::string yellow(std::string_view t) { return paint("33", t); }

void print_table(const json::array& items, const std::vector<column>& columns) {
  std::vector<std::vector<std::string>> rows(1);
  for (const auto& c : columns) rows[0].push_back(c.heading);
  for (const auto& item : items) {
    auto& row = rows.emplace_back();
    for (const auto& c : columns) row.push_back(cell(item, c.path));
  }
  std::vector<std::size_t> widths(columns.size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      line += rows[r][i];
      if (i + 1 < rows[r].size()) line.append(widths[i] - rows[r][i].size() + 3, ' ');
    }
    std::puts((r == 0 ? bold(line) : line).c_str());
  }
}

void print_value(const json::value& v, format f) {
  if (f == format::json)
    std::puts(json::write_pretty(v).c_str());
  else
    std::fputs(yaml::write(v).c_str(), stdout);
}

void print_error(const error& e) {
  std::fprintf(stderr, "kubeopera: %s\n", e.message().c_str());
  for (const auto& v : e.violations())
    std::fprintf(stderr, "  %s: %s\n", v.pointer.empty() ? "/" : v.pointer.c_str(), v.message.c_str());
  if (!e.detail().empty()) std::fprintf(stderr, "  (%s)\n", e.detail().c_str());
}

void live_block::show(const std::vector<std::string>& lines) {
  if (!fancy()) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (i >= shown_.size() || shown_[i] != lines[i]) std::puts(lines[i].c_str());
  } else {
    if (!shown_.empty()) std::printf("\x1b[%zuA", shown_.size());
    for (const auto& l : lines) std::printf("\x1b[2K%s\n", l.c_str());
    for (std::size_t i = lines.size(); i < shown_.size(); ++i) std::printf("\x1b[2K\n");
  }
  std::fflush(stdout);
  shown_ = lines;
}

}  // namespace kubeopera::inline v1::cli
