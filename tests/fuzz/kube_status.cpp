// An API server's refusals: every answer has a meaning, bounded words and a bounded wait.
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/http/retry_after.hpp>
#include <kubeopera/kube/status.hpp>

using namespace kubeopera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  int code = size > 0 ? 300 + data[0] : 404;
  http::fields headers{{"Retry-After", std::string(text.substr(0, 40))}};
  auto e = kube::error_of_response(code, headers, text);
  KUBEOPERA_PROPERTY(!e.reason().empty() && e.reason().size() <= 128 && !e.message().empty() && e.message().size() <= 4096);
  KUBEOPERA_PROPERTY(e.violations().size() <= 100);
  if (auto wait = e.retry_after()) KUBEOPERA_PROPERTY(wait->count() >= 0 && wait->count() <= 60);
  for (const auto& v : e.violations()) KUBEOPERA_PROPERTY(v.pointer.empty() || v.pointer.front() == '/');
  auto pointer = kube::pointer_of_field(text);
  KUBEOPERA_PROPERTY(pointer.empty() || pointer.front() == '/');
  auto wait = http::parse_retry_after(text, system_time(std::chrono::seconds(1'800'000'000)));
  if (wait) KUBEOPERA_PROPERTY(wait->count() >= 0 && wait->count() <= 60);
  return 0;
}
