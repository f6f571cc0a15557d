// The answer of an upload-pack, into a store: broken packs are errors and leave the store as it was.
#include "src/gitops/exchange.hpp"
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/gitops/store.hpp>

#include <cstdlib>
#include <filesystem>
#include <unistd.h>

using namespace kubeopera;

namespace {

struct scratch {
  scratch() {
    char name[] = "/tmp/kubeopera-fuzz-XXXXXX";
    path = ::mkdtemp(name);
    store = gitops::open_store(path).value();
  }
  ~scratch() {
    store.reset();
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
  std::shared_ptr<gitops::object_store> store;
};

std::size_t files_in(const std::string& folder) {
  std::error_code ec;
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder, ec)) ++n;
  return n;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static scratch place;
  auto folder = place.path + "/objects/pack";
  auto before = files_in(folder);
  bool stored = false;
  if (size > 0) {
    gitops::detail::fetch_answer answer(data[0] & 1, place.store->begin_pack().value());
    auto text = as_text(data + 1, size - 1);
    bool ok = true;
    while (ok && !text.empty() && !answer.complete()) {
      auto piece = text.substr(0, 100);
      text.remove_prefix(piece.size());
      ok = answer.take(piece).has_value();
    }
    stored = ok && answer.finish();
  }
  if (!stored) KUBEOPERA_PROPERTY(files_in(folder) == before);
  return 0;
}
