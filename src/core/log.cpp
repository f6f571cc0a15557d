// The JSON-lines logger.
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <unistd.h>

namespace kubeopera::inline v1 {
namespace {

class null_logger final : public logger {
 public:
  void log(level, std::string_view, std::initializer_list<field>) override {}
};

constexpr std::size_t longest_value = 8192;

// Bytes of the UTF-8 sequence at the start of text; 0 where there is none. RFC 3629: no overlong forms, no surrogates.
std::size_t sequence_length(std::string_view text) {
  auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto more = [&](std::size_t i) { return (at(i) & 0xc0u) == 0x80u; };
  unsigned c = at(0);
  if (c < 0x80) return 1;
  if (c >= 0xc2 && c <= 0xdf) return more(1) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    bool fits = !(c == 0xe0 && at(1) < 0xa0) && !(c == 0xed && at(1) > 0x9f);
    return fits && more(1) && more(2) ? 3 : 0;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    bool fits = !(c == 0xf0 && at(1) < 0x90) && !(c == 0xf4 && at(1) > 0x8f);
    return fits && more(1) && more(2) && more(3) ? 4 : 0;
  }
  return 0;
}

void quote(std::string& out, std::string_view text) {
  out += '"';
  auto rest = text.substr(0, longest_value);
  while (!rest.empty()) {
    auto n = sequence_length(rest);
    auto c = static_cast<unsigned char>(rest[0]);
    if (n == 0) {
      out += "\xef\xbf\xbd";
    } else if (n == 1 && (c < 0x20 || c == 0x7f)) {
      char buf[8];
      std::snprintf(buf, sizeof buf, "\\u%04x", c);
      out += buf;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += rest.substr(0, n);
    }
    rest.remove_prefix(n == 0 ? 1 : n);
  }
  if (text.size() > longest_value) out += "...";
  out += '"';
}

void add(std::string& line, std::string_view key, std::string_view value, bool number) {
  if (value.empty()) return;
  line += ',';
  quote(line, key);
  line += ':';
  if (number)
    line += value;
  else
    quote(line, value);
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
      if (!f.more) add(line, f.key, f.value, f.number);
      if (f.more)
        for (const auto& [key, value] : *f.more) add(line, key, value, false);
    }
    line += "}\n";
    std::lock_guard lock(mutex_);
    std::string_view rest = line;
    while (!rest.empty()) {
      auto n = ::write(fd_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
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

field field::milliseconds(std::string_view k, std::chrono::nanoseconds time) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(time.count()) / 1e6);
  field f(k, std::string(text));
  f.number = true;
  return f;
}

logger& logger::none() {
  static null_logger instance;
  return instance;
}

std::shared_ptr<logger> make_json_logger(int fd, level lvl) { return std::make_shared<json_logger>(fd, lvl); }

}  // namespace kubeopera::inline v1
