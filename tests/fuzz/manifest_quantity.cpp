// Quantities: written again they are the same amount; sums and comparisons hold.
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/manifest/quantity.hpp>

using namespace kubeopera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  auto q = manifest::quantity::parse(text);
  if (!q) return 0;
  auto again = manifest::quantity::parse(q->str());
  KUBEOPERA_PROPERTY(again.has_value());
  // Amounts with a binary suffix are whole bytes when written: what is below one is rounded away from zero.
  if (!text.ends_with('i')) KUBEOPERA_PROPERTY(!(*again < *q) && !(*q < *again));
  KUBEOPERA_PROPERTY(again->str() == manifest::quantity::parse(again->str())->str());
  KUBEOPERA_PROPERTY(q->negative() == (*q < *manifest::quantity::parse("0")));
  auto small = manifest::quantity::parse("1");
  auto sum = *q;
  if (q->units() < 1'000'000'000'000 && q->units() > -1'000'000'000'000) {
    sum += *small;
    KUBEOPERA_PROPERTY(*q < sum);
  }
  return 0;
}
