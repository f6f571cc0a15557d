// Two ways to wait that need Asio's machinery, instantiated once for the module.
#pragma once

#include <kubeopera/core/async.hpp>

namespace kubeopera::inline v1::control::detail {

/// Waits for whichever ends first; cancels and awaits the other.
asio::awaitable<void> first_of(asio::awaitable<void> a, asio::awaitable<void> b);

/// Runs body to its end even where the caller has been cancelled: for what must be awaited on the way out.
asio::awaitable<void> uncancelled(asio::awaitable<void> body);

}  // namespace kubeopera::inline v1::control::detail
