#include "tests/simulation/world.hpp"

#include "tests/simulation/promises.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/json/write.hpp>

#include <algorithm>

namespace kubeopera::simulation {
namespace {

// Content that depends on what the real generator's depends on, in a fraction of its time.
class model_renderer final : public app_service::client {
 public:
  task<app_service::render_reply> render(const app_service::render_request& request) override { return reply(request); }

 private:
  static task<app_service::render_reply> reply(app_service::render_request r) {
    app_service::render_reply out;
    out.template_hash = r.app.image;
    bool same = r.context.previous_template_hash == out.template_hash;
    out.template_revision = same ? r.context.previous_template_revision : r.context.revision;
    auto text = r.context.app_id + " " + std::to_string(r.context.revision) + " " + std::to_string(out.template_revision) + " " +
                r.context.host + "\n" + json::write_canonical(json::encode(r.app));
    out.content_hash = std::to_string(std::hash<std::string>()(text));
    out.files["app.yaml"] = std::move(text);
    co_return out;
  }
};

class recording_log final : public logger {
 public:
  recording_log(engine& e, std::string name) : engine_(e), name_(std::move(name)) {}
  void log(level lvl, std::string_view message, std::initializer_list<field> fields) override {
    if (!engine_.recording() || lvl == level::debug) return;
    auto line = name_ + " logs: " + std::string(message);
    for (const auto& f : fields) line += " " + std::string(f.key) + "=" + f.value;
    engine_.record(std::move(line));
  }

 private:
  engine& engine_;
  std::string name_;
};

// One process of ours, restarted for ever.
struct server {
  std::string name;
  int starts = 0;
  std::shared_ptr<process> machine;
  std::unique_ptr<recording_log> log;
  std::unique_ptr<app::controllers> acting;
  std::unique_ptr<control::manager> manager;
};

// How this seed's world is made.
struct plan {
  int servers = 1, vclusters = 1, names = 2, changes = 8;
  duration storm = 25s;
};

class world {
 public:
  world(std::uint64_t seed, bool recording);
  ~world();
  outcome run();

 private:
  void draw_plan();
  void plan_changes();
  void plan_accidents();
  void start(server& s);
  void stop(server& s);
  void restart_after(server& s, duration delay);
  asio::awaitable<void> live(server& s, int start);
  app::controller_parts parts_of(server& s);
  void wake_somebody();
  void change_something();
  void create_something();
  std::vector<std::string> living_apps() const;
  void change_app(const std::string& id);
  void crash();
  void kill(server& s);
  void freeze();
  void freeze_for(std::shared_ptr<process> machine, duration time);
  void flap();
  void overtake();
  duration hold_back(const process& from, const object& resource);
  void begin_vcluster(const std::string& name);
  void end_vcluster(const std::string& name);
  void clear_up();
  bool quiet();

