// Merges small packs that hold only whole objects, as ours do, so that readers meet few packs.
#pragma once

#include "src/gitops/pack.hpp"

#include <kubeopera/core/result.hpp>

#include <set>
#include <string>

namespace kubeopera::inline v1::gitops::detail {

/// Entries of an index of version 2, ordered by offset, without checksums of content. Errors: data_loss.
result<std::vector<pack_entry>> parse_pack_index(std::string_view bytes);

struct compaction {
  std::vector<std::string> replaced;  ///< paths without extension, safe to remove once readers have a fresh view
};

/// Writes one pack in place of the smaller ones when more than max_packs are there; the old ones are still there afterwards.
/// Packs with deltas, with a .keep file or beyond the size limit are left alone. Errors: unavailable, data_loss.
/// The paths in `except` count as gone.
result<compaction> merge_packs(const std::string& repository, std::size_t max_packs, const std::set<std::string>& except);

}  // namespace kubeopera::inline v1::gitops::detail
