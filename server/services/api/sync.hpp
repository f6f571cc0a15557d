// Makes the custom resources on the host cluster say what the database says: one resource a row, never an older revision over a
// newer. Level-based: it gets a name, reads both sides and closes the gap; running it twice changes nothing.
#pragma once

#include "server/services/api/store.hpp"

#include <kubeopera/control/controller.hpp>
#include <kubeopera/kube/client.hpp>

#include <memory>
#include <string>

namespace kubeopera::inline v1::api {

/// A cluster's error as one of ours: that it does not know or allow the platform is no answer to a caller and no end of an
/// attempt, but something that is down until somebody mends it.
error from_cluster(const error& e);

/// What remains of a row that is being deleted.
enum class remainder { none, waiting };

/// Thread-safe.
class resource_sync {
 public:
  resource_sync(std::shared_ptr<row_source> rows, std::shared_ptr<kube::client> host, std::string ns, clock& clk = clock::real())
      : rows_(std::move(rows)), host_(std::move(host)), ns_(std::move(ns)), clock_(clk) {}
  /// For outbox rows. Resources are made here only: the claim of a row lets one process at a time do it.
  /// Errors: unavailable and the like (try again); invalid_argument: the API server refuses the resource (dead letter).
  task<remainder> sync_app(const std::string& resource);
  task<remainder> sync_tenant(const std::string& name);
  /// For resources that go or have gone: drops the row of one that is gone, removes one whose row is gone, and has the outbox
  /// make one again that should be there. Errors: unavailable and the like.
  task<remainder> reap_app(const std::string& resource);
  task<remainder> reap_tenant(const std::string& name);

 private:
  /// @param since when the row was read
  task<remainder> ensure(const kube::resource_type& type, const std::string& name, const json::value& spec, std::int64_t revision,
                         const origin& from, steady_time since);
  task<void> annotate(const kube::resource_type& type, const kube::object& there, const origin& from);
  task<remainder> make_again(const kube::resource_type& type, const char* topic, const std::string& name);
  task<remainder> drop_when_gone(app_row row);
  /// @param from who asked, told to the one who cleans up after it; empty: nobody did
  task<remainder> remove(const kube::resource_type& type, const std::string& name, const origin& from);
  task<remainder> remove_app(app_row row, steady_time since);
  task<remainder> remove_orphan(std::string resource);
  std::shared_ptr<row_source> rows_;
  std::shared_ptr<kube::client> host_;
  std::string ns_;
  clock& clock_;
};

/// Waits for resources of deleted rows to disappear, then drops the rows. Keys are "app/<resource>" and "tenant/<name>".
class row_reaper final : public control::reconciler {
 public:
  explicit row_reaper(std::shared_ptr<resource_sync> sync) : sync_(std::move(sync)) {}
  task<control::outcome> reconcile(const std::string& key) override;

 private:
  std::shared_ptr<resource_sync> sync_;
};

}  // namespace kubeopera::inline v1::api
