// Cursors of lists: only texts come back, as many as were asked for, and they make the same cursor again.
#include "server/web/paging.hpp"
#include "tests/fuzz/property.hpp"
#include "tests/fuzz/text.hpp"

#include <kubeopera/crypto/hash.hpp>

using namespace kubeopera;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = as_text(data, size);
  for (const auto& cursor : {std::string(text), crypto::base64url_encode(text)})
    for (std::size_t count : {1u, 2u}) {
      auto parts = web::decode_cursor(cursor, count);
      if (!parts) continue;
      KUBEOPERA_PROPERTY(parts->size() == count);
      KUBEOPERA_PROPERTY(web::decode_cursor(web::encode_cursor(*parts), count).value() == *parts);
    }
  return 0;
}
