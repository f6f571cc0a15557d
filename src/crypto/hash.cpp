// Digests, HMAC and text encodings over OpenSSL's EVP interface.
#include "src/crypto/openssl.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/crypto/hash.hpp>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

namespace kubeopera::inline v1::crypto {

namespace {

// Fetched once: implicit fetching by EVP_sha256() costs a lookup on each call.
const EVP_MD* algorithm_of(hash_algorithm a) {
  static EVP_MD* const sha1_md = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  static EVP_MD* const sha256_md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  auto* md = a == hash_algorithm::sha1 ? sha1_md : sha256_md;
  must(md != nullptr, "digest not available");
  return md;
}

void digest_once(hash_algorithm a, std::string_view data, std::uint8_t* out) {
  thread_local md_ctx ctx(EVP_MD_CTX_new());
  must(ctx && EVP_DigestInit_ex2(ctx.get(), algorithm_of(a), nullptr) == 1 &&
           EVP_DigestUpdate(ctx.get(), data.data(), data.size()) == 1 && EVP_DigestFinal_ex(ctx.get(), out, nullptr) == 1,
       "digest failed");
}

error bad(const char* reason, const char* message) { return {errc::invalid_argument, reason, message}; }

}  // namespace

sha1_digest sha1(std::string_view data) {
  sha1_digest out;
  digest_once(hash_algorithm::sha1, data, out.data());
  return out;
}

sha256_digest sha256(std::string_view data) {
  sha256_digest out;
  digest_once(hash_algorithm::sha256, data, out.data());
  return out;
}

std::string sha1_hex(std::string_view data) { return to_hex(bytes(sha1(data))); }
std::string sha256_hex(std::string_view data) { return to_hex(bytes(sha256(data))); }

struct hasher::state {
  hash_algorithm algorithm;
  md_ctx ctx{EVP_MD_CTX_new()};
  void start() { must(ctx && EVP_DigestInit_ex2(ctx.get(), algorithm_of(algorithm), nullptr) == 1, "digest failed"); }
};

hasher::hasher(hash_algorithm algorithm) : state_(std::make_unique<state>()) {
  state_->algorithm = algorithm;
  state_->start();
}
hasher::~hasher() = default;
hasher::hasher(hasher&&) noexcept = default;
hasher& hasher::operator=(hasher&&) noexcept = default;

void hasher::update(std::string_view data) {
  must(EVP_DigestUpdate(state_->ctx.get(), data.data(), data.size()) == 1, "digest failed");
}

std::string hasher::finish() {
  std::string out(state_->algorithm == hash_algorithm::sha1 ? 20 : 32, '\0');
  must(EVP_DigestFinal_ex(state_->ctx.get(), reinterpret_cast<unsigned char*>(out.data()), nullptr) == 1, "digest failed");
  state_->start();
  return out;
}

// Contexts that carry the key already. A call takes a free one, or duplicates the first, so that threads never wait for a digest.
struct hmac_sha256::state {
  mac_ctx keyed;
  std::mutex mutex;
  std::vector<mac_ctx> free;

  mac_ctx take() {
    {
      std::lock_guard lock(mutex);
      if (!free.empty()) {
        auto ctx = std::move(free.back());
        free.pop_back();
        return ctx;
      }
    }
    mac_ctx ctx(EVP_MAC_CTX_dup(keyed.get()));
    must(ctx != nullptr, "cannot duplicate a MAC context");
    return ctx;
  }
  void give(mac_ctx ctx) {
    std::lock_guard lock(mutex);
    free.push_back(std::move(ctx));
  }
};

hmac_sha256::hmac_sha256(const secret& key) : state_(std::make_unique<state>()) {
  std::unique_ptr<EVP_MAC, openssl_free<EVP_MAC_free>> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  must(mac != nullptr, "HMAC not available");
  state_->keyed.reset(EVP_MAC_CTX_new(mac.get()));
  char digest[] = "SHA256";
  OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_construct_end()};
  // An empty key needs a non-null pointer: null means "keep the old one".
  const std::string& bytes_of_key = key.reveal();
  must(state_->keyed && EVP_MAC_init(state_->keyed.get(), reinterpret_cast<const unsigned char*>(bytes_of_key.data()),
                                     bytes_of_key.size(), params) == 1,
       "cannot key the HMAC");
}
hmac_sha256::~hmac_sha256() = default;
hmac_sha256::hmac_sha256(hmac_sha256&&) noexcept = default;
hmac_sha256& hmac_sha256::operator=(hmac_sha256&&) noexcept = default;

sha256_digest hmac_sha256::sign(std::string_view data) const {
  auto ctx = state_->take();
  sha256_digest out;
  std::size_t size = 0;
  must(EVP_MAC_init(ctx.get(), nullptr, 0, nullptr) == 1 &&
           EVP_MAC_update(ctx.get(), reinterpret_cast<const unsigned char*>(data.data()), data.size()) == 1 &&
           EVP_MAC_final(ctx.get(), out.data(), &size, out.size()) == 1 && size == out.size(),
       "HMAC failed");
  state_->give(std::move(ctx));
  return out;
}

bool hmac_sha256::verify(std::string_view data, std::string_view mac) const {
  auto expected = sign(data);
  return mac.size() == expected.size() && CRYPTO_memcmp(mac.data(), expected.data(), expected.size()) == 0;
}

std::string to_hex(std::string_view data) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out(data.size() * 2, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) {
    auto c = static_cast<unsigned char>(data[i]);
    out[2 * i] = digits[c >> 4];
    out[2 * i + 1] = digits[c & 15];
  }
  return out;
}

result<std::string> from_hex(std::string_view text) {
  auto value = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (text.size() % 2 != 0) return bad("BadHex", "an odd number of hexadecimal digits");
  std::string out(text.size() / 2, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) {
    int hi = value(text[2 * i]), lo = value(text[2 * i + 1]);
    if (hi < 0 || lo < 0) return bad("BadHex", "not a hexadecimal digit");
    out[i] = static_cast<char>(hi * 16 + lo);
  }
  return out;
}

std::string random_token(std::size_t random_bytes) {
  std::string raw(random_bytes, '\0');
  fill_random(raw.data(), raw.size());
  auto token = base64url_encode(raw);
  OPENSSL_cleanse(raw.data(), raw.size());
  return token;
}

result<void> check_secret_strength(const secret& key, std::string_view what) {
  auto weak = [&](const char* why) { return error(errc::failed_precondition, "WeakSecret", std::string(what) + " " + why); };
  const std::string& text = key.reveal();
  if (text.size() < 32) return weak("is shorter than 32 bytes");
  // A short pattern written again and again has the strength of the pattern.
  for (std::size_t period = 1; period <= 8; ++period) {
    if (std::equal(text.begin() + static_cast<std::ptrdiff_t>(period), text.end(), text.begin()))
      return weak("repeats a short pattern");
  }
  std::string lower = text;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (std::string_view word :
       {"changeme", "change-me", "change_me", "your-secret", "your_secret", "yoursecret", "supersecret", "super-secret",
        "secretsecret", "passwordpassword", "example-secret", "replace-me", "replaceme", "insecure"}) {
    if (lower.find(word) != std::string::npos) return weak("is a well-known placeholder");
  }
  return {};
}

}  // namespace kubeopera::inline v1::crypto
