// Targets and URLs: what is accepted has no second reading, and says the same when written again.
#include "tests/fuzz/property.hpp"

#include <kubeopera/http/url.hpp>

#include <cstdint>

using namespace kubeopera;

namespace {

void check_target(std::string_view text) {
  auto target = http::parse_target(text);
  if (!target) return;
  std::string again;
  for (const auto& segment : target->segments) {
    KUBEOPERA_PROPERTY(segment != "." && segment != "..");
    KUBEOPERA_PROPERTY(segment.find_first_of(std::string_view("/\\%;\0\r\n", 7)) == std::string::npos);
    again += "/" + http::percent_encode(segment);
  }
  if (again.empty()) again = "/";
  auto reread = http::parse_target(again + "?" + http::encode_query(target->query));
  KUBEOPERA_PROPERTY(reread && reread->segments == target->segments && reread->query == target->query);
}

void check_url(std::string_view text) {
  auto url = http::parse_url(text);
  if (!url) return;
  KUBEOPERA_PROPERTY(url->port > 0 && !url->host.empty());
  KUBEOPERA_PROPERTY(url->host.find_first_of("@/?#\\ %") == std::string::npos);
  auto again = http::parse_url(url->origin() + url->target);
  KUBEOPERA_PROPERTY(again && again->host == url->host && again->port == url->port && again->target == url->target &&
                     again->host_is_address == url->host_is_address);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  check_target(text);
  check_url(text);
  auto decoded = http::percent_decode(text);
  if (decoded) KUBEOPERA_PROPERTY(http::percent_decode(http::percent_encode(*decoded)).value() == *decoded);
  return 0;
}
