// Real time, RFC 3339 and the operating system's randomness.
#include <kubeopera/core/clock.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <sys/random.h>

namespace kubeopera::inline v1 {
namespace {

class real_clock final : public clock {
 public:
  system_time now() const override { return std::chrono::system_clock::now(); }
  steady_time steady() const override { return std::chrono::steady_clock::now(); }
  task<void> sleep(duration time) override { return sleep_for(time); }
};

std::string seconds_part(system_time t) {
  auto secs = std::chrono::floor<std::chrono::seconds>(t);
  std::chrono::year_month_day ymd(std::chrono::floor<std::chrono::days>(secs));
  std::chrono::hh_mm_ss hms(secs - std::chrono::floor<std::chrono::days>(secs));
  char buf[64];
  std::snprintf(buf, sizeof buf, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(ymd.year()),
                static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), static_cast<int>(hms.hours().count()),
                static_cast<int>(hms.minutes().count()), static_cast<int>(hms.seconds().count()));
  return buf;
}

error bad_time(std::string_view text) {
  return {errc::invalid_argument, "InvalidTime", "not an RFC 3339 time: " + std::string(text.substr(0, 64))};
}

bool digits(std::string_view s, int& out) {
  auto [end, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
  if (ec != std::errc() || end != s.data() + s.size()) return false;
  for (char c : s)
    if (c < '0' || c > '9') return false;
  return true;
}

}  // namespace

clock& clock::real() {
  static real_clock instance;
  return instance;
}

std::string format_rfc3339(system_time t) { return seconds_part(t) + "Z"; }

std::string format_rfc3339_millis(system_time t) {
  auto ms = std::chrono::floor<std::chrono::milliseconds>(t).time_since_epoch().count() % 1000;
  char buf[8];
  std::snprintf(buf, sizeof buf, ".%03dZ", static_cast<int>(ms));
  return seconds_part(t) + buf;
}

std::string format_rfc3339_micros(system_time t) {
  auto us = std::chrono::floor<std::chrono::microseconds>(t).time_since_epoch().count() % 1000000;
  char buf[16];
  std::snprintf(buf, sizeof buf, ".%06dZ", static_cast<int>(us));
  return seconds_part(t) + buf;
}

result<system_time> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  auto s = text;
  int y, mo, d, h, mi, sec;
  if (s.size() < 20 || s[4] != '-' || s[7] != '-' || (s[10] != 'T' && s[10] != 't' && s[10] != ' ') || s[13] != ':' ||
      s[16] != ':' || !digits(s.substr(0, 4), y) || !digits(s.substr(5, 2), mo) || !digits(s.substr(8, 2), d) ||
      !digits(s.substr(11, 2), h) || !digits(s.substr(14, 2), mi) || !digits(s.substr(17, 2), sec))
    return bad_time(text);
  year_month_day ymd{year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
  if (!ymd.ok() || h > 23 || mi > 59 || sec > 59) return bad_time(text);
  s.remove_prefix(19);
  nanoseconds fraction{0};
  if (s.front() == '.') {
    std::size_t n = 1;
    std::int64_t value = 0, scale = 1'000'000'000;
    while (n < s.size() && s[n] >= '0' && s[n] <= '9') {
      if (scale > 1) {
        value = value * 10 + (s[n] - '0');
        scale /= 10;
      }
      ++n;
    }
    if (n == 1 || n > 10) return bad_time(text);
    fraction = nanoseconds(value * scale);
    s.remove_prefix(n);
  }
  minutes offset{0};
  if (s == "Z" || s == "z") {
  } else if (s.size() == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':') {
    int oh, om;
    if (!digits(s.substr(1, 2), oh) || !digits(s.substr(4, 2), om) || oh > 23 || om > 59) return bad_time(text);
    offset = minutes(oh * 60 + om) * (s[0] == '-' ? -1 : 1);
  } else {
    return bad_time(text);
  }
  auto t = sys_days(ymd) + hours(h) + minutes(mi) + seconds(sec) - offset;
  // What the clock cannot hold (it counts nanoseconds) is its first or last whole second.
  t = std::clamp(t, ceil<seconds>(system_time::min()), floor<seconds>(system_time::max()) - seconds(1));
  return system_time(t) + duration_cast<system_time::duration>(fraction);
}

void fill_random(void* data, std::size_t size) {
  auto* p = static_cast<unsigned char*>(data);
  while (size > 0) {
    auto n = ::getrandom(p, size, 0);
    if (n < 0) throw std::runtime_error("getrandom failed");
    p += n;
    size -= static_cast<std::size_t>(n);
  }
}

std::uint64_t random_u64() {
  std::uint64_t v;
  fill_random(&v, sizeof v);
  return v;
}

}  // namespace kubeopera::inline v1
