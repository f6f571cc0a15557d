// The floor: the MAC of the same bytes with OpenSSL alone, keyed once, and one-shot.
#include "benchmarks/tokens/token.hpp"

#include <benchmark/benchmark.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>

namespace {

std::string signed_part() {
  auto token = tokens_bench::sample_token();
  return token.substr(0, token.rfind('.'));
}

void raw_keyed_mac(benchmark::State& state) {
  auto text = signed_part();
  const auto& key = tokens_bench::key.reveal();
  EVP_MAC* mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  EVP_MAC_CTX* ctx = EVP_MAC_CTX_new(mac);
  char digest[] = "SHA256";
  OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_construct_end()};
  EVP_MAC_init(ctx, reinterpret_cast<const unsigned char*>(key.data()), key.size(), params);
  unsigned char out[32];
  std::size_t size = 0;
  for (auto _ : state) {
    EVP_MAC_init(ctx, nullptr, 0, nullptr);
    EVP_MAC_update(ctx, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    EVP_MAC_final(ctx, out, &size, sizeof out);
    benchmark::DoNotOptimize(out);
  }
  EVP_MAC_CTX_free(ctx);
  EVP_MAC_free(mac);
}
BENCHMARK(raw_keyed_mac);

void raw_one_shot_mac(benchmark::State& state) {
  auto text = signed_part();
  const auto& key = tokens_bench::key.reveal();
  unsigned char out[32];
  unsigned size = 0;
  for (auto _ : state) {
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         out, &size);
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(raw_one_shot_mac);

}  // namespace

BENCHMARK_MAIN();
