// Tree objects and the edit of many directories in one pass; cost follows what changes, not what is there.
#include "src/gitops/tree.hpp"

#include <algorithm>
#include <unordered_set>

namespace kubeopera::inline v1::gitops::detail {

namespace {

error damaged_tree() { return {errc::data_loss, "DamagedTree", "a tree object is damaged"}; }

}  // namespace

result<std::vector<tree_item>> parse_tree(std::string_view bytes) {
  std::vector<tree_item> out;
  out.reserve(bytes.size() / 36 + 1);
  std::size_t at = 0;
  while (at < bytes.size()) {
    tree_item item;
    std::size_t digits = 0, begin = at;
    while (at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '7' && digits < 7) {
      item.mode = item.mode * 8 + static_cast<std::uint32_t>(bytes[at++] - '0');
      ++digits;
    }
    if (!digits || at >= bytes.size() || bytes[at] != ' ') return damaged_tree();
    ++at;
    auto end = bytes.find('\0', at);
    if (end == std::string_view::npos || end == at || bytes.size() - end - 1 < 20) return damaged_tree();
    item.name = bytes.substr(at, end - at);
    if (item.name.find('/') != std::string_view::npos) return damaged_tree();
    at = end + 21;
    item.entry = bytes.substr(begin, at - begin);
    out.push_back(item);
  }
  return out;
}

void append_tree_entry(std::string& out, std::uint32_t mode, std::string_view name, const oid& id) {
  if (mode == mode_directory) {
    out += "40000 ";
  } else if (mode == mode_file) {
    out += "100644 ";
  } else {
    char digits[12];
    int n = 0;
    for (auto m = mode; m; m >>= 3) digits[n++] = static_cast<char>('0' + (m & 7));
    while (n) out.push_back(digits[--n]);
    out.push_back(' ');
  }
  out.append(name);
  out.push_back('\0');
  out.append(id.raw());
}

bool tree_less(std::string_view a, bool a_directory, std::string_view b, bool b_directory) noexcept {
  auto common = std::min(a.size(), b.size());
  if (int c = a.substr(0, common).compare(b.substr(0, common))) return c < 0;
  auto next = [common](std::string_view s, bool directory) {
    return s.size() > common ? static_cast<unsigned char>(s[common]) : directory ? '/' : '\0';
  };
  return next(a, a_directory) < next(b, b_directory);
}

std::shared_ptr<const std::string> tree_cache::get(const oid& id) {
  std::lock_guard lock(mutex_);
  auto it = index_.find(id);
  if (it == index_.end()) return nullptr;
  order_.splice(order_.begin(), order_, it->second);
  return it->second->second;
}

void tree_cache::put(const oid& id, std::shared_ptr<const std::string> bytes) {
  std::lock_guard lock(mutex_);
  if (index_.contains(id)) return;
  bytes_ += bytes->size() + 100;
  order_.emplace_front(id, std::move(bytes));
  index_.emplace(id, order_.begin());
  while (bytes_ > max_bytes_ && order_.size() > 1) {
    bytes_ -= order_.back().second->size() + 100;
    index_.erase(order_.back().first);
    order_.pop_back();
  }
}

bool edited_tree::any() const noexcept { return std::find(changed.begin(), changed.end(), true) != changed.end(); }

namespace {

struct edit_node {
  std::map<std::string_view, edit_node> children;
  int edit = -1;  // index of the edit that ends here
};

class tree_editor {
 public:
  tree_editor(std::span<const directory_edit> edits, const tree_access& access, pack_builder& pack)
      : edits_(edits), access_(access), pack_(pack) {
    out_.changed.resize(edits.size());
    out_.failed.resize(edits.size());
  }

  result<edited_tree> run(std::optional<oid> base) {
    edit_node top;
    for (std::size_t i = 0; i < edits_.size(); ++i) place(top, static_cast<int>(i));
    KUBEOPERA_TRY(auto root, apply(top, base));
    out_.root = root ? *root : store_tree(std::string());
    return std::move(out_);
  }

 private:
  void place(edit_node& top, int index) {
    auto rest = edits_[static_cast<std::size_t>(index)].directory;
    auto* node = &top;
    while (!rest.empty()) {
      auto slash = rest.find('/');
      node = &node->children[rest.substr(0, slash)];
      rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    }
    node->edit = index;
  }

  // The new id of a directory; nullopt when nothing is left in it.
  result<std::optional<oid>> apply(const edit_node& node, std::optional<oid> base) {
    return node.edit >= 0 ? replace(node.edit, base) : merge(node, base);
  }

