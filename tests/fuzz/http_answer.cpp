// Answer heads: what is accepted says the same when written again, and has one framing.
#include "src/http/wire.hpp"
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <algorithm>

namespace wire = kubeopera::http::wire;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  wire::head_scanner scanner;
  std::optional<wire::fault> bad;
  auto length = scanner.scan(text, 32'768, bad);
  if (bad || length == 0) return 0;
  for (bool to_head : {false, true}) {
    wire::response_head head;
    if (wire::parse_response_head(text.substr(0, length), to_head, head)) continue;
    KUBEOPERA_PROPERTY(head.status >= 100 && head.status <= 999 && wire::sendable(head.headers));
    bool chunked = head.headers.count("transfer-encoding") > 0, sized = head.headers.count("content-length") > 0;
    KUBEOPERA_PROPERTY(!(chunked && sized) && head.headers.count("content-length") <= 1);
    bool none = to_head || head.status < 200 || head.status == 204 || head.status == 304;
    KUBEOPERA_PROPERTY(!none || head.body == wire::body_kind::none);
    KUBEOPERA_PROPERTY(head.body != wire::body_kind::until_close || !head.keep_alive);
    std::string again = head.http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ";
    again += std::to_string(head.status) + " \r\n";
    for (const auto& [name, value] : head.headers) wire::append_field(again, name, value);
    again += "\r\n";
    wire::response_head reread;
    KUBEOPERA_PROPERTY(!wire::parse_response_head(again, to_head, reread));
    KUBEOPERA_PROPERTY(reread.status == head.status && reread.body == head.body && reread.keep_alive == head.keep_alive &&
                       reread.content_length == head.content_length &&
                       std::equal(head.headers.begin(), head.headers.end(), reread.headers.begin(), reread.headers.end()));
  }
  return 0;
}
