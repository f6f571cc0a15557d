// Reading and making trace contexts.
#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/trace.hpp>

#include <algorithm>

namespace kubeopera::inline v1 {
namespace {

constexpr std::size_t version_00_size = 55;

bool hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool zero(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '0'; });
}

std::string random_hex(std::size_t digits) {
  static constexpr char alphabet[] = "0123456789abcdef";
  std::string bytes(digits / 2, '\0');
  std::string out;
  do {
    fill_random(bytes.data(), bytes.size());
    out.clear();
    for (unsigned char b : bytes) {
      out += alphabet[b >> 4];
      out += alphabet[b & 15];
    }
  } while (zero(out));
  return out;
}

}  // namespace

std::string trace_context::header() const { return "00-" + trace_id + "-" + span_id + "-" + flags; }

std::optional<trace_context> parse_traceparent(std::string_view header) {
  if (header.size() < version_00_size || header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  auto version = header.substr(0, 2), trace = header.substr(3, 32), span = header.substr(36, 16), flags = header.substr(53, 2);
  if (!hex(version) || !hex(trace) || !hex(span) || !hex(flags)) return std::nullopt;
  if (version == "ff" || zero(trace) || zero(span)) return std::nullopt;
  if (header.size() > version_00_size && (version == "00" || header[version_00_size] != '-')) return std::nullopt;
  trace_context out;
  out.trace_id = trace;
  out.span_id = span;
  out.flags = std::string_view("13579bdf").find(flags[1]) != std::string_view::npos
                  ? "01"
                  : "00";  // the only bit that version 00 defines
  return out;
}

trace_context new_trace() {
  trace_context out;
  out.trace_id = random_hex(32);
  out.span_id = random_hex(16);
  return out;
}

trace_context child_of(const trace_context& parent) {
  trace_context out = parent;
  out.span_id = random_hex(16);
  return out;
}

}  // namespace kubeopera::inline v1
