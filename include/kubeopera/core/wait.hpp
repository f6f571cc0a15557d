// Two more ways to wait: for the first of two, and on the way out of a cancelled coroutine.
#pragma once

#include <kubeopera/core/async.hpp>

namespace kubeopera::inline v1 {

/// Waits for whichever ends first, then cancels and awaits the other.
asio::awaitable<void> first_of(asio::awaitable<void> a, asio::awaitable<void> b);

/// Runs body to its end even where the caller has been cancelled: for what must be awaited while cleaning up.
asio::awaitable<void> uncancelled(asio::awaitable<void> body);

}  // namespace kubeopera::inline v1
