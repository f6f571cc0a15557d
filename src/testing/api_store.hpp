// The store: objects as text, one counter of resourceVersions, and for each resource the recent history that watches read.
#pragma once

#include "src/testing/api_kinds.hpp"
#include "src/testing/api_selector.hpp"

#include <kubeopera/core/async.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kubeopera::inline v1::testing::api {

/// One state of one object. Immutable.
struct record {
  std::string ns, name, uid;
  std::uint64_t rv = 0;
  std::string text;                 ///< the object after its kind and apiVersion: "metadata":{...},...}
  string_pairs labels;              ///< sorted
  std::vector<std::string> fields;  ///< values of kind_info::field_labels
};
using record_ptr = std::shared_ptr<const record>;

enum class change : std::uint8_t { added, modified, deleted };

struct event {
  change what = change::added;
  std::uint64_t rv = 0;
  record_ptr now;     ///< for deleted: the last state, with the deletion's resourceVersion
  record_ptr before;  ///< null for added
};

/// The objects of one resource and their history.
struct bucket {
  std::map<std::string, record_ptr, std::less<>> objects;  ///< by "ns/name" or "name"
  std::deque<event> history;
  std::uint64_t first = 0;  ///< sequence number of history.front()
  std::uint64_t lost = 0;   ///< resourceVersion of the newest event that is forgotten
  notifier changed;
};

std::string storage_name(std::string_view ns, std::string_view name);
/// The full object of a record.
json::object parse_record(const kind_info& kind, const record& r);
std::string full_text(const kind_info& kind, const record& r);
/// Makes a record; sets metadata.resourceVersion to rv (0: leaves it out).
record_ptr make_record(const kind_info& kind, json::object object, std::uint64_t rv);
/// The values by which field selectors choose.
std::vector<std::string> field_values(const kind_info& kind, const json::object& object);

/// Which records a request wants.
struct filter {
  std::string ns;
  label_selector labels;
  field_selector fields;
  bool selects() const noexcept { return !labels.empty() || !fields.empty(); }
  bool matches(const kind_info& kind, const record& r) const;
};

/// Thread safety: all members may be called from any thread.
class store {
 public:
  explicit store(std::size_t history) : limit_(history) {}

  record_ptr get(const kind_info& kind, const std::string& key) const;
  std::uint64_t current() const;
  bucket& of(const std::string& storage_key);

  /// Commits if the object is still `expected` (null: absent). `check` runs under the lock just before. Returns false when
  /// somebody was faster.
  struct write {
    std::string key;
    record_ptr expected;
    json::object object;  ///< the new state, or the last one of what is removed
    bool remove = false;
    std::function<std::optional<refusal>()> check;
  };
  outcome<bool> commit(const kind_info& kind, write w, record_ptr& out);

  struct snapshot {
    std::vector<record_ptr> records;  ///< sorted by key, all after `start`
    std::uint64_t rv = 0;
  };
  /// The state now (rv 0) or at an older version; nullopt when that is forgotten.
  std::optional<snapshot> list(const kind_info& kind, const std::string& ns, std::uint64_t rv, const std::string& start) const;
  std::size_t count(const std::string& storage_key, const std::string& ns) const;
  void compact();
  /// Forgets a resource with everything in it, telling its watchers.
  void drop(const kind_info& kind);

  /// Events after a cursor, for watches. Returns false when the cursor is forgotten.
  bool events_after(bucket& b, std::uint64_t& cursor, std::vector<event>& out) const;
  /// A cursor behind the last event with resourceVersion <= rv; false when that is forgotten, with the newest lost version.
  bool seek(bucket& b, std::uint64_t rv, std::uint64_t& cursor, std::uint64_t& lost) const;
  /// The state now, and the cursor that goes on from it.
  snapshot list_and_seek(const kind_info& kind, const std::string& ns, std::uint64_t& cursor) const;

  /// Called under the lock for every committed change; told every object that is there at once.
  using observer = std::function<void(const std::string& storage_key, const event&)>;
  void observe(observer o);
  /// Forgets everything and goes on from version rv: older watches and lists are gone.
  void reset(std::uint64_t rv);
  /// Puts an object back as it was stored.
  void load(const kind_info& kind, json::object object);

  /// Wakes every watch.
  void notify_all();

  std::mutex& lock() const noexcept { return mutex_; }
  /// Under the lock only.
  const bucket* peek(const std::string& storage_key) const;

 private:
  void append(bucket& b, event e);
  snapshot collect(const bucket& b, const std::string& ns, const std::string& start) const;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::unique_ptr<bucket>> buckets_;
  std::uint64_t counter_ = 0;
  std::uint64_t compacted_ = 0;
  observer observer_;
  std::size_t limit_;
};

}  // namespace kubeopera::inline v1::testing::api
