// Pack and index bytes. Formats: gitformat-pack(5).
#include "src/gitops/pack.hpp"

#include "src/gitops/small_deflate.hpp"

#include <algorithm>
#include <libdeflate.h>
#include <memory>
#include <new>

namespace kubeopera::inline v1::gitops::detail {

namespace {

struct free_compressor {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
};

// One a thread: making one costs more than compressing a small object.
libdeflate_compressor* compressor() {
  thread_local std::unique_ptr<libdeflate_compressor, free_compressor> own(libdeflate_alloc_compressor(1));
  if (!own) throw std::bad_alloc();
  return own.get();
}

void put32(std::string& out, std::uint32_t n) {
  char b[4] = {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8), static_cast<char>(n)};
  out.append(b, 4);
}

void put64(std::string& out, std::uint64_t n) {
  put32(out, static_cast<std::uint32_t>(n >> 32));
  put32(out, static_cast<std::uint32_t>(n));
}

// Type and size: 3 bits of type and 4 of size, then 7 bits a byte, lowest first.
void put_entry_header(std::string& out, object_type type, std::size_t size) {
  auto byte = static_cast<unsigned>(type) << 4 | (size & 15);
  size >>= 4;
  while (size) {
    out.push_back(static_cast<char>(byte | 0x80));
    byte = size & 0x7f;
    size >>= 7;
  }
  out.push_back(static_cast<char>(byte));
}

// Trees hold ids, which nothing makes smaller; of a text of some size a general compressor makes more.
void put_compressed(std::string& out, object_type type, std::string_view content) {
  constexpr std::size_t small_text = 2048;
  if (type == object_type::tree && content.size() <= max_small_deflate) return append_tree_deflate(out, content);
  if (content.size() <= small_text) return append_small_deflate(out, content);
  auto start = out.size();
  auto bound = libdeflate_zlib_compress_bound(compressor(), content.size());
  out.resize(start + bound);
  auto used = libdeflate_zlib_compress(compressor(), content.data(), content.size(), out.data() + start, bound);
  out.resize(start + used);
}

constexpr std::uint64_t large_offset = 0x80000000u;

}  // namespace

std::string make_pack_index(std::vector<pack_entry> entries, const oid& pack_id) {
  std::sort(entries.begin(), entries.end(), [](const pack_entry& a, const pack_entry& b) { return a.id < b.id; });
  std::string out("\377tOc", 4);
  out.reserve(1100 + entries.size() * 28);
  put32(out, 2);
  std::size_t at = 0;
  for (unsigned first = 0; first < 256; ++first) {
    while (at < entries.size() && entries[at].id.bytes[0] == first) ++at;
    put32(out, static_cast<std::uint32_t>(at));
  }
  for (const auto& e : entries) out.append(e.id.raw());
  for (const auto& e : entries) put32(out, e.crc);
  std::string large;
  for (const auto& e : entries) {
    if (e.offset < large_offset) {
      put32(out, static_cast<std::uint32_t>(e.offset));
    } else {
      put32(out, static_cast<std::uint32_t>(large_offset | large.size() / 8));
      put64(large, e.offset);
    }
  }
  out += large;
  out.append(pack_id.raw());
  sha1 hasher;
  hasher.update(out);
  out.append(hasher.finish().raw());
  return out;
}

pack_builder::pack_builder() : pack_("PACK\0\0\0\2\0\0\0\0", 12) {}

oid pack_builder::add(object_type type, std::string_view content) {
  oid id = hash_object(type, content);
  add(type, id, content);
  return id;
}

void pack_builder::add(object_type type, const oid& id, std::string_view content) {
  if (!seen_.insert(id).second) return;
  auto offset = pack_.size();
  put_entry_header(pack_, type, content.size());
  put_compressed(pack_, type, content);
  entries_.push_back({id, libdeflate_crc32(0, pack_.data() + offset, pack_.size() - offset), offset});
}

void pack_builder::add_packed(const oid& id, std::string_view packed) {
  if (!seen_.insert(id).second) return;
  entries_.push_back({id, libdeflate_crc32(0, packed.data(), packed.size()), pack_.size()});
  pack_.append(packed);
}

finished_pack pack_builder::finish() {
  auto count = static_cast<std::uint32_t>(entries_.size());
  for (int i = 0; i < 4; ++i) pack_[8 + i] = static_cast<char>(count >> (24 - 8 * i));
  sha1 hasher;
  hasher.update(pack_);
  oid trailer = hasher.finish();
  pack_.append(trailer.raw());
  finished_pack out;
  out.index = make_pack_index(std::move(entries_), trailer);
  out.pack = std::move(pack_);
  out.name = trailer.hex();
  return out;
}

}  // namespace kubeopera::inline v1::gitops::detail
