// The key, the token and the counting of allocations that all token benchmarks share.
#pragma once

#include <kubeopera/crypto/jwt.hpp>

#include <cstdint>
#include <string>

namespace tokens_bench {

inline const kubeopera::secret key("Tq7wq0kqX2mJ3s9dL5vB8nC1zR4yH6uE");

/// A token as the identity service issues it: two roles, six permissions, valid for an hour.
std::string sample_token();

/// Calls of operator new on this thread since it began.
std::uint64_t allocations() noexcept;

}  // namespace tokens_bench
