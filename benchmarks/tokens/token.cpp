// The sample token, and operator new with a counter.
#include "benchmarks/tokens/token.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local std::uint64_t count = 0;
}

void* operator new(std::size_t size) {
  ++count;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace tokens_bench {

std::uint64_t allocations() noexcept { return count; }

std::string sample_token() {
  kubeopera::crypto::claims who;
  who.sub = "0193a5b2-6f7e-7c3d-9b1a-2f4c8d5e6a70";
  who.tenant_id = "acme-corp";
  who.email = "dev@acme.example";
  who.roles = {"developer", "viewer"};
  who.permissions = {"apps:read", "apps:write", "cloudspaces:read", "vclusters:read", "logs:read", "config:write"};
  who.exp = kubeopera::clock::real().now() + std::chrono::hours(1);
  return kubeopera::crypto::jwt_signer::make(key).value().sign(who).value();
}

}  // namespace tokens_bench
