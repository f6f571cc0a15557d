#include "server/services/api/live.hpp"

#include <kubeopera/manifest/render.hpp>

#include <algorithm>

namespace kubeopera::inline v1::api {
namespace {

constexpr duration keep_unasked = std::chrono::minutes(1);

// A missing object is an empty one; other errors stay errors.
task<kube::object> get_or_empty(kube::client& c, const kube::resource_type& type, kube::object_key key) {
  auto r = co_await c.get(type, key);
  if (!r && r.error().code() == errc::not_found) co_return kube::object();
  co_return std::move(r);
}

// The Deployment's own selector says which pods are the app's.
kube::list_options selector(const kube::object& deployment) {
  kube::list_options o;
  if (auto* labels = json::get_object(deployment, {"spec", "selector", "matchLabels"}))
    for (const auto& l : *labels)
      o.label_selector +=
          (o.label_selector.empty() ? "" : ",") + std::string(l.key()) + "=" + std::string(json::as_view(l.value()));
  return o;
}

}  // namespace

live::live(std::shared_ptr<kube::client> host, vcluster_lookup vcluster, std::shared_ptr<prober> probes, live_options options,
           clock& clk)
    : host_(std::move(host)),
      vcluster_(std::move(vcluster)),
      probes_(std::move(probes)),
      options_(std::move(options)),
      clock_(clk) {}

std::shared_ptr<live::entry> live::entry_of(const std::string& id) {
  std::lock_guard lock(mutex_);
  auto now = clock_.steady();
  if (now >= next_sweep_) {
    next_sweep_ = now + keep_unasked;
    std::erase_if(entries_, [&](const auto& kv) { return !kv.second->reading && kv.second->asked_at + keep_unasked <= now; });
  }
  auto& e = entries_[id];
  if (!e) e = std::make_shared<entry>();
  e->asked_at = now;
  return e;
}

std::size_t live::remembered() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

task<std::shared_ptr<const observation>> live::observe(app_row app) {
  auto e = entry_of(app.id);
  while (true) {
    auto ticket = e->changed.ticket();
    {
      std::lock_guard lock(mutex_);
      bool fresh = e->value && e->version == app.version && clock_.steady() - e->read_at < options_.fresh_for;
      if (fresh) co_return e->value;
      if (!e->reading) {
        e->reading = true;
        break;
      }
    }
    KUBEOPERA_CO_CHECK(co_await e->changed.wait(ticket));
  }
  // Whatever way this read ends, the others who wait are told.
  struct turn {
    live& owner;
    entry& e;
    ~turn() {
      {
        std::lock_guard lock(owner.mutex_);
        e.reading = false;
      }
      e.changed.notify();
    }
  } mine{*this, *e};
  auto seen = std::make_shared<observation>(co_await read(app, e));
  if (co_await kubeopera::detail::cancelled())
    co_return error(errc::cancelled, "Cancelled", "the caller has gone");  // half of an observation is nobody's
  std::lock_guard lock(mutex_);
  e->value = seen;
  e->read_at = clock_.steady();
  e->version = app.version;
  co_return std::shared_ptr<const observation>(seen);
}

asio::awaitable<observation> live::read(app_row app, std::shared_ptr<entry> e) {
  observation seen;
  seen.now = clock_.now();
  seen.https_port = options_.apps_https_port;
  seen.http_port = options_.apps_http_port;
  auto resource = co_await get_or_empty(*host_, kube::types::kubeopera_apps(), {options_.system_namespace, app.resource});
  if (!resource) {
    seen.host_error = resource.error();
    co_return seen;
  }
  seen.resource_read = true;
  seen.resource = std::move(*resource);
  if (seen.resource.empty()) co_return seen;
  auto inside = co_await read_vcluster(app, seen);
  if (!inside) seen.vcluster_error = inside.error();
  if (!seen.vcluster_error) co_await probe(app, seen, *e);
  seen.now = clock_.now();
  co_return seen;
}

task<void> live::read_vcluster(const app_row& app, observation& seen) {
  KUBEOPERA_CO_TRY(auto c, co_await vcluster_(app.vcluster));
  KUBEOPERA_CO_TRY(seen.kustomization, co_await get_or_empty(*c, kube::types::kustomizations(), {"flux-system", app.name}));
  KUBEOPERA_CO_TRY(seen.source, co_await get_or_empty(*c, kube::types::git_repositories(), {"flux-system", "fleet"}));
  KUBEOPERA_CO_TRY(seen.deployment, co_await get_or_empty(*c, kube::types::deployments(), {app.name, app.name}));
  if (seen.deployment.empty()) co_return result<void>();
  auto pods = selector(seen.deployment);
  KUBEOPERA_CO_TRY(auto list, co_await kube::list_all(*c, kube::types::pods(), app.name, pods));
  seen.pods = std::move(list.items);
  bool unready = std::any_of(seen.pods.begin(), seen.pods.end(), [](const auto& p) { return !kube::condition_true(p, "Ready"); });
  if (unready) {
    kube::list_options warnings;
    warnings.field_selector = "type=Warning";
    KUBEOPERA_CO_TRY(auto events, co_await kube::list_all(*c, kube::types::events(), app.name, warnings));
    seen.events = std::move(events.items);
  }
  co_return result<void>();
}

asio::awaitable<void> live::probe(const app_row& app, observation& seen, entry& e) {
  if (!wants_probe(app, seen)) co_return;
  bool recent =
      e.probed_revision == app.revision && e.last_probe.ok && clock_.steady() - e.probed_at < options_.probe_again_after;
  if (!recent) {
    e.last_probe = co_await probes_->probe(app.host, app.spec.tls);
    e.probed_at = clock_.steady();
    e.probed_revision = app.revision;
  }
  seen.probe = e.last_probe;
}

task<deploy_status_view> live::status(app_row app) {
  KUBEOPERA_CO_TRY(auto seen, co_await observe(app));
  co_return judge(app, *seen);
}

task<std::vector<kube::object>> live::pods(const app_row& app) {
  KUBEOPERA_CO_TRY(auto c, co_await vcluster_(app.vcluster));
  KUBEOPERA_CO_TRY(auto deployment, co_await get_or_empty(*c, kube::types::deployments(), {app.name, app.name}));
  if (deployment.empty()) co_return std::vector<kube::object>();
  auto pods = selector(deployment);
  KUBEOPERA_CO_TRY(auto list, co_await kube::list_all(*c, kube::types::pods(), app.name, pods));
  std::sort(list.items.begin(), list.items.end(), [](const auto& a, const auto& b) {
    auto ta = json::get_string(a, {"metadata", "creationTimestamp"}), tb = json::get_string(b, {"metadata", "creationTimestamp"});
    return ta != tb ? ta > tb : kube::name_of(a) < kube::name_of(b);
  });
  co_return std::move(list.items);
}

}  // namespace kubeopera::inline v1::api
