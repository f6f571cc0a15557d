// A model of the API's tables: rows of apps and vClusters, and the outbox, changed together as in one transaction.
#pragma once

#include "server/services/api/store.hpp"
#include "tests/simulation/engine.hpp"

#include <kubeopera/events/outbox_table.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubeopera::simulation {

/// Everything that was ever accepted about one app.
struct app_history {
  api::app_row last;
  std::map<std::int64_t, manifest::app_spec> revisions;
  bool asked_to_go = false;
};

struct outbox_record {
  events::outbox_row row;
  std::int64_t revision = 0;  ///< of the app when the row was written
  bool deletes = false;
  steady_time next_at{};
  std::string claim;
  std::optional<steady_time> claimed_at;
  bool done = false, dead = false;
  bool open() const { return !done && !dead; }
};

class database {
 public:
  explicit database(engine& e) : engine_(e) {}

  // What users do, each one transaction.
  void add_vcluster(const std::string& name);
  void delete_vcluster(const std::string& name);
  /// False where the name is taken or the vCluster is not there.
  bool create_app(const std::string& name, const std::string& vcluster);
  bool update_app(const std::string& id, bool new_image);
  bool delete_app(const std::string& id);

  const std::map<std::string, api::app_row>& apps() const noexcept { return apps_; }
  const std::map<std::string, api::vcluster_row>& vclusters() const noexcept { return vclusters_; }
  const std::map<std::string, app_history>& ever() const noexcept { return ever_; }
  const std::vector<outbox_record>& outbox() const noexcept { return outbox_; }
  /// The row of that resource, or null.
  const api::app_row* app_of_resource(std::string_view resource) const;
  const api::app_row* app_named(std::string_view vcluster, std::string_view name) const;

  // As processes ask.
  void sync_again(const std::string& topic, const std::string& name);
  void start_removal(const std::string& id);
  std::vector<std::string> deleted_apps(const std::vector<std::string>& ids) const;
  void drop_app(const std::string& id);
  void drop_vcluster(const std::string& name);
  std::vector<std::string> deleting_keys() const;
  events::outbox_claim claim(const std::string& token, duration lease, int most);
  void renew(const std::string& token, const std::vector<std::int64_t>& rows);
  bool mark(const events::outbox_row& row, const std::string& token, const events::outbox_mark& m);
  void free(const std::string& token);

  /// Told of each row that is marked as done, and of each that is given up.
  std::function<void(const outbox_record&)> delivered, given_up;

 private:
  void enqueue(const std::string& aggregate, const char* topic, std::int64_t revision, bool deletes);
  outbox_record* held(const std::string& token, std::int64_t seq);

  engine& engine_;
  std::map<std::string, api::app_row> apps_;
  std::map<std::string, api::vcluster_row> vclusters_;
  std::map<std::string, app_history> ever_;
  std::vector<outbox_record> outbox_;
  std::map<std::string, steady_time> freed_;  // vCluster/name -> when its last row went
  int last_app_ = 0;
};

std::shared_ptr<api::row_source> make_rows(std::shared_ptr<process> from, std::shared_ptr<database> db);
std::shared_ptr<events::outbox_table> make_table(std::shared_ptr<process> from, std::shared_ptr<database> db);

}  // namespace kubeopera::simulation
