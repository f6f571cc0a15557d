// JSON: what is accepted says the same when written again, however it is written; and no object has a key twice.
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

using namespace kubeopera;

namespace {

json::limits small() {
  json::limits lim;
  lim.max_bytes = 64 * 1024;
  lim.max_depth = 16;
  lim.max_nodes = 4000;
  return lim;
}

std::size_t depth_of(const json::value& v) {
  std::size_t below = 0;
  if (auto* a = v.if_array())
    for (const auto& item : *a) below = std::max(below, depth_of(item));
  else if (auto* o = v.if_object())
    for (const auto& m : *o) below = std::max(below, depth_of(m.value()));
  else
    return 0;
  return below + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  auto v = json::read(text, small());
  if (!v) {
    auto e = v.error();
    KUBEOPERA_PROPERTY(e.code() == errc::invalid_argument || e.code() == errc::too_large);
    KUBEOPERA_PROPERTY(e.code() == errc::too_large || e.violations().size() == 1);
    return 0;
  }
  KUBEOPERA_PROPERTY(depth_of(*v) <= 16);
  // Once: 1.0 becomes 1, and -0.0 becomes -0 and then 0. From then on nothing changes.
  auto plain = json::read(json::write(*v));
  KUBEOPERA_PROPERTY(plain.has_value());
  plain = json::read(json::write(*plain));
  KUBEOPERA_PROPERTY(plain.has_value());
  auto canonical = json::write_canonical(*plain);
  for (const auto& again : {json::write(*plain), canonical, json::write_pretty(*plain)}) {
    auto reread = json::read(again);
    KUBEOPERA_PROPERTY(reread && *reread == *plain && json::write_canonical(*reread) == canonical);
  }
  KUBEOPERA_PROPERTY(json::read_object(text, small()).has_value() == v->is_object());
  return 0;
}
