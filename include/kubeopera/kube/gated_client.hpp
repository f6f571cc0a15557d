// A client for work that needs permission at the moment of each write: a leader's, whose lead may have ended meanwhile.
#pragma once

#include <kubeopera/kube/client.hpp>

#include <functional>
#include <memory>

namespace kubeopera::inline v1::kube {

/// Passes everything on to inner; create, replace, patch, apply and remove only where gate() has no error, which is otherwise
/// their result. gate is called as each write is begun and must not block. Thread safety: as inner and gate.
std::shared_ptr<client> make_gated_client(std::shared_ptr<client> inner, std::function<result<void>()> gate);

}  // namespace kubeopera::inline v1::kube
