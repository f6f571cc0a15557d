// Chunked bodies: the same bytes, end and fault however they arrive; what was decoded is the same when encoded again.
#include "src/http/wire.hpp"
#include "tests/fuzz/property.hpp"

#include <cstdint>

namespace wire = kubeopera::http::wire;

namespace {

struct decoded {
  std::string body;
  std::size_t used = 0;
  bool done = false, bad = false;
  friend bool operator==(const decoded&, const decoded&) = default;
};

decoded decode(std::string_view text, std::size_t step, std::size_t max_out) {
  wire::chunk_decoder decoder;
  decoded out;
  while (!decoder.done() && !out.bad && out.used < text.size()) {
    std::optional<wire::fault> bad;
    auto before = out.body.size();
    auto used = decoder.feed(text.substr(out.used, step), out.body, max_out, bad);
    KUBEOPERA_PROPERTY(out.body.size() - before <= max_out);
    KUBEOPERA_PROPERTY(used > 0 || bad);
    out.used += used;
    out.bad = bad.has_value();
  }
  out.done = decoder.done();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto whole = decode(text, size + 1, size + 1);
  KUBEOPERA_PROPERTY(decode(text, 1, 1) == whole);
  KUBEOPERA_PROPERTY(decode(text, 5, 3) == whole);
  if (!whole.done || whole.body.empty()) return 0;
  std::string again;
  wire::append_chunk_head(again, whole.body.size());
  again += whole.body + "\r\n0\r\n\r\n";
  auto reread = decode(again, 64, 64);
  KUBEOPERA_PROPERTY(reread.done && reread.body == whole.body && reread.used == again.size());
  return 0;
}
