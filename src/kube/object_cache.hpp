// The informer's store: objects by key and by index value, read from any thread, written by one.
#pragma once

#include <kubeopera/kube/informer.hpp>

#include <functional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kubeopera::inline v1::kube::detail {

struct key_hash {
  std::size_t operator()(const object_key& key) const noexcept {
    auto h = std::hash<std::string>{}(key.name);
    return h ^ (std::hash<std::string>{}(key.ns) + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2));
  }
};

/// Thread-safe. Readers get shared immutable objects.
class object_cache {
 public:
  using index_function = std::function<std::vector<std::string>(const object&)>;
  explicit object_cache(index_function index) : index_(std::move(index)) {}

  object_ptr get(const object_key& key) const;
  std::vector<object_ptr> list(const std::string& ns) const;
  std::vector<object_ptr> by_index(const std::string& value) const;
  std::vector<object_key> keys() const;
  std::size_t size() const;
  /// Stores it and returns what was there.
  object_ptr put(const object_key& key, object_ptr now);
  /// Removes it and returns what was there.
  object_ptr erase(const object_key& key);

 private:
  void index_add(const object_key& key, const object& o);
  void index_remove(const object_key& key, const object& o);

  index_function index_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<object_key, object_ptr, key_hash> objects_;
  std::unordered_map<std::string, std::unordered_set<object_key, key_hash>> by_value_;
};

}  // namespace kubeopera::inline v1::kube::detail
