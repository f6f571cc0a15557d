// Structured logging: a constant message and key/value fields. A library takes a logger, never chooses one.
#pragma once

#include <kubeopera/core/error.hpp>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubeopera::inline v1 {

enum class level { debug, info, warn, error };

/// Fields whose names are known at run time only.
using field_list = std::vector<std::pair<std::string, std::string>>;

struct field {
  std::string_view key;
  std::string value;
  bool number = false;               ///< value is a number: written without quotes
  const field_list* more = nullptr;  ///< several fields in place of this one; must live until log() returns
  field(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  field(std::string_view k, std::string_view v) : key(k), value(v) {}
  field(std::string_view k, const char* v) : key(k), value(v) {}
  field(std::string_view k, long long v) : key(k), value(std::to_string(v)), number(true) {}
  field(std::string_view k, const kubeopera::error& e) : key(k), value(to_string(e)) {}
  explicit field(const field_list& many) : more(&many) {}
  /// As a number with three digits after the point.
  static field milliseconds(std::string_view k, std::chrono::nanoseconds time);
};

/// Thread safety: log() may be called from any thread.
class logger {
 public:
  virtual ~logger() = default;
  virtual void log(level lvl, std::string_view message, std::initializer_list<field> fields = {}) = 0;
  void debug(std::string_view m, std::initializer_list<field> f = {}) { log(level::debug, m, f); }
  void info(std::string_view m, std::initializer_list<field> f = {}) { log(level::info, m, f); }
  void warn(std::string_view m, std::initializer_list<field> f = {}) { log(level::warn, m, f); }
  void error(std::string_view m, std::initializer_list<field> f = {}) { log(level::error, m, f); }
  /// Says nothing; lives for ever.
  static logger& none();
};

/// One JSON object a line on a file descriptor, from lvl up: time, level, msg, then the fields in order. A field without a value
/// is left out, bytes that are not UTF-8 become U+FFFD, and a value over 8 KiB is cut.
std::shared_ptr<logger> make_json_logger(int fd, level lvl);

}  // namespace kubeopera::inline v1
