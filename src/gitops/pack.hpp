// Writes packs (version 2) and their indexes (version 2) in memory: whole objects, no deltas.
#pragma once

#include "src/gitops/oid.hpp"

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

/// One object's place in a pack, as the index records it.
struct pack_entry {
  oid id;
  std::uint32_t crc = 0;  ///< CRC-32 of the packed bytes
  std::uint64_t offset = 0;
};

/// An index of version 2 over entries (any order) of the pack whose trailer is pack_id.
std::string make_pack_index(std::vector<pack_entry> entries, const oid& pack_id);

struct finished_pack {
  std::string pack;
  std::string index;
  std::string name;  ///< 40 hex: the trailer; files are pack-<name>.pack and .idx
};

/// Not thread-safe. Adding an object twice stores it once.
class pack_builder {
 public:
  pack_builder();
  oid add(object_type type, std::string_view content);
  /// The same for content whose id has been computed already.
  void add(object_type type, const oid& id, std::string_view content);
  /// Appends the bytes of an entry of another pack as they are; it must be a whole object.
  void add_packed(const oid& id, std::string_view packed);
  bool contains(const oid& id) const { return seen_.contains(id); }
  std::size_t count() const noexcept { return entries_.size(); }
  std::size_t size() const noexcept { return pack_.size(); }
  /// The pack with header and trailer, and its index. The builder is spent.
  finished_pack finish();

 private:
  std::string pack_;
  std::vector<pack_entry> entries_;
  std::unordered_set<oid, oid_hash> seen_;
};

}  // namespace kubeopera::inline v1::gitops::detail
