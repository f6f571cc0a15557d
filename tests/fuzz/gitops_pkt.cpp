// What a Git server says: the same lines however they arrive, no success that was not said, and words fit for a log.
#include "src/gitops/pkt.hpp"
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/json/read.hpp>

using namespace kubeopera;
using namespace kubeopera::gitops::detail;

namespace {

struct taken {
  std::vector<pkt> lines;
  bool ok = true;
};

taken run(std::string_view text, std::size_t step) {
  pkt_reader reader;
  taken out;
  while (out.ok && !text.empty()) {
    reader.feed(text.substr(0, step));
    text.remove_prefix(std::min(step, text.size()));
    while (out.ok) {
      auto p = reader.next();
      out.ok = p.has_value();
      if (!p || !*p) break;
      out.lines.push_back(std::move(**p));
    }
  }
  return out;
}

bool same(const taken& a, const taken& b) {
  return a.ok == b.ok && std::equal(a.lines.begin(), a.lines.end(), b.lines.begin(), b.lines.end(),
                                    [](const pkt& x, const pkt& y) { return x.what == y.what && x.payload == y.payload; });
}

void check_words(std::string_view words) {
  KUBEOPERA_PROPERTY(words.size() <= 520);
  for (unsigned char c : words) KUBEOPERA_PROPERTY(c >= 0x20 && c < 0x7f);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  auto whole = run(text, size + 1);
  KUBEOPERA_PROPERTY(same(run(text, 1), whole) && same(run(text, 5), whole));
  for (const char* service : {"", "git-upload-pack", "git-receive-pack"}) {
    advertisement_reader reader{std::string(service)};
    for (const auto& p : whole.lines) {
      auto complete = reader.take(p);
      if (!complete || *complete) break;
    }
    for (const auto& [name, id] : reader.value().refs) KUBEOPERA_PROPERTY(!name.empty() && id.hex().size() == 40);
  }
  for (bool side_band : {false, true}) {
    push_report report(side_band);
    for (const auto& p : whole.lines) {
      auto complete = report.take(p);
      if (!complete || *complete) break;
    }
    auto verdict = report.verdict("refs/heads/main");
    if (verdict) KUBEOPERA_PROPERTY(text.find("unpack ok") != text.npos && text.find("refs/heads/main") != text.npos);
    if (!verdict) KUBEOPERA_PROPERTY(!verdict.error().message().empty());
  }
  check_words(clean_text(text));
  // What we write is read back, and is one line.
  if (size > 0 && size < max_pkt_payload) {
    std::string out;
    append_pkt(out, text);
    auto back = run(out, 4);
    KUBEOPERA_PROPERTY(back.ok && back.lines.size() == 1 && back.lines[0].payload == text);
  }
  return 0;
}
