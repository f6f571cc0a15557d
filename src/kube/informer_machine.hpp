// What an informer does next, as a pure state machine: pages, events and errors go in, steps and changes come out.
// No I/O, no clock: waits are part of the step, randomness is given.
#pragma once

#include "src/kube/object_cache.hpp"

#include <kubeopera/core/backoff.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/kube/informer.hpp>

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace kubeopera::inline v1::kube::detail {

/// A change of the copy: now empty means deleted, old empty means added.
struct change {
  object_ptr old, now;
};
using changes = std::vector<change>;

enum class step_kind { list_page, open_watch, read_event };

struct informer_step {
  step_kind kind = step_kind::list_page;
  duration wait = duration::zero();  ///< sleep first
  std::string continue_token;        ///< of list_page
  std::string resource_version;      ///< of open_watch
};

/// Not thread-safe; writes to the cache, which is.
class informer_machine {
 public:
  informer_machine(object_cache& cache, const informer_options& options, std::function<std::uint64_t()> random);

  /// The next step. Taking it clears the wait.
  informer_step next();
  changes on_page(object_list page);
  void on_watch_open();
  changes on_event(watch_event event);
  /// The server ended the watch in an orderly way. lasted is how long it was open.
  void on_watch_end(duration lasted);
  /// The step that was taken failed.
  void on_error(const error& what);

  bool synced() const noexcept { return synced_; }
  const std::string& resource_version() const noexcept { return version_; }

 private:
  void start_list(duration wait);
  changes finish_list(std::string list_version);
  void take_item(object item, changes& out);
  void put(object_key key, object obj, changes& out);
  void drop(const object_key& key, object_ptr last, changes& out);
  bool is_old(const object_key& key, const object& obj, event_type type) const;
  duration jitter(duration most);

  object_cache& cache_;
  bool keep_managed_fields_;
  std::function<std::uint64_t()> random_;
  backoff backoff_;
  duration first_backoff_;
  step_kind state_ = step_kind::list_page;
  duration wait_ = duration::zero();
  std::string continue_;
  std::vector<object> pages_;  // of a list that is not complete
  std::string version_;        // what the copy is current to
  bool synced_ = false;
  bool events_seen_ = false;  // in this watch
  int backward_lists_ = 0;    // lists in a row that were older than the copy
};

/// a < b where both are plain numbers; nullopt where they cannot be compared.
std::optional<bool> version_less(std::string_view a, std::string_view b) noexcept;

}  // namespace kubeopera::inline v1::kube::detail
