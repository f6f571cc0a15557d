// The one place that drives yaml-cpp: checks the bytes first, turns its exceptions into errors, tells documents apart.
#pragma once

#include <kubeopera/core/result.hpp>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::yaml {

/// Thrown by handlers to stop the parser; never leaves this module.
struct stop {
  error cause;
};

/// "line 3, column 7: what"; the counts start at one.
std::string at(int line, int column, std::string_view what);

/// Valid UTF-8 without byte order mark, control characters (except line feed and tab) and Unicode line ends.
result<void> check_bytes(std::string_view text);

/// True for well-formed UTF-8.
bool is_utf8(std::string_view text);

/// Feeds documents to the handler until there is none left or more() says no.
/// @param pointer  asked for the JSON pointer when the parser itself finds a fault
/// Errors: invalid_argument (MalformedYaml, or what a handler stopped with).
result<std::size_t> parse(std::string_view text, YAML::EventHandler& handler, const std::function<std::string()>& pointer,
                          const std::function<bool()>& more);

}  // namespace kubeopera::inline v1::yaml
