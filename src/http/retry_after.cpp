// Retry-After: a number of seconds or an HTTP date.
#include <kubeopera/http/retry_after.hpp>

#include <algorithm>
#include <array>
#include <charconv>

namespace kubeopera::inline v1::http {

namespace {

constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

bool read_number(std::string_view text, int& out) {
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  return ec == std::errc() && end == text.data() + text.size();
}

// "Sun, 06 Nov 1994 08:49:37 GMT", the one form that may be sent.
std::optional<system_time> parse_http_date(std::string_view text) {
  if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT") return std::nullopt;
  int day = 0, year = 0, hour = 0, minute = 0, second = 0;
  auto month = std::find(months.begin(), months.end(), text.substr(8, 3));
  bool ok = read_number(text.substr(5, 2), day) && read_number(text.substr(12, 4), year) &&
            read_number(text.substr(17, 2), hour) && read_number(text.substr(20, 2), minute) &&
            read_number(text.substr(23, 2), second);
  if (!ok || month == months.end()) return std::nullopt;
  std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month - months.begin()) + 1),
                                   std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  // The clock's nanoseconds end in 2262; what is earlier or later than they reach is so all the same.
  date = std::chrono::year(std::clamp(year, 1970, 2261)) / date.month() / date.day();
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
}

}  // namespace

std::optional<std::chrono::seconds> parse_retry_after(std::string_view text, system_time now) {
  std::int64_t seconds = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (ec != std::errc() || end != text.data() + text.size()) {
    auto date = parse_http_date(text);
    if (!date) return std::nullopt;
    seconds = std::chrono::ceil<std::chrono::seconds>(*date - now).count();
  }
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, max_retry_after.count()));
}

std::optional<std::chrono::seconds> retry_after(const fields& headers, system_time now) {
  auto text = headers.get("Retry-After");
  return text ? parse_retry_after(*text, now) : std::nullopt;
}

}  // namespace kubeopera::inline v1::http
