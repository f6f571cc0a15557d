// Event streams: the same events however the bytes arrive; an event encoded from any text is decoded to that text.
#include "tests/fuzz/property.hpp"

#include <kubeopera/http/sse.hpp>

#include <cstdint>

using namespace kubeopera;

namespace {

struct decoded {
  std::vector<http::sse_event> events;
  bool ok = true;
  std::string last_id;
};

decoded decode(std::string_view text, std::size_t step) {
  decoded out;
  http::sse_decoder decoder(4096);
  while (out.ok && !text.empty()) {
    auto piece = text.substr(0, step);
    text.remove_prefix(piece.size());
    out.ok = static_cast<bool>(decoder.feed(piece, out.events));
  }
  out.last_id = decoder.last_event_id();
  return out;
}

bool same(const decoded& a, const decoded& b) {
  return a.ok == b.ok && a.last_id == b.last_id &&
         std::equal(a.events.begin(), a.events.end(), b.events.begin(), b.events.end(),
                    [](const auto& x, const auto& y) { return x.type == y.type && x.data == y.data && x.id == y.id; });
}

// Line breaks of all kinds are one newline to the reader.
std::string normal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i] == '\r' ? '\n' : text[i];
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto whole = decode(text, size + 1);
  KUBEOPERA_PROPERTY(same(decode(text, 1), whole));
  KUBEOPERA_PROPERTY(same(decode(text, 3), whole));
  if (size > 1024) return 0;
  http::sse_event event(std::string(text.substr(0, size / 4)), std::string(text));
  event.id = size;
  auto back = decode(http::encode_sse(event) + std::string(http::sse_ping()), 5);
  KUBEOPERA_PROPERTY(back.ok && back.events.size() == 1);
  KUBEOPERA_PROPERTY(back.events[0].data == normal(text) && back.events[0].id == size);
  return 0;
}
