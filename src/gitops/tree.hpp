// Tree objects: reading them with bounds checked, writing them in git's order, editing many directories at once.
#pragma once

#include "src/gitops/oid.hpp"
#include "src/gitops/pack.hpp"

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

constexpr std::uint32_t mode_directory = 040000;
constexpr std::uint32_t mode_file = 0100644;

/// An entry that points into the tree's bytes.
struct tree_item {
  std::uint32_t mode = 0;
  std::string_view name;
  std::string_view entry;  ///< all of its bytes, the id last
  oid id() const noexcept { return oid::from_raw(entry.data() + entry.size() - 20); }
  bool directory() const noexcept { return mode == mode_directory; }
};

/// Errors: data_loss.
result<std::vector<tree_item>> parse_tree(std::string_view bytes);
/// Appends one entry.
void append_tree_entry(std::string& out, std::uint32_t mode, std::string_view name, const oid& id);
/// Git's order: names compare as bytes, a directory as if it ended in '/'.
bool tree_less(std::string_view a, bool a_directory, std::string_view b, bool b_directory) noexcept;

/// Tree bytes by id, least recently used out first. Thread-safe.
class tree_cache {
 public:
  explicit tree_cache(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  std::shared_ptr<const std::string> get(const oid& id);
  void put(const oid& id, std::shared_ptr<const std::string> bytes);

 private:
  using item = std::pair<oid, std::shared_ptr<const std::string>>;
  std::mutex mutex_;
  std::list<item> order_;
  std::unordered_map<oid, std::list<item>::iterator, oid_hash> index_;
  std::size_t bytes_ = 0, max_bytes_;
};

/// Where edits read trees from and tell of new ones.
struct tree_access {
  std::function<result<std::shared_ptr<const std::string>>(const oid&)> read;
  std::function<void(const oid&, std::shared_ptr<const std::string>)> made;  ///< may be empty
};

/// New content of one directory; empty files remove it.
struct directory_edit {
  std::string_view directory;
  const std::map<std::string, std::string>* files = nullptr;
};

struct edited_tree {
  oid root;
  std::vector<bool> changed;                 ///< for each edit: its directory differs from the base
  std::vector<std::optional<error>> failed;  ///< for each edit: why it could not be done (the others were)
  bool any() const noexcept;
};

/// Applies edits to the tree `base` (none: an empty repository); new objects go into pack. Reads only trees on the edited paths.
/// No edit's directory may be equal to or inside another's. Errors: what access.read returns, data_loss.
result<edited_tree> edit_tree(std::optional<oid> base, std::span<const directory_edit> edits, const tree_access& access,
                              pack_builder& pack);

}  // namespace kubeopera::inline v1::gitops::detail
