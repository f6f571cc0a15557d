// Tokens: no unsigned bytes are ever accepted; the quick reader of claims accepts nothing that the thorough one refuses.
#include "src/crypto/claims_reader.hpp"
#include "tests/fuzz/property.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/jwt.hpp>

#include <cstdint>

using namespace kubeopera;
using namespace kubeopera::crypto;

namespace {

constexpr std::int64_t fixed_now = 1'800'000'000;

class fixed_clock final : public kubeopera::clock {
 public:
  system_time now() const override { return system_time(std::chrono::seconds(fixed_now)); }
  steady_time steady() const override { return {}; }
  task<void> sleep(duration) override { return {}; }
};

const fixed_clock clk;
const secret key("Tq7wq0kqX2mJ3s9dL5vB8nC1zR4yH6uE");

std::string sign(std::string_view payload) {
  static const hmac_sha256 mac(key);
  auto text = base64url_encode(R"({"alg":"HS256","typ":"JWT"})") + "." + base64url_encode(payload);
  return text + "." + base64url_encode(bytes(mac.sign(text)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto verifier = jwt_verifier::make(key, jwt_options(), clk).value();
  std::string text(reinterpret_cast<const char*>(data), size);
  KUBEOPERA_PROPERTY(!verifier.verify(text));
  claims quick;
  auto padded = text + std::string(claims_padding, '"');
  bool accepted = read_plain_claims(std::string_view(padded).substr(0, size), jwt_options(), fixed_now, quick);
  auto thorough = verifier.verify(sign(" " + text));
  if (thorough) KUBEOPERA_PROPERTY(!thorough->sub.empty() && thorough->exp > clk.now() - std::chrono::seconds(60));
  if (accepted && size < 5000) {
    KUBEOPERA_PROPERTY(thorough && thorough->sub == quick.sub && thorough->tenant_id == quick.tenant_id);
    KUBEOPERA_PROPERTY(thorough->permissions == quick.permissions && thorough->platform_admin == quick.platform_admin);
  }
  for (auto decode : {base64_decode, base64url_decode}) {
    auto bytes_of_text = decode(text);
    if (bytes_of_text) KUBEOPERA_PROPERTY((decode == base64_decode ? base64_encode : base64url_encode)(*bytes_of_text) == text);
  }
  return 0;
}
