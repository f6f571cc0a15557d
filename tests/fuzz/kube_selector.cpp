// Label and field selectors: what is accepted decides about every object, and not differently when asked again.
#include "src/testing/api_selector.hpp"
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

using namespace kubeopera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  using pairs = std::vector<std::pair<std::string, std::string>>;
  const pairs web{{"app", "web"}, {"tier", "front"}}, none;
  auto labels = testing::api::label_selector::parse(text);
  if (labels) {
    auto again = testing::api::label_selector::parse(text);
    KUBEOPERA_PROPERTY(again && again->matches(web) == labels->matches(web) && again->matches(none) == labels->matches(none));
  }
  auto fields = testing::api::field_selector::parse(text);
  // One more requirement never widens the answer.
  if (labels && size > 0 && text.back() != ',') {
    auto narrower = testing::api::label_selector::parse(std::string(text) + ",app=nothing");
    if (narrower) KUBEOPERA_PROPERTY(!narrower->matches(web));
  }
  (void)fields;
  return 0;
}
