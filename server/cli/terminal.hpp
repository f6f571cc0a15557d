// Output for people and for scripts: colours only on a terminal, tables, JSON, YAML.
#pragma once

#include <kubeopera/core/error.hpp>
#include <kubeopera/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::cli {

/// Whether standard output is a terminal that shows colours (NO_COLOR and TERM=dumb say no).
bool fancy();
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string green(std::string_view text);
std::string red(std::string_view text);
std::string yellow(std::string_view text);

enum class format { table, json, yaml };

/// One column of a table: heading and the path of the value in each item.
struct column {
  std::string heading;
  std::vector<std::string> path;
};
void print_table(const json::array& items, const std::vector<column>& columns);
/// Prints one document in the wanted format; table falls back to YAML.
void print_value(const json::value& v, format f);
/// To standard error: the message, then each violation on a line.
void print_error(const error& e);

/// A block of lines that is drawn again in place on a terminal and line by line elsewhere.
class live_block {
 public:
  /// Shows lines; on a terminal over the block shown before. Elsewhere only lines that changed are printed.
  void show(const std::vector<std::string>& lines);

 private:
  std::vector<std::string> shown_;
};

}  // namespace kubeopera::inline v1::cli
