// The JSON-lines logger.
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>

#include <cstdio>
#include <mutex>
#include <unistd.h>

namespace kubeopera::inline v1 {
namespace {

class null_logger final : public logger {
 public:
  void log(level, std::string_view, std::initializer_list<field>) override {}
};

void quote(std::string& out, std::string_view text) {
  out += '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      char buf[8];
      std::snprintf(buf, sizeof buf, "\\u%04x", c);
      out += buf;
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

class json_logger final : public logger {
 public:
  json_logger(int fd, level lvl) : fd_(fd), level_(lvl) {}
  void log(level lvl, std::string_view message, std::initializer_list<field> fields) override {
    if (lvl < level_) return;
    static constexpr std::string_view words[] = {"debug", "info", "warn", "error"};
    std::string line = "{\"time\":\"" + format_rfc3339_millis(std::chrono::system_clock::now()) + "\",\"level\":\"";
    line += words[static_cast<int>(lvl)];
    line += "\",\"msg\":";
    quote(line, message);
    for (const auto& f : fields) {
      line += ',';
      quote(line, f.key);
      line += ':';
      quote(line, f.value);
    }
    line += "}\n";
    std::lock_guard lock(mutex_);
    std::string_view rest = line;
    while (!rest.empty()) {
      auto n = ::write(fd_, rest.data(), rest.size());
      if (n <= 0) return;  // nowhere left to report to
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }

 private:
  int fd_;
  level level_;
  std::mutex mutex_;
};

}  // namespace

logger& logger::none() {
  static null_logger instance;
  return instance;
}

std::shared_ptr<logger> make_json_logger(int fd, level lvl) { return std::make_shared<json_logger>(fd, lvl); }

}  // namespace kubeopera::inline v1
