// A local copy of one kind of objects, kept current by listing once and watching from there. Source: client-go's reflector and
// shared informer; Kubernetes API concepts, "efficient detection of changes".
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/log.hpp>
#include <kubeopera/kube/client.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::kube {

/// An object that nobody changes any more; shared between the cache and its readers.
using object_ptr = std::shared_ptr<const object>;

struct informer_options {
  informer_options() = default;
  std::string ns;  ///< "" = all namespaces
  std::string label_selector, field_selector;
  int page_size = 500;
  int watch_timeout_seconds = 300;     ///< each watch ends after this; spread by up to twice so that they do not end together
  bool keep_managed_fields = false;    ///< they are most of an object's bytes and rarely read
  duration resync = duration::zero();  ///< as often every object is delivered again; zero: never
  duration first_backoff = std::chrono::milliseconds(800);
  duration max_backoff = std::chrono::seconds(30);
  /// Values under which an object is found by by_index(); must be pure.
  std::function<std::vector<std::string>(const object&)> index;
  clock* time = nullptr;                  ///< null means clock::real(); must outlive the informer
  std::function<std::uint64_t()> random;  ///< jitter; empty means random_u64()
  logger* log = nullptr;                  ///< must outlive the informer
};

/// What a handler may be told. Empty members are not called. They run one after the other on the informer's own coroutine, must
/// not block, and must not call add_handler().
struct informer_handler {
  informer_handler() = default;
  std::function<void(const object_ptr&)> added;
  std::function<void(const object_ptr& old, const object_ptr& now)> updated;  ///< also on resync, with old == now
  std::function<void(const object_ptr& last)> deleted;                        ///< the last state that was seen
};

/// What an informer has done so far.
struct informer_stats {
  informer_stats() = default;
  std::size_t objects = 0;        ///< in the copy
  std::uint64_t lists = 0;        ///< complete lists; more than one: it had to list again
  std::uint64_t events = 0;       ///< of the watches, bookmarks included
  std::uint64_t errors = 0;       ///< steps that failed
  std::optional<duration> quiet;  ///< since the server last said anything; nullopt before it did
};

/// The local copy.
///
/// Promises: what readers see comes from the API server in its order; where resourceVersions can be compared an object never goes
/// back; an object that was deleted while nobody watched is reported deleted after the next list; an object that was deleted and
/// made again is reported as deleted and added. It outlives any time that the API is down: readers keep the last state.
///
/// Thread safety: all members may be called from any thread, while run() runs.
class informer {
 public:
  informer(std::shared_ptr<client> source, resource_type type, informer_options options = informer_options());
  ~informer();
  informer(const informer&) = delete;
  informer& operator=(const informer&) = delete;

  /// Lists and watches until cancelled; call it once. Keeps what it needs alive. Errors: cancelled.
  task<void> run();
  /// Returns once the first complete list is in the copy. Errors: cancelled.
  task<void> wait_synced();
  bool synced() const noexcept;

  /// The object, or null.
  object_ptr get(const object_key& key) const;
  /// All objects, in no order; only those of ns where it is not empty.
  std::vector<object_ptr> list(const std::string& ns = {}) const;
  /// The objects that options.index gives value for.
  std::vector<object_ptr> by_index(const std::string& value) const;
  std::size_t size() const;
  /// The version up to which the copy is current; "" before the first list.
  std::string resource_version() const;

  /// Told of everything from now on; what is there already is delivered as added, within this call.
  void add_handler(informer_handler handler);
  /// Fires after each change of the copy.
  notifier& changed() noexcept;
  /// What went wrong last, until the next success. For health pages.
  std::optional<error> last_error() const;
  /// For metrics.
  informer_stats stats() const;
  const resource_type& type() const noexcept;

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::kube