  result<std::optional<oid>> replace(int index, std::optional<oid> base) {
    auto i = static_cast<std::size_t>(index);
    const auto& files = *edits_[i].files;
    if (files.empty()) {
      out_.changed[i] = base.has_value();
      return std::optional<oid>();
    }
    std::string bytes;
    std::vector<std::pair<oid, const std::string*>> blobs;
    for (const auto& [name, content] : files) {
      blobs.emplace_back(hash_object(object_type::blob, content), &content);
      append_tree_entry(bytes, mode_file, name, blobs.back().first);
    }
    oid id = hash_object(object_type::tree, bytes);
    if (base == id) return std::optional<oid>(id);
    out_.changed[i] = true;
    std::unordered_set<oid, oid_hash> known;
    if (base) {
      KUBEOPERA_TRY(auto old, access_.read(*base));
      KUBEOPERA_TRY(auto items, parse_tree(*old));
      for (const auto& item : items) known.insert(item.id());
    }
    for (const auto& [blob, content] : blobs)
      if (!known.contains(blob)) pack_.add(object_type::blob, blob, *content);
    store_tree(id, std::move(bytes));
    return std::optional<oid>(id);
  }

  result<std::optional<oid>> merge(const edit_node& node, std::optional<oid> base) {
    std::shared_ptr<const std::string> old;
    std::vector<tree_item> items;
    if (base) {
      KUBEOPERA_TRY(old, access_.read(*base));
      KUBEOPERA_TRY(items, parse_tree(*old));
    }
    std::string bytes;
    bytes.reserve((old ? old->size() : 0) + node.children.size() * 48);
    bool differs = false;
    auto obstacles = non_directories(node, items);
    std::vector<std::pair<std::string_view, const edit_node*>> edits;
    for (const auto& [name, child] : node.children) {
      if (obstacles.contains(name))
        fail(child, name);
      else
        edits.emplace_back(name, &child);
    }
    std::sort(edits.begin(), edits.end(), [](auto& a, auto& b) { return tree_less(a.first, true, b.first, true); });
    auto next = edits.begin();
    // What lies between two edits is copied as it is.
    std::string_view rest = old ? std::string_view(*old) : std::string_view();
    auto copy_before = [&](const tree_item& item) {
      auto end = static_cast<std::size_t>(item.entry.data() - rest.data());
      bytes.append(rest.substr(0, end));
      rest.remove_prefix(end);
    };
    auto item = items.begin();
    for (; next != edits.end(); ++next) {
      while (item != items.end() && tree_less(item->name, item->directory(), next->first, true)) ++item;
      bool there = item != items.end() && item->directory() && item->name == next->first;
      if (item != items.end())
        copy_before(*item);
      else
        bytes.append(std::exchange(rest, {}));
      KUBEOPERA_TRY(bool changed, emit(bytes, *next, there ? std::optional<oid>(item->id()) : std::nullopt));
      differs |= changed;
      if (there) rest.remove_prefix(item++->entry.size());
    }
    bytes.append(rest);
    if (!differs) return base;
    if (bytes.empty()) return std::optional<oid>();
    return std::optional<oid>(store_tree(std::move(bytes)));
  }

  // Applies one child and appends its entry; true when it differs from before.
  result<bool> emit(std::string& bytes, const std::pair<std::string_view, const edit_node*>& edit, std::optional<oid> before) {
    KUBEOPERA_TRY(auto after, apply(*edit.second, before));
    if (after) append_tree_entry(bytes, mode_directory, edit.first, *after);
    return after != before;
  }

  static std::unordered_set<std::string_view> non_directories(const edit_node& node, const std::vector<tree_item>& items) {
    std::unordered_set<std::string_view> out;
    for (const auto& item : items)
      if (!item.directory() && node.children.contains(item.name)) out.insert(item.name);
    return out;
  }

  void fail(const edit_node& node, std::string_view name) {
    if (node.edit >= 0) {
      out_.failed[static_cast<std::size_t>(node.edit)] =
          error(errc::failed_precondition, "NotADirectory",
                "the repository has a file where the directory \"" + std::string(name) + "\" should be");
    }
    for (const auto& [ignored, child] : node.children) fail(child, name);
  }

  oid store_tree(std::string bytes) {
    oid id = hash_object(object_type::tree, bytes);
    store_tree(id, std::move(bytes));
    return id;
  }

  void store_tree(const oid& id, std::string bytes) {
    pack_.add(object_type::tree, id, bytes);
    if (access_.made) access_.made(id, std::make_shared<const std::string>(std::move(bytes)));
  }

  std::span<const directory_edit> edits_;
  const tree_access& access_;
  pack_builder& pack_;
  edited_tree out_;
};

}  // namespace

result<edited_tree> edit_tree(std::optional<oid> base, std::span<const directory_edit> edits, const tree_access& access,
                              pack_builder& pack) {
  return tree_editor(edits, access, pack).run(base);
}

}  // namespace kubeopera::inline v1::gitops::detail
