// The server's inside: its state, and what one request carries through it.
#pragma once

#include "src/testing/api_kinds.hpp"
#include "src/testing/api_status.hpp"
#include "src/testing/api_store.hpp"

#include <kubeopera/http/url.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace kubeopera::inline v1::testing::api {

enum class view : std::uint8_t { plain, table, partial, discovery };

/// A request on its way through the server.
struct request {
  http::request raw;
  http::target target;
  api_user user;
  std::string verb, group, version, plural, ns, name, subresource;
  kind_ptr kind;
  view as = view::plain;
  std::string as_version;  ///< "v1" of a Table
  std::string manager;     ///< the field manager of a write
  bool dry_run = false;
  std::string field_validation = "Warn";
  std::string include_object;  ///< of tables
  std::vector<std::string> warnings;

  std::string query(std::string_view key) const { return std::string(target.get(key).value_or(std::string_view())); }
  bool flag(std::string_view key) const {
    auto v = query(key);
    return v == "true" || v == "1";
  }
};

}  // namespace kubeopera::inline v1::testing::api

namespace kubeopera::inline v1::testing {

struct api_faults::state {
  mutable std::mutex mutex;
  std::vector<api_fault> rules;
  std::atomic<bool> down{false};
  std::unordered_map<std::string, std::uint64_t> cuts;  ///< by resource; "" counts for all
  std::function<void()> wake;                           ///< makes watches look at the counts
  std::uint64_t cut_count(const std::string& resource) const;
  std::optional<api_fault> match(const api::request& r);
};

/// Who a client certificate stands for; each is read once, not with every request of its connection. Thread-safe.
class certificate_users {
 public:
  /// Nobody for what is no certificate or names nobody.
  std::optional<api_user> find(const std::string& der) const;

 private:
  static constexpr std::size_t limit = 1000;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, api_user> known_;
};

struct api_server::state {
  explicit state(api_server_options o);

  api_server_options options;
  api_faults faults;
  api::store store;

  std::shared_ptr<const api::kind_table> kinds() const;
  void set_kinds(std::shared_ptr<const api::kind_table> table);
  std::string now() const { return format_rfc3339(options.time->now()); }

  mutable std::shared_mutex mutex;  ///< of the members below
  std::shared_ptr<const api::kind_table> table;
  std::unordered_map<std::string, api_user> tokens;
  api_log_source log_source;
  mutable std::mutex calls_mutex;
  std::deque<api_call> calls;
  certificate_users certificates;
  std::atomic<std::uint32_t> next_ip{1}, next_port{0};
};

}  // namespace kubeopera::inline v1::testing

namespace kubeopera::inline v1::testing::api {

using server = api_server::state;
using server_ptr = std::shared_ptr<server>;

// api_route.cpp: who asks, for what, and whether they may.
outcome<api_user> authenticate(const server& s, const http::request& r);
std::optional<refusal> route(const server& s, request& r);
std::optional<refusal> authorize(const server& s, const request& r);
std::optional<refusal> check_options(const request& r);
bool allowed(const server& s, const api_access& a);

// api_discovery.cpp, api_openapi.cpp: everything that is not a resource.
outcome<http::response> serve_path(server& s, request& r);
outcome<http::response> serve_openapi(server& s, request& r);

// api_body.cpp
struct body {
  json::object object;                ///< decoded by its type, not yet defaulted
  std::vector<std::string> findings;  ///< unknown and duplicate fields
};
/// The bytes as a JSON value, whatever their content type; findings gets the duplicate keys.
outcome<json::value> parse_body(const request& r, const kind_info& kind, std::vector<std::string>& findings);
/// The body of a POST or PUT.
outcome<body> read_object(const request& r, const kind_info& kind);
/// Decodes an object that a patch has made.
outcome<body> decode_patched(const kind_info& kind, const json::object& patched);
/// Strict: refused; Warn: becomes warnings; Ignore: nothing.
std::optional<refusal> settle_findings(request& r, const kind_info& kind, const std::vector<std::string>& findings);
/// The DeleteOptions of a DELETE or eviction.
outcome<json::object> read_delete_options(request& r);  // sets r.dry_run where the body asks for it

// api_read.cpp, api_watch.cpp, api_table.cpp
outcome<http::response> get_object(server& s, request& r);
outcome<http::response> list_objects(server& s, request& r);
outcome<http::response> watch_objects(const server_ptr& s, request& r);
/// One object in the form that the request asks for.
http::response respond(const server& s, const request& r, int status, const kind_info& kind, const record& rec);
outcome<filter> read_filter(const request& r);
json::object make_table(const server& s, const request& r, const std::vector<json::object>& objects, bool columns);
json::object partial_metadata(const json::object& o);
json::array table_columns(const kind_info& kind);
json::array table_cells(const kind_info& kind, const json::object& o, system_time now);

// api_write.cpp
outcome<http::response> create_object(server& s, request& r);
outcome<http::response> update_object(server& s, request& r);
outcome<http::response> patch_object(server& s, request& r);
/// The steps of a create from a decoded object on. Also used by the server itself.
outcome<record_ptr> store_new(server& s, request& r, const kind_info& kind, json::object object, bool managed);
/// The steps of a change: `change` makes the new object from the live one; run again when somebody was faster.
using change_object = std::function<outcome<json::object>(const json::object& live)>;
outcome<record_ptr> store_change(server& s, request& r, const kind_info& kind, const std::string& ns, const std::string& name,
                                 const change_object& change);
std::string random_suffix();

// api_delete.cpp
outcome<http::response> delete_object(server& s, request& r);
outcome<http::response> delete_collection(server& s, request& r);
struct deletion {
  record_ptr rec;     ///< the object as it is now, or was
  bool gone = false;  ///< removed at once
};
outcome<deletion> remove_object(server& s, request& r, const kind_info& kind, const std::string& ns, const std::string& name,
                                const json::object& options);

// api_subresources.cpp, api_reviews.cpp
asio::awaitable<http::response> serve_log(server_ptr s, request r);
outcome<http::response> serve_subresource(server& s, request& r);
outcome<http::response> serve_review(server& s, request& r);

// api_admission.cpp, api_quota.cpp
std::optional<refusal> admit_create(server& s, request& r, const kind_info& kind, json::object& o);
std::optional<refusal> admit_update(server& s, request& r, const kind_info& kind, const json::object& before,
                                    const json::object& after);
/// Runs under the store's lock.
std::optional<refusal> check_quota(const server& s, const kind_info& kind, const json::object& o);
std::optional<refusal> check_namespace(const server& s, const kind_info& kind, const std::string& ns, std::string_view name);

// api_crd_serving.cpp: what follows from a definition that was written or removed.
void crd_written(server& s, const std::string& name);
void crd_removed(server& s, const json::object& crd);

http::response json_response(int status, const json::object& o);

}  // namespace kubeopera::inline v1::testing::api
