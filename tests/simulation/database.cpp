#include "tests/simulation/database.hpp"

#include "server/services/api/service.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

namespace kubeopera::simulation {

void database::enqueue(const std::string& aggregate, const char* topic, std::int64_t revision, bool deletes) {
  outbox_record r;
  r.row.seq = static_cast<std::int64_t>(outbox_.size()) + 1;
  r.row.id = "row-" + std::to_string(r.row.seq);
  r.row.aggregate = aggregate;
  r.row.topic = topic;
  r.revision = revision;
  r.deletes = deletes;
  r.next_at = engine_.now();
  outbox_.push_back(std::move(r));
}

void database::add_vcluster(const std::string& name) {
  api::vcluster_row v;
  v.name = v.label = name;
  v.cloudspace_id = v.cloudspace_name = "space";
  v.tenant_id = "tenant";
  vclusters_[name] = v;
  enqueue(name, "tenant", 0, false);
}

void database::delete_vcluster(const std::string& name) {
  auto it = vclusters_.find(name);
  if (it == vclusters_.end() || it->second.deleting) return;
  for (const auto& [id, a] : apps_)
    if (a.vcluster == name) return;
  it->second.deleting = true;
  enqueue(name, "tenant", 0, true);
}

bool database::create_app(const std::string& name, const std::string& vcluster) {
  auto v = vclusters_.find(vcluster);
  if (v == vclusters_.end() || v->second.deleting || app_named(vcluster, name)) return false;
  // Nobody is so quick as to take a name within two seconds of its being free (a request that is under way may still land).
  auto freed = freed_.find(vcluster + "/" + name);
  if (freed != freed_.end() && engine_.now() < freed->second + 2s) return false;
  char id[40];
  std::snprintf(id, sizeof id, "00000000-0000-7000-8000-%012d", ++last_app_);
  api::app_row a;
  a.id = id;
  a.tenant_id = "tenant";
  a.cloudspace_id = a.cloudspace_name = "space";
  a.vcluster = vcluster;
  a.name = name;
  a.resource = api::app_resource_name(name, a.id);
  a.host = name + "." + vcluster + ".test";
  a.from.actor = "user";
  a.spec.name = name;
  a.spec.image = "registry.test/" + name + ":1";
  a.spec.port = 8080;
  apps_[a.id] = a;
  auto& h = ever_[a.id];
  h.last = a;
  h.revisions[1] = a.spec;
  enqueue(a.resource, "app", 1, false);
  return true;
}

bool database::update_app(const std::string& id, bool new_image) {
  auto it = apps_.find(id);
  if (it == apps_.end() || it->second.deleting) return false;
  auto& a = it->second;
  ++a.revision;
  ++a.version;
  if (new_image)
    a.spec.image = "registry.test/" + a.name + ":" + std::to_string(a.revision);
  else
    a.spec.replicas = static_cast<int>(1 + a.revision % 5);
  auto& h = ever_[id];
  h.last = a;
  h.revisions[a.revision] = a.spec;
  enqueue(a.resource, "app", a.revision, false);
  return true;
}

bool database::delete_app(const std::string& id) {
  auto it = apps_.find(id);
  if (it == apps_.end() || it->second.deleting) return false;
  it->second.deleting = true;
  ever_[id].asked_to_go = true;
  enqueue(it->second.resource, "app", it->second.revision, true);
  return true;
}

const api::app_row* database::app_of_resource(std::string_view resource) const {
  for (const auto& [id, a] : apps_)
    if (a.resource == resource) return &a;
  return nullptr;
}

const api::app_row* database::app_named(std::string_view vcluster, std::string_view name) const {
  for (const auto& [id, a] : apps_)
    if (a.vcluster == vcluster && a.name == name) return &a;
  return nullptr;
}

void database::sync_again(const std::string& topic, const std::string& name) {
  enqueue(name, topic == "app" ? "app" : "tenant", 0, false);
}

void database::start_removal(const std::string& id) {
  auto it = apps_.find(id);
  if (it != apps_.end() && it->second.deleting) it->second.removal_started = true;
}

std::vector<std::string> database::deleted_apps(const std::vector<std::string>& ids) const {
  std::vector<std::string> out;
  for (const auto& id : ids)
    if (ever_.contains(id) && !apps_.contains(id)) out.push_back(id);
  return out;
}

void database::drop_app(const std::string& id) {
  auto it = apps_.find(id);
  if (it == apps_.end() || !it->second.deleting) return;
  freed_[it->second.vcluster + "/" + it->second.name] = engine_.now();
  apps_.erase(it);
}

void database::drop_vcluster(const std::string& name) {
  auto it = vclusters_.find(name);
  if (it != vclusters_.end() && it->second.deleting) vclusters_.erase(it);
}

std::vector<std::string> database::deleting_keys() const {
  std::vector<std::string> out;
  for (const auto& [id, a] : apps_)
    if (a.deleting) out.push_back("app/" + a.resource);
  for (const auto& [name, v] : vclusters_)
    if (v.deleting) out.push_back("tenant/" + name);
  return out;
}

events::outbox_claim database::claim(const std::string& token, duration lease, int most) {
  events::outbox_claim out;
  auto now = engine_.now();
  std::set<std::string> seen;
  for (auto& r : outbox_) {
    if (!r.open() || !seen.insert(r.row.aggregate).second) continue;
    bool free = !r.claimed_at || *r.claimed_at + lease < now;
    if (r.next_at <= now && free && most > 0) {
      --most;
      r.claim = token;
      r.claimed_at = now;
      out.rows.push_back(r.row);  // attempts before this one
      ++r.row.attempts;
    }
  }
  for (const auto& r : outbox_) {
    if (!r.open() || r.claim == token) continue;
    auto due = std::max(r.next_at, r.claimed_at ? *r.claimed_at + lease : r.next_at);
    if (due <= now) continue;
    auto wait = std::max<duration>(due - now, 2ms);
    out.soonest = out.soonest ? std::min(*out.soonest, wait) : wait;
  }
  return out;
}

outbox_record* database::held(const std::string& token, std::int64_t seq) {
  if (seq < 1 || seq > static_cast<std::int64_t>(outbox_.size())) return nullptr;
  auto& r = outbox_[static_cast<std::size_t>(seq - 1)];
  return r.open() && r.claim == token ? &r : nullptr;
}

void database::renew(const std::string& token, const std::vector<std::int64_t>& rows) {
  for (auto seq : rows)
    if (auto* r = held(token, seq)) r->claimed_at = engine_.now();
}

bool database::mark(const events::outbox_row& row, const std::string& token, const events::outbox_mark& m) {
  auto* r = held(token, row.seq);
  if (!r || r->row.attempts != row.attempts + 1) return false;
  r->claim.clear();
  r->claimed_at.reset();
  switch (m.what) {
    case events::verdict::done:
      r->done = true;
      if (delivered) delivered(*r);
      break;
    case events::verdict::again:
      r->next_at = engine_.now() + m.delay;
      break;
    case events::verdict::dead:
      r->dead = true;
      if (given_up) given_up(*r);
      break;
  }
  return true;
}

void database::free(const std::string& token) {
  for (auto& r : outbox_) {
    if (!r.open() || r.claim != token) continue;
    r.claim.clear();
    r.claimed_at.reset();
  }
}

// ---- as processes see it --------------------------------------------------------------------------------------------

namespace {

class model_rows final : public api::row_source {
 public:
  model_rows(std::shared_ptr<process> from, std::shared_ptr<database> db) : from_(std::move(from)), db_(std::move(db)) {}
  task<std::optional<api::app_row>> app_by_resource(std::string resource) override {
    using found = std::optional<api::app_row>;
    std::function<result<found>()> ask = [db = db_, resource]() -> result<found> {
      const auto* a = db->app_of_resource(resource);
      return a ? found(*a) : found();
    };
    co_return co_await call<found>(from_, "read row of " + resource, std::move(ask));
  }
  task<std::optional<api::vcluster_row>> vcluster_by_name(std::string name) override {
    using found = std::optional<api::vcluster_row>;
    std::function<result<found>()> ask = [db = db_, name]() -> result<found> {
      auto it = db->vclusters().find(name);
      return it == db->vclusters().end() ? found() : found(it->second);
    };
    co_return co_await call<found>(from_, "read row of " + name, std::move(ask));
  }
  task<void> sync_again(std::string topic, std::string name) override {
    std::function<result<void>()> again = [db = db_, topic, name]() -> result<void> {
      db->sync_again(topic, name);
      return {};
    };
    co_return co_await call<void>(from_, "outbox row for " + name, std::move(again));
  }
  task<void> start_removal(std::string id) override {
    std::function<result<void>()> start = [db = db_, id]() -> result<void> {
      db->start_removal(id);
      return {};
    };
    co_return co_await call<void>(from_, "start removal of " + id, std::move(start));
  }
  task<std::vector<std::string>> deleted_apps(std::vector<std::string> ids) override {
    using found = std::vector<std::string>;
    std::function<result<found>()> ask = [db = db_, ids]() -> result<found> { return db->deleted_apps(ids); };
    co_return co_await call<found>(from_, "which apps are gone?", std::move(ask));
  }
  task<void> drop_app(std::string id) override {
    std::function<result<void>()> drop = [db = db_, id]() -> result<void> {
      db->drop_app(id);
      return {};
    };
    co_return co_await call<void>(from_, "drop row of " + id, std::move(drop));
  }
  task<void> drop_vcluster(std::string name) override {
    std::function<result<void>()> drop = [db = db_, name]() -> result<void> {
      db->drop_vcluster(name);
      return {};
    };
    co_return co_await call<void>(from_, "drop row of " + name, std::move(drop));
  }
  task<std::vector<std::string>> deleting_keys() override {
    using keys = std::vector<std::string>;
    std::function<result<keys>()> ask = [db = db_]() -> result<keys> { return db->deleting_keys(); };
    co_return co_await call<keys>(from_, "read what is going away", std::move(ask));
  }

