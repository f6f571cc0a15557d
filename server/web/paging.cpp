#include "server/web/paging.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>

namespace kubeopera::inline v1::web {

std::string encode_cursor(const std::vector<std::string>& parts) {
  json::array a;
  for (const auto& p : parts) a.emplace_back(p);
  return crypto::base64url_encode(json::write(a));
}

result<std::vector<std::string>> decode_cursor(std::string_view cursor, std::size_t count) {
  auto bad = error(errc::invalid_argument, "InvalidCursor", "the cursor is not one that this list gave out")
                 .with_violation("?cursor", "is not valid");
  auto text = crypto::base64url_decode(cursor);
  if (!text) return bad;
  auto v = json::read(*text);
  if (!v || !v->is_array() || v->get_array().size() != count) return bad;
  std::vector<std::string> out;
  for (const auto& p : v->get_array()) {
    if (!p.is_string()) return bad;
    out.emplace_back(json::as_view(p));
  }
  return out;
}

}  // namespace kubeopera::inline v1::web
