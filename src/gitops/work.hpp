// Threads for what blocks: disk, hashing, compressing. Shared by the committers and remotes of a process.
#pragma once

#include <kubeopera/core/async.hpp>

namespace kubeopera::inline v1::gitops::detail {

offload& disk_work();

}  // namespace kubeopera::inline v1::gitops::detail
