// A zlib stream of something small, made quickly: one pass, one block, the fixed codes of RFC 1951.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::gitops::detail {

/// The largest input.
constexpr std::size_t max_small_deflate = 65535;

/// Appends content as a zlib stream to out. A general compressor clears tables of 100 KB and builds codes for each object, which
/// is most of its time on trees and manifests of a few kilobytes; this one gives up about a tenth of the saving for that.
void append_small_deflate(std::string& out, std::string_view content);

/// The same for a tree object: an entry is compared with the one before it, and ids are not searched in. Other bytes come out
/// right too, only longer.
void append_tree_deflate(std::string& out, std::string_view tree);

}  // namespace kubeopera::inline v1::gitops::detail
