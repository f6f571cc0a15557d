#include "server/cli/doctor_report.hpp"

#include "server/cli/commands.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <cstdio>

namespace kubeopera::inline v1::cli {
namespace {

const char* word_of(health h) { return h == health::ok ? "ok" : h == health::warning ? "warning" : "failed"; }

std::string mark_of(health h) { return h == health::ok ? green("✓") : h == health::warning ? yellow("!") : red("✗"); }

long count(const std::vector<finding>& all, health h) {
  return std::count_if(all.begin(), all.end(), [h](const finding& f) { return f.state == h; });
}

void print_json(const std::vector<finding>& all) {
  json::array rows;
  for (const auto& f : all) {
    json::object row{{"area", f.area}, {"check", f.check}, {"state", word_of(f.state)}, {"message", f.message}};
    if (!f.remedy.empty()) row["do"] = f.remedy;
    rows.push_back(std::move(row));
  }
  json::object o{{"ok", count(all, health::failed) == 0},
                 {"failed", count(all, health::failed)},
                 {"warnings", count(all, health::warning)},
                 {"checks", std::move(rows)}};
  std::puts(json::write_pretty(o).c_str());
}

}  // namespace

void print_findings(const std::vector<finding>& all, bool as_json) {
  if (as_json) return print_json(all);
  std::size_t area = 0, check = 0;
  for (const auto& f : all) {
    area = std::max(area, f.area.size());
    check = std::max(check, f.check.size());
  }
  for (const auto& f : all) {
    auto line = f.area + std::string(area - f.area.size() + 2, ' ') + f.check + std::string(check - f.check.size() + 2, ' ');
    std::printf("%s %s%s\n", mark_of(f.state).c_str(), line.c_str(), f.message.c_str());
    if (!f.remedy.empty()) std::printf("    %s %s\n", bold("do this:").c_str(), f.remedy.c_str());
  }
  auto failed = count(all, health::failed), warnings = count(all, health::warning);
  std::printf("\n%zu checks, %ld failed, %ld warnings\n", all.size(), failed, warnings);
}

int exit_code_of(const std::vector<finding>& all) { return count(all, health::failed) == 0 ? ok : failed_code; }

}  // namespace kubeopera::inline v1::cli
