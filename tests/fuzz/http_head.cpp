// Request heads: the scanner finds the same end however the bytes arrive, and what was accepted says the same when written again.
#include "src/http/wire.hpp"
#include "tests/fuzz/property.hpp"

#include <cstdint>

namespace wire = kubeopera::http::wire;

namespace {

struct scanned {
  std::size_t size = 0;
  bool bad = false;
  friend bool operator==(const scanned&, const scanned&) = default;
};

scanned scan(std::string_view text, std::size_t step) {
  wire::head_scanner scanner;
  scanned out;
  for (std::size_t have = std::min(step, text.size());; have = std::min(have + step, text.size())) {
    std::optional<wire::fault> bad;
    out.size = scanner.scan(text.substr(0, have), 32'768, bad);
    out.bad = bad.has_value();
    if (out.bad || out.size > 0 || have == text.size()) return out;
  }
}

std::string write(const wire::request_head& head) {
  std::string out = head.method + " " + head.target + (head.http_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  for (const auto& [name, value] : head.headers) wire::append_field(out, name, value);
  return out + "\r\n";
}

bool same(const wire::request_head& a, const wire::request_head& b) {
  return a.method == b.method && a.target == b.target && a.http_1_0 == b.http_1_0 && a.keep_alive == b.keep_alive &&
         a.body == b.body && a.content_length == b.content_length &&
         std::equal(a.headers.begin(), a.headers.end(), b.headers.begin(), b.headers.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto whole = scan(text, text.size() + 1);
  KUBEOPERA_PROPERTY(scan(text, 1) == whole);
  KUBEOPERA_PROPERTY(scan(text, 7) == whole);
  if (whole.bad || whole.size == 0) return 0;
  wire::request_head head;
  if (!wire::parse_request_head(text.substr(0, whole.size), head)) {
    KUBEOPERA_PROPERTY(head.headers.count("content-length") <= 1);
    KUBEOPERA_PROPERTY(head.headers.count("transfer-encoding") + head.headers.count("content-length") <= 1);
    KUBEOPERA_PROPERTY(wire::sendable(head.headers));
    auto again = write(head);
    KUBEOPERA_PROPERTY(scan(again, 3).size == again.size());
    wire::request_head reread;
    KUBEOPERA_PROPERTY(!wire::parse_request_head(again, reread));
    KUBEOPERA_PROPERTY(same(head, reread));
  }
  wire::response_head response;
  if (!wire::parse_response_head(text.substr(0, whole.size), false, response)) {
    KUBEOPERA_PROPERTY(response.status >= 100 && response.status <= 999);
    KUBEOPERA_PROPERTY(wire::sendable(response.headers));
  }
  return 0;
}
