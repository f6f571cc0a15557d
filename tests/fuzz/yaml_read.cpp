// YAML: what the strict reader takes, the lax reader reads as the same value, and so does the strict one when it is written
// again.
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/json/write.hpp>
#include <kubeopera/yaml/read.hpp>
#include <kubeopera/yaml/write.hpp>

using namespace kubeopera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  if (size > 8192) return 0;
  auto strict = yaml::read(text);
  auto lax = yaml::read_as_go(text);
  auto all = yaml::read_all(text);
  if (!strict) return 0;
  auto canonical = json::write_canonical(*strict);
  KUBEOPERA_PROPERTY(lax && json::write_canonical(*lax) == canonical);
  KUBEOPERA_PROPERTY(all && all->size() <= 1);
  auto again = yaml::read(yaml::write(*strict));
  KUBEOPERA_PROPERTY(again && json::write_canonical(*again) == canonical);
  return 0;
}
