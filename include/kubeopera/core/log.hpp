// Structured logging: a constant message and key/value fields. A library takes a logger, never chooses one.
#pragma once

#include <kubeopera/core/error.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace kubeopera::inline v1 {

enum class level { debug, info, warn, error };

struct field {
  std::string_view key;
  std::string value;
  field(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  field(std::string_view k, std::string_view v) : key(k), value(v) {}
  field(std::string_view k, const char* v) : key(k), value(v) {}
  field(std::string_view k, long long v) : key(k), value(std::to_string(v)) {}
  field(std::string_view k, const kubeopera::error& e) : key(k), value(to_string(e)) {}
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

/// One JSON object a line on a file descriptor, from lvl up.
std::shared_ptr<logger> make_json_logger(int fd, level lvl);

}  // namespace kubeopera::inline v1
