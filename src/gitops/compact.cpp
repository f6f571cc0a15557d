// A geometric merge of packs: bytes are copied, nothing is inflated again.
#include "src/gitops/compact.hpp"

#include "src/gitops/files.hpp"
#include "src/gitops/odb.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace kubeopera::inline v1::gitops::detail {

namespace {

constexpr std::uint64_t max_merged_bytes = std::uint64_t(256) << 20;

error damaged_index() { return {errc::data_loss, "DamagedIndex", "a pack's index is damaged"}; }

std::uint32_t get32(std::string_view bytes, std::size_t at) {
  auto b = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])); };
  return b(0) << 24 | b(1) << 16 | b(2) << 8 | b(3);
}

struct small_pack {
  std::string path;  // without extension
  std::uint64_t size = 0;
};

// Those in `except` are not even looked at: there may be many.
std::vector<small_pack> list_packs(const std::string& folder, const std::set<std::string>& except) {
  std::vector<small_pack> out;
  std::error_code ec;
  for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    const auto& path = it->path().native();
    if (!path.ends_with(".idx") || path.compare(folder.size() + 1, 5, "pack-") != 0) continue;
    small_pack p;
    p.path = path.substr(0, path.size() - 4);
    if (except.contains(p.path)) continue;
    struct stat about{};
    if (::stat((p.path + ".pack").c_str(), &about) != 0 || ::access((p.path + ".keep").c_str(), F_OK) == 0) continue;
    p.size = static_cast<std::uint64_t>(about.st_size);
    out.push_back(std::move(p));
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.size < b.size; });
  return out;
}

// Copies a pack's entries; false (and nothing copied) when it holds deltas.
result<bool> copy_entries(const small_pack& source, pack_builder& into) {
  KUBEOPERA_TRY(auto index, read_whole(source.path + ".idx"));
  KUBEOPERA_TRY(auto pack, read_whole(source.path + ".pack"));
  if (!index || !pack) return false;
  KUBEOPERA_TRY(auto entries, parse_pack_index(*index));
  if (pack->size() < 32) return damaged_index();
  std::string_view bytes = *pack;
  auto end_of = [&](std::size_t i) { return i + 1 < entries.size() ? entries[i + 1].offset : bytes.size() - 20; };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].offset < 12 || end_of(i) <= entries[i].offset || end_of(i) > bytes.size() - 20) return damaged_index();
    auto type = static_cast<unsigned char>(bytes[entries[i].offset]) >> 4 & 7;
    if (type == 6 || type == 7) return false;
  }
  for (std::size_t i = 0; i < entries.size(); ++i)
    into.add_packed(entries[i].id, bytes.substr(entries[i].offset, end_of(i) - entries[i].offset));
  return true;
}

}  // namespace

result<std::vector<pack_entry>> parse_pack_index(std::string_view bytes) {
  constexpr std::size_t tables = 8 + 1024;
  if (bytes.size() < tables + 40 || !bytes.starts_with("\377tOc") || get32(bytes, 4) != 2) return damaged_index();
  std::size_t count = get32(bytes, tables - 4);
  if (count > bytes.size() / 28 || bytes.size() < tables + count * 28 + 40) return damaged_index();
  auto crcs = tables + count * 20, offsets = crcs + count * 4, large = offsets + count * 4;
  std::vector<pack_entry> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i].id = oid::from_raw(bytes.data() + tables + i * 20);
    out[i].crc = get32(bytes, crcs + i * 4);
    std::uint64_t offset = get32(bytes, offsets + i * 4);
    if (offset & 0x80000000u) {
      auto at = large + (offset & 0x7fffffffu) * 8;
      if (at + 8 + 40 > bytes.size()) return damaged_index();
      offset = std::uint64_t(get32(bytes, at)) << 32 | get32(bytes, at + 4);
    }
    out[i].offset = offset;
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
  return out;
}

result<compaction> merge_packs(const std::string& repository, std::size_t max_packs, const std::set<std::string>& except) {
  compaction out;
  auto packs = list_packs(repository + "/objects/pack", except);
  if (packs.size() <= max_packs) return out;
  pack_builder merged;
  std::uint64_t total = 0;
  for (const auto& p : packs) {
    // A pack much larger than all smaller ones together stays: each byte is copied a logarithmic number of times.
    bool large = total && out.replaced.size() >= packs.size() / 2 && p.size > 2 * total;
    if (large || total + p.size > max_merged_bytes) break;
    KUBEOPERA_TRY(bool copied, copy_entries(p, merged));
    if (!copied) continue;
    total += p.size;
    out.replaced.push_back(p.path);
  }
  if (out.replaced.size() < 2) return compaction();
  auto done = merged.finish();
  KUBEOPERA_CHECK(write_pack(repository, done.name, done.pack, done.index));
  std::erase(out.replaced, repository + "/objects/pack/pack-" + done.name);
  return out;
}

}  // namespace kubeopera::inline v1::gitops::detail
