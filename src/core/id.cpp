// UUIDv7 and UUIDv4.
#include <kubeopera/core/id.hpp>

#include <cstring>
#include <mutex>

namespace kubeopera::inline v1 {
namespace {

std::string format_uuid(const unsigned char (&b)[16]) {
  static const char* hex = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += hex[b[i] >> 4];
    out += hex[b[i] & 15];
  }
  return out;
}

}  // namespace

std::string make_uuid_v7(const clock& clk) {
  // Time in ms, then a 12-bit counter that keeps ids of one millisecond in order, then random bits.
  static std::mutex mutex;
  static std::uint64_t last_ms = 0;
  static unsigned counter = 0;
  unsigned char b[16];
  fill_random(b, sizeof b);
  auto ms = static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(clk.now()).time_since_epoch().count());
  unsigned count;
  {
    std::lock_guard lock(mutex);
    if (ms > last_ms) {
      last_ms = ms;
      counter = b[6] & 0x7f;
    } else {
      if (++counter > 0xfff) {
        ++last_ms;
        counter = 0;
      }
      ms = last_ms;
    }
    count = counter;
  }
  for (int i = 0; i < 6; ++i) b[i] = static_cast<unsigned char>(ms >> (40 - 8 * i));
  b[6] = static_cast<unsigned char>(0x70 | (count >> 8));
  b[7] = static_cast<unsigned char>(count & 0xff);
  b[8] = static_cast<unsigned char>(0x80 | (b[8] & 0x3f));
  return format_uuid(b);
}

std::string make_uuid_v4() {
  unsigned char b[16];
  fill_random(b, sizeof b);
  b[6] = static_cast<unsigned char>(0x40 | (b[6] & 0x0f));
  b[8] = static_cast<unsigned char>(0x80 | (b[8] & 0x3f));
  return format_uuid(b);
}

bool is_uuid(std::string_view t) noexcept {
  if (t.size() != 36) return false;
  for (std::size_t i = 0; i < 36; ++i) {
    char c = t[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return false;
    } else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
      return false;
    }
  }
  return true;
}

}  // namespace kubeopera::inline v1