  engine e_;
  virtual_clock clock_{e_};
  scene scene_;
  promises promises_{scene_};
  std::shared_ptr<provisioner> operator_;
  std::vector<std::unique_ptr<server>> servers_;
  std::vector<std::shared_ptr<process>> graveyard_;  // contexts outlive what was made on them
  bool overtaking_ = false;                          // the next update of an app's resource will be overtaken
  plan plan_;
  outcome out_;
};

world::world(std::uint64_t seed, bool recording) : e_(seed, recording) {
  scene_.e = &e_;
  scene_.db = std::make_shared<database>(e_);
  scene_.host = std::make_shared<cluster>(e_, "host");
  scene_.git = std::make_shared<fleet>();
  scene_.host->hold_back = [this](const process& from, const kube::resource_type& type, const object& o) {
    return overtaking_ && type.kind == "KubeOperaApp" ? hold_back(from, o) : duration::zero();
  };
  operator_ = std::make_shared<provisioner>(scene_.host);
  operator_->begin = [this](const std::string& name) { begin_vcluster(name); };
  operator_->end = [this](const std::string& name) { end_vcluster(name); };
  auto kept = operator_.get();
  scene_.host->changed = [this, kept](const actor& who, const kube::resource_type& type, const object_ptr& before,
                                      const object_ptr& now) {
    promises_.host_changed(who, type, before, now);
    if (type.kind == "KubeOperaTenant") kept->see(before, now);
  };
  auto* host = scene_.host.get();
  scene_.host->deleting = [this, host](const actor& who, const kube::resource_type& type, const object& o) {
    promises_.deleting(who, *host, type, o);
  };
  scene_.git->pushed = [this](const fleet_tree& before, const fleet_commit& now) {
    ++out_.commits;
    promises_.pushed(before, now);
  };
  scene_.db->delivered = [this](const outbox_record& r) { promises_.delivered(r); };
  scene_.db->given_up = [this](const outbox_record& r) { promises_.given_up(r); };
  draw_plan();
}

world::~world() {
  for (auto& s : servers_) stop(*s);
}

void world::draw_plan() {
  auto& d = e_.chance();
  plan_.servers = d.chance(400) ? 1 : d.chance(800) ? 2 : 3;
  plan_.vclusters = 1 + static_cast<int>(d.below(2));
  plan_.names = 1 + static_cast<int>(d.below(3));
  plan_.changes = 4 + static_cast<int>(d.below(9));
  plan_.storm = d.between(10s, 30s);
  e_.sky.fails = static_cast<int>(d.below(60));
  e_.sky.lost = static_cast<int>(d.below(60));
  e_.sky.slowest = d.chance(500) ? 20ms : d.between(20ms, 400ms);
  scene_.host->cuts = static_cast<int>(d.below(100));
  scene_.host->repeats = static_cast<int>(d.below(200));
  scene_.host->expiries = static_cast<int>(d.below(100));
}

void world::begin_vcluster(const std::string& name) {
  if (scene_.vclusters.contains(name)) return;
  vcluster_model v;
  v.inside = std::make_shared<cluster>(e_, name);
  v.inside->cuts = scene_.host->cuts;
  v.inside->repeats = scene_.host->repeats;
  v.inside->expiries = scene_.host->expiries;
  v.delivery = std::make_shared<flux>(v.inside, scene_.git);
  auto* delivery = v.delivery.get();
  auto* inside = v.inside.get();
  v.inside->changed = [delivery](const actor&, const kube::resource_type& type, const object_ptr& before, const object_ptr& now) {
    delivery->see(type, before, now);
  };
  v.inside->deleting = [this, inside](const actor& who, const kube::resource_type& type, const object& o) {
    promises_.deleting(who, *inside, type, o);
  };
  scene_.vclusters[name] = std::move(v);
}

void world::end_vcluster(const std::string& name) {
  auto it = scene_.vclusters.find(name);
  if (it != scene_.vclusters.end()) it->second.inside->vanish();
}

// ---- processes ------------------------------------------------------------------------------------------------------

app::controller_parts world::parts_of(server& s) {
  app::controller_parts p;
  p.executor = s.machine->get_executor();
  p.clk = &clock_;
  p.log = s.log.get();
  p.random = [this] { return e_.chance().next(); };
  p.host = make_client(s.machine, scene_.host);
  p.system_namespace = system_namespace;
  p.resolve = [this, machine = s.machine](const vcluster::reference& which) -> task<std::shared_ptr<kube::client>> {
    auto it = scene_.vclusters.find(which.name);
    std::shared_ptr<kube::client> found;
    if (it != scene_.vclusters.end()) found = make_client(machine, it->second.inside);
    if (!found) co_return error(errc::not_found, "VClusterNotReady", "no Secret yet");
    co_return found;
  };
  p.rows = make_rows(s.machine, scene_.db);
  p.outbox = make_table(s.machine, scene_.db);
  p.make_committer = [this, machine = s.machine](std::function<result<void>()> may_push) {
    return make_model_committer(machine, scene_.git, clock_, std::move(may_push));
  };
  p.manifests = std::make_shared<model_renderer>();
  p.delivery.fleet_url = "https://git.test/fleet";
  p.elect_leader = plan_.servers > 1;
  return p;
}

asio::awaitable<void> world::live(server& s, int start) {
  auto ended = co_await s.manager->run();
  s.acting->stop_watches();
  if (e_.recording()) e_.record(s.name + " ends: " + (ended ? "asked to" : to_string(ended.error())));
  if (start == s.starts) restart_after(s, e_.chance().between(100ms, 3s));
}

void world::start(server& s) {
  ++s.starts;
  auto name = s.name + "." + std::to_string(s.starts);
  e_.record(name + " starts");
  s.machine = std::make_shared<process>(e_, name);
  s.log = std::make_unique<recording_log>(e_, name);
  s.acting = std::make_unique<app::controllers>(parts_of(s));
  s.manager = std::make_unique<control::manager>(s.machine->get_executor(), control::manager_options(), *s.log);
  s.acting->add_to(*s.manager);
  auto on_exception = [this, name](std::exception_ptr) { e_.broken("no exception leaves a process", name); };
  spawn(s.machine->get_executor(), live(s, s.starts), on_exception);
}

void world::stop(server& s) {
  if (!s.machine) return;
  s.machine->kill();
  s.manager.reset();
  s.acting.reset();
  graveyard_.push_back(std::move(s.machine));
  s.machine.reset();
}

void world::restart_after(server& s, duration delay) {
  auto start_number = s.starts;
  e_.after(delay, [this, &s, start_number] {
    if (s.starts != start_number) return;
    stop(s);
    start(s);
  });
}

// ---- what happens ---------------------------------------------------------------------------------------------------

void world::wake_somebody() {
  auto& s = *servers_[e_.chance().below(servers_.size())];
  if (s.acting && !e_.chance().chance(200)) s.acting->wake_outbox()();
}

void world::create_something() {
  auto& d = e_.chance();
  auto vcluster = "v" + std::to_string(d.below(static_cast<std::uint64_t>(plan_.vclusters)));
  auto name = std::string("app-") + static_cast<char>('a' + d.below(static_cast<std::uint64_t>(plan_.names)));
  if (!scene_.db->create_app(name, vcluster)) return;
  ++out_.apps;
  e_.record("a user creates " + name + " in " + vcluster);
  // The API makes the namespace early where the app has Secrets.
  auto v = scene_.vclusters.find(vcluster);
  if (v == scene_.vclusters.end() || !d.chance(300)) return;
  auto made = v->second.inside->create({"api", false}, kube::types::namespaces(),
                                       kube::make_object(kube::types::namespaces(), {"", name}));
  if (made) e_.record("its namespace is made for its Secrets");
}

std::vector<std::string> world::living_apps() const {
  std::vector<std::string> ids;
  for (const auto& [id, a] : scene_.db->apps())
    if (!a.deleting) ids.push_back(id);
  return ids;
}

void world::change_app(const std::string& id) {
  if (scene_.db->update_app(id, e_.chance().chance(500))) e_.record("a user changes " + id);
}

void world::change_something() {
  auto& d = e_.chance();
  auto ids = living_apps();
  auto what = d.below(10);
  if (ids.empty() || what < 4) {
    create_something();
  } else {
    const auto& id = ids[d.below(ids.size())];
    if (what < 7) {
      change_app(id);
    } else if (scene_.db->delete_app(id)) {
      e_.record("a user deletes " + id);
    }
  }
  wake_somebody();
}

void world::crash() { kill(*servers_[e_.chance().below(servers_.size())]); }

void world::kill(server& s) {
  if (!s.machine || s.machine->dead()) return;
  e_.count_fault("a process is killed");
  ++out_.crashes;
  e_.record(s.name + " is killed");
  stop(s);
  auto number = s.starts;
  e_.after(e_.chance().between(50ms, 6s), [this, &s, number] {
    if (!s.machine && s.starts == number) start(s);
  });
}

void world::freeze() {
  auto& s = *servers_[e_.chance().below(servers_.size())];
  if (s.machine) freeze_for(s.machine, e_.chance().between(100ms, 40s));
}

void world::freeze_for(std::shared_ptr<process> machine, duration time) {
  if (machine->dead() || machine->frozen()) return;
  e_.count_fault("a process stands still");
  e_.record(machine->name() + " stands still");
  machine->freeze();
  e_.after(time, [this, machine] {
    e_.record(machine->name() + " goes on");
    machine->thaw();
  });
}

// An app is changed; the process that brings this to its resource ends or stands still with the update under way; the app is
// changed again; and the update arrives when the next one has long been written by whoever took the row over.
void world::overtake() {
  auto ids = living_apps();
  if (ids.empty()) return;
  overtaking_ = true;
  change_app(ids[e_.chance().below(ids.size())]);
  wake_somebody();
}

duration world::hold_back(const process& from, const object& resource) {
  overtaking_ = false;
  e_.count_fault("an update is overtaken");
  auto& d = e_.chance();
  auto claim_ends = events::relay_options().lease;
  auto late = claim_ends + d.between(3s, 25s);
  bool dies = d.chance(500);
  auto sender = std::find_if(servers_.begin(), servers_.end(), [&](const auto& s) { return s->machine.get() == &from; });
  e_.after(d.between(0ms, 5ms), [this, &s = **sender, machine = (*sender)->machine, dies, late] {
    if (s.machine != machine) return;
    if (dies)
      kill(s);
    else
      freeze_for(machine, late);
  });
  auto id = std::string(json::get_string(resource, {"spec", "app_id"}));
  e_.after(d.between(10ms, 2s), [this, id] {
    change_app(id);
    wake_somebody();
  });
  return late;
}

void world::flap() {
  if (scene_.vclusters.empty()) return;
  auto it = scene_.vclusters.begin();
  std::advance(it, static_cast<long>(e_.chance().below(scene_.vclusters.size())));
  auto name = it->first;
  e_.count_fault("a vCluster is not ready for a while");
  operator_->set_ready(name, false);
  e_.after(e_.chance().between(100ms, 5s), [this, name] { operator_->set_ready(name, true); });
}

void world::plan_changes() {
  auto& d = e_.chance();
  for (int i = 0; i < plan_.changes; ++i) e_.after(d.between(0ms, plan_.storm), [this] { change_something(); });
  if (d.chance(300)) {
    auto name = "v" + std::to_string(d.below(static_cast<std::uint64_t>(plan_.vclusters)));
    e_.after(plan_.storm + d.between(0ms, 60s), [this, name] {
      scene_.db->delete_vcluster(name);
      wake_somebody();
    });
  }
}

void world::plan_accidents() {
  auto& d = e_.chance();
  for (auto n = d.below(4); n > 0; --n) e_.after(d.between(0ms, plan_.storm), [this] { crash(); });
  for (auto n = d.below(3); n > 0; --n) e_.after(d.between(0ms, plan_.storm), [this] { freeze(); });
  for (auto n = d.below(2); n > 0; --n) e_.after(d.between(0ms, plan_.storm), [this] { flap(); });
  if (d.chance(200)) e_.after(d.between(plan_.storm / 3, plan_.storm), [this] { overtake(); });
}

void world::clear_up() {
  e_.record("the storm is over");
  e_.sky.fails = e_.sky.lost = 0;
  e_.sky.slowest = 20ms;
  for (auto* c : {&*scene_.host}) c->cuts = c->repeats = c->expiries = 0;
  for (auto& [name, v] : scene_.vclusters) v.inside->cuts = v.inside->repeats = v.inside->expiries = 0;
}

outcome world::run() {
  for (int i = 0; i < plan_.servers; ++i) {
    servers_.push_back(std::make_unique<server>());
    servers_.back()->name = "server" + std::to_string(i);
    auto& s = *servers_.back();
    e_.after(e_.chance().between(0ms, 2s), [this, &s] { start(s); });
  }
  for (int i = 0; i < plan_.vclusters; ++i) scene_.db->add_vcluster("v" + std::to_string(i));
  plan_changes();
  plan_accidents();
  e_.after(plan_.storm, [this] { clear_up(); });
  quiet();
  out_.failure = e_.failure();
  out_.fingerprint = e_.fingerprint();
  out_.steps = e_.steps();
  out_.faults = e_.faults();
  out_.virtual_time = e_.elapsed();
  out_.lines = e_.lines();
  return out_;
}

// Runs until everything is as promised and has stayed so for a while. False: it broke, or never got there.
bool world::quiet() {
  constexpr duration patience = 20min;
  // Now and then long enough to see every periodic look at work: of Flux, of the reaper.
  const duration rest = e_.chance().chance(50) ? 130s : 6s;
  constexpr std::uint64_t most_steps = 2'000'000;
  auto look_at = plan_.storm + 60s, limit = plan_.storm + patience;
  std::optional<duration> since;
  std::uint64_t commits = 0;
  while (!e_.failure()) {
    if (!e_.step()) e_.broken("everything settles", "nothing is left to happen");
    if (e_.steps() > most_steps) e_.broken("everything settles", "it never ends");
    if (e_.elapsed() < look_at) continue;
    look_at = e_.elapsed() + 500ms;
    auto why = promises_.unsettled();
    if (why.empty() && !since) {
      since = e_.elapsed();
      commits = out_.commits;
    }
    if (since && !why.empty()) e_.broken("what is settled stays so", why);
    if (since && out_.commits != commits) e_.broken("running it again changes nothing", "there is another commit");
    if (since && e_.elapsed() > *since + rest) return true;
    if (!since && e_.elapsed() > limit) e_.broken("everything settles", why);
  }
  return false;
}

}  // namespace

outcome run_seed(std::uint64_t seed, bool recording) {
  world w(seed, recording);
  return w.run();
}

}  // namespace kubeopera::simulation
