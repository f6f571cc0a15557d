// The informer's store.
#include "src/kube/object_cache.hpp"

#include <mutex>

namespace kubeopera::inline v1::kube::detail {

object_ptr object_cache::get(const object_key& key) const {
  std::shared_lock lock(mutex_);
  auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<object_ptr> object_cache::list(const std::string& ns) const {
  std::vector<object_ptr> out;
  std::shared_lock lock(mutex_);
  if (ns.empty()) out.reserve(objects_.size());
  for (const auto& [key, value] : objects_) {
    if (ns.empty() || key.ns == ns) out.push_back(value);
  }
  return out;
}

std::vector<object_ptr> object_cache::by_index(const std::string& value) const {
  std::vector<object_ptr> out;
  std::shared_lock lock(mutex_);
  auto it = by_value_.find(value);
  if (it == by_value_.end()) return out;
  out.reserve(it->second.size());
  for (const auto& key : it->second) out.push_back(objects_.at(key));
  return out;
}

std::vector<object_key> object_cache::keys() const {
  std::vector<object_key> out;
  std::shared_lock lock(mutex_);
  out.reserve(objects_.size());
  for (const auto& [key, value] : objects_) out.push_back(key);
  return out;
}

std::size_t object_cache::size() const {
  std::shared_lock lock(mutex_);
  return objects_.size();
}

object_ptr object_cache::put(const object_key& key, object_ptr now) {
  std::unique_lock lock(mutex_);
  auto& slot = objects_[key];
  if (slot) index_remove(key, *slot);
  index_add(key, *now);
  return std::exchange(slot, std::move(now));
}

object_ptr object_cache::erase(const object_key& key) {
  std::unique_lock lock(mutex_);
  auto it = objects_.find(key);
  if (it == objects_.end()) return nullptr;
  auto old = std::move(it->second);
  objects_.erase(it);
  index_remove(key, *old);
  return old;
}

void object_cache::index_add(const object_key& key, const object& o) {
  if (!index_) return;
  for (auto& value : index_(o)) by_value_[value].insert(key);
}

void object_cache::index_remove(const object_key& key, const object& o) {
  if (!index_) return;
  for (const auto& value : index_(o)) {
    auto it = by_value_.find(value);
    if (it == by_value_.end()) continue;
    it->second.erase(key);
    if (it->second.empty()) by_value_.erase(it);
  }
}

}  // namespace kubeopera::inline v1::kube::detail
