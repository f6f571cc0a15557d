// A generic Kubernetes client: typed by resource_type, untyped in content. Over HTTP or in process.
#pragma once

#include <kubeopera/core/async.hpp>
#include <kubeopera/core/clock.hpp>
#include <kubeopera/http/transport.hpp>
#include <kubeopera/kube/object.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::inline v1::kube {

struct list_options {
  list_options() = default;
  std::string label_selector, field_selector;
  int limit = 500;               ///< page size
  std::string continue_token;    ///< of the previous page
  std::string resource_version;  ///< "" = most recent
  /// The objects will be kept and not changed: managedFields are left out, and each is packed into memory of its own.
  bool for_cache = false;
};

struct object_list {
  std::vector<object> items;
  std::string resource_version;
  std::string continue_token;
};

struct watch_options {
  watch_options() = default;
  std::string label_selector, field_selector;
  std::string resource_version;
  bool bookmarks = true;
  int timeout_seconds = 300;
  bool for_cache = false;  ///< as in list_options
};

enum class event_type { added, modified, deleted, bookmark };

struct watch_event {
  event_type type = event_type::added;
  object obj;
};

/// An open watch. Destroying it closes it.
class watch_stream {
 public:
  virtual ~watch_stream() = default;
  /// The next event; nullopt when the server closed the watch in an orderly way.
  /// Errors: gone (410: list again), unavailable (cut in mid-stream), cancelled.
  virtual task<std::optional<watch_event>> next() = 0;
};

struct write_options {
  write_options() = default;
  std::string field_manager = "kubeopera";
  bool force = false;  ///< server-side apply only
  bool dry_run = false;
  std::string subresource;  ///< "status", "scale" or ""
  bool strict_validation = false;
};

enum class patch_kind { merge, json_patch, strategic };

struct delete_options {
  delete_options() = default;
  std::string propagation;  ///< "", "Background", "Foreground", "Orphan"
  std::string uid;          ///< precondition
  std::string resource_version;
};

struct log_options {
  log_options() = default;
  std::string container;
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<int> tail_lines;
  std::optional<std::int64_t> limit_bytes;
  std::optional<int> since_seconds;
};

/// Thread safety: all members may be called concurrently.
/// Errors of all: those of the transport, and the API server's Status mapped by code and reason (not_found, already_exists,
/// conflict, gone, invalid_argument with one violation a cause, permission_denied, unauthenticated, resource_exhausted with
/// retry_after, unavailable ...). Throttled (429, 503 with Retry-After) requests are repeated within the client's budget.
class client {
 public:
  virtual ~client() = default;
  virtual task<object> get(const resource_type& type, const object_key& key) = 0;
  /// One page.
  virtual task<object_list> list(const resource_type& type, const std::string& ns,
                                 const list_options& options = list_options()) = 0;
  virtual task<object> create(const resource_type& type, const object& obj, const write_options& options = write_options()) = 0;
  /// Replaces; obj's metadata.resourceVersion, where set, is the precondition.
  virtual task<object> replace(const resource_type& type, const object& obj, const write_options& options = write_options()) = 0;
  virtual task<object> patch(const resource_type& type, const object_key& key, patch_kind kind, const json::value& body,
                             const write_options& options = write_options()) = 0;
  /// Server-side apply of obj under options.field_manager.
  virtual task<object> apply(const resource_type& type, const object& obj, const write_options& options = write_options()) = 0;
  /// Deletes; an object that is not there is not_found.
  virtual task<void> remove(const resource_type& type, const object_key& key,
                            const delete_options& options = delete_options()) = 0;
  virtual task<std::unique_ptr<watch_stream>> watch(const resource_type& type, const std::string& ns,
                                                    const watch_options& options) = 0;
  /// A pod's log as bytes.
  virtual task<std::unique_ptr<http::body_source>> logs(const object_key& pod, const log_options& options) = 0;
  /// Any request to the API server; path and query are sent as they are.
  virtual task<http::response> raw(http::request req, bool want_stream = false) = 0;
};

struct client_options {
  client_options() = default;
  std::string bearer_token;
  /// Holds the token instead, and is read anew once a minute and after a 401: a pod's own, which the kubelet renews.
  std::string bearer_token_file;
  std::string user_agent = "kubeopera";
  duration request_timeout = std::chrono::seconds(30);  ///< of one attempt, up to the response's head for streams
  int max_retries = 4;                                  ///< of one call
  int retry_budget = 20;                  ///< retries that all calls of this client share; one comes back each second
  std::size_t max_response = 64u << 20;   ///< bytes of an object or of a page that are read
  clock* time = nullptr;                  ///< null means clock::real(); must outlive the client
  std::function<std::uint64_t()> random;  ///< jitter; empty means random_u64()
};

std::shared_ptr<client> make_client(std::shared_ptr<http::transport> transport, client_options options = client_options());

/// Every page of a list. Restarts from the first page when the continue token has expired.
task<object_list> list_all(client& c, const resource_type& type, const std::string& ns, list_options options = list_options());

}  // namespace kubeopera::inline v1::kube
