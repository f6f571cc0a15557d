// Gathering changes and turning them into one commit.
#include "src/gitops/batch.hpp"

#include "src/gitops/commit.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace kubeopera::inline v1::gitops::detail {

namespace {

constexpr std::size_t cache_bytes = std::size_t(64) << 20;

bool contains_nested(const std::set<std::string, std::less<>>& taken, const std::string& directory) {
  for (auto slash = directory.find('/'); slash != std::string::npos; slash = directory.find('/', slash + 1))
    if (taken.contains(std::string_view(directory).substr(0, slash))) return true;
  auto inside = taken.lower_bound(directory + "/");
  return inside != taken.end() && inside->starts_with(directory + "/");
}

}  // namespace

pending_list take_batch(std::deque<std::shared_ptr<pending_change>>& queue, std::size_t max) {
  pending_list out;
  std::set<std::string, std::less<>> directories;
  std::size_t bytes = 0;
  while (!queue.empty() && out.size() < max && bytes < max_batch_bytes) {
    const auto& directory = queue.front()->what.directory;
    if (contains_nested(directories, directory)) break;
    for (const auto& [name, content] : queue.front()->what.files) bytes += content.size();
    directories.insert(directory);
    queue.front()->taken = true;
    out.push_back(std::move(queue.front()));
    queue.pop_front();
  }
  return out;
}

batch_builder::batch_builder(std::shared_ptr<object_store> store, std::string author_name, std::string author_email)
    : store_(std::move(store)),
      author_name_(std::move(author_name)),
      author_email_(std::move(author_email)),
      cache_(cache_bytes) {}

result<batch_builder::base_commit> batch_builder::load_base(const std::string& base) {
  base_commit out;
  if (base.empty()) return out;
  KUBEOPERA_TRY(auto id, parse_oid(base));
  if (last_.id == id) return last_;
  KUBEOPERA_TRY(auto bytes, store_->read_object(base, "commit"));
  KUBEOPERA_TRY(auto parsed, parse_commit(bytes));
  out.id = id;
  out.tree = parsed.tree;
  out.time = parsed.time;
  return out;
}

result<std::shared_ptr<const std::string>> batch_builder::read_tree(const oid& id) {
  if (auto cached = cache_.get(id)) return cached;
  KUBEOPERA_TRY(auto bytes, store_->read_object(id.hex(), "tree"));
  auto shared = std::make_shared<const std::string>(std::move(bytes));
  cache_.put(id, shared);
  return std::shared_ptr<const std::string>(shared);
}

result<built_batch> batch_builder::build(const pending_list& batch, const std::string& base, std::int64_t now) {
  KUBEOPERA_TRY(auto on, load_base(base));
  // The last change of a directory decides its content; all of them share its fate.
  std::map<std::string_view, std::size_t> place;
  std::vector<directory_edit> edits;
  std::vector<std::size_t> edit_of(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& c = batch[i]->what;
    auto [it, fresh] = place.emplace(c.directory, edits.size());
    if (fresh)
      edits.push_back({c.directory, &c.files});
    else
      edits[it->second].files = &c.files;
    edit_of[i] = it->second;
  }
  tree_access access;
  access.read = [this](const oid& id) { return read_tree(id); };
  access.made = [this](const oid& id, std::shared_ptr<const std::string> bytes) { cache_.put(id, std::move(bytes)); };
  pack_builder pack;
  KUBEOPERA_TRY(auto edited, edit_tree(on.tree, edits, access, pack));
  built_batch out;
  std::vector<const change*> told;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    out.changed.push_back(edited.changed[edit_of[i]]);
    out.failed.push_back(edited.failed[edit_of[i]]);
    bool pressed = batch[i]->what.always && !out.failed.back();
    if (out.changed.back() || pressed) told.push_back(&batch[i]->what);
    out.differs |= pressed;
  }
  out.differs |= edited.any() && edited.root != on.tree;
  if (!out.differs) return out;
  commit_parts parts;
  parts.tree = edited.root;
  parts.parent = on.id;
  parts.name = author_name_;
  parts.email = author_email_;
  parts.time = std::max(now, on.time);  // never before its parent, so that histories sorted by time are right
  parts.message = compose_message(told);
  out.commit = pack.add(object_type::commit, format_commit(parts));
  out.pack = pack.finish();
  last_.id = out.commit;
  last_.tree = parts.tree;
  last_.time = parts.time;
  return out;
}

}  // namespace kubeopera::inline v1::gitops::detail
