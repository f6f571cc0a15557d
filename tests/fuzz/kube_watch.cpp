// What API servers stream and list: the same lines however they arrive; a decoded object is the one that the text says.
#include "src/kube/watch.hpp"
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

#include <vector>

using namespace kubeopera;
using namespace kubeopera::kube::detail;

namespace {

struct cut {
  std::vector<std::string> lines, objects;
  bool ok = true, half = false;
  friend bool operator==(const cut&, const cut&) = default;
};

cut run(std::string_view text, std::size_t step) {
  line_framer framer(4096);
  decoder decode;
  cut out;
  while (out.ok && !text.empty()) {
    framer.feed(text.substr(0, step));
    text.remove_prefix(std::min(step, text.size()));
    while (out.ok) {
      auto line = framer.next();
      out.ok = line.has_value();
      if (!line || !*line) break;
      out.lines.emplace_back(**line);
      auto event = decode.event(**line);
      out.objects.push_back(event ? json::write(event->obj) : event.error().reason());
    }
  }
  out.half = framer.half_line();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  auto whole = run(text, size + 1);
  KUBEOPERA_PROPERTY(run(text, 1).lines == whole.lines);
  KUBEOPERA_PROPERTY(run(text, 7) == run(text, 3));
  static decoder decode;
  auto list = decode.list(std::string(text), kube::types::pods());
  if (list)
    for (const auto& item : list->items) KUBEOPERA_PROPERTY(item.contains("kind") && item.contains("apiVersion"));
  auto fast = decode.document(std::string(text));
  json::limits lim;
  lim.max_depth = 200;
  auto strict = json::read_object(text, lim);
  if (strict && fast) KUBEOPERA_PROPERTY(json::write_canonical(*fast) == json::write_canonical(*strict));
  return 0;
}