 private:
  std::shared_ptr<process> from_;
  std::shared_ptr<database> db_;
};

class model_table final : public events::outbox_table {
 public:
  model_table(std::shared_ptr<process> from, std::shared_ptr<database> db) : from_(std::move(from)), db_(std::move(db)) {}
  task<events::outbox_claim> claim(std::string token, duration lease, int most) override {
    std::function<result<events::outbox_claim>()> ask = [db = db_, token, lease, most]() -> result<events::outbox_claim> {
      return db->claim(token, lease, most);
    };
    co_return co_await call<events::outbox_claim>(from_, "claim", std::move(ask));
  }
  task<void> renew(std::string token, std::vector<std::int64_t> rows) override {
    std::function<result<void>()> renewal = [db = db_, token, rows]() -> result<void> {
      db->renew(token, rows);
      return {};
    };
    co_return co_await call<void>(from_, "renew", std::move(renewal));
  }
  task<bool> mark(events::outbox_row row, std::string token, events::outbox_mark m) override {
    std::function<result<bool>()> marking = [db = db_, row, token, m]() -> result<bool> { return db->mark(row, token, m); };
    co_return co_await call<bool>(from_, "mark " + row.id, std::move(marking));
  }
  task<void> free(std::string token) override {
    std::function<result<void>()> freeing = [db = db_, token]() -> result<void> {
      db->free(token);
      return {};
    };
    co_return co_await call<void>(from_, "free", std::move(freeing));
  }
  task<std::size_t> trim(std::chrono::hours) override { co_return std::size_t(0); }
  task<events::outbox_depth> depth() override { co_return events::outbox_depth(); }

 private:
  std::shared_ptr<process> from_;
  std::shared_ptr<database> db_;
};

}  // namespace

std::shared_ptr<api::row_source> make_rows(std::shared_ptr<process> from, std::shared_ptr<database> db) {
  return std::make_shared<model_rows>(std::move(from), std::move(db));
}
std::shared_ptr<events::outbox_table> make_table(std::shared_ptr<process> from, std::shared_ptr<database> db) {
  return std::make_shared<model_table>(std::move(from), std::move(db));
}

}  // namespace kubeopera::simulation
