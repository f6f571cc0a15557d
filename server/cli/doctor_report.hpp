// What an examination found, and how it is shown.
#pragma once

#include <string>
#include <vector>

namespace kubeopera::inline v1::cli {

enum class health { ok, warning, failed };

/// One thing that was looked at. Never holds a secret.
struct finding {
  std::string area;   ///< "database"
  std::string check;  ///< "schema"
  health state = health::ok;
  std::string message;  ///< what was seen
  std::string remedy;   ///< what to do; "" where nothing has to be done
};

/// A table of marks, or one JSON document: {"ok", "failed", "warnings", "checks": [{"area", "check", "state", "message", "do"}]}.
void print_findings(const std::vector<finding>& all, bool as_json);
/// 0, or 1 where something failed.
int exit_code_of(const std::vector<finding>& all);

}  // namespace kubeopera::inline v1::cli
