// Loads vCluster clients: Secret, checks, transport; and drops them when their server no longer knows them.
#include "src/vcluster/cache.hpp"

#include <kubeopera/crypto/hash.hpp>
#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/json/value.hpp>
#include <kubeopera/vcluster/resolver.hpp>

#include <atomic>

namespace kubeopera::inline v1::vcluster {

struct resolver::state {
  state(asio::any_io_executor e, std::shared_ptr<kube::client> h, resolver_options o)
      : executor(std::move(e)), host(std::move(h)), options(std::move(o)), memory(options.forget_after) {}
  asio::any_io_executor executor;
  std::shared_ptr<kube::client> host;
  resolver_options options;
  detail::cache memory;

  clock& time() const noexcept { return options.time ? *options.time : clock::real(); }
  logger& log() const { return options.log ? *options.log : logger::none(); }
  // From half of most to all of it, so that entries of one moment do not end in one moment.
  duration spread(duration most) const {
    auto half = static_cast<std::uint64_t>(std::max<duration::rep>(most.count() / 2, 1));
    auto random = options.random ? options.random() : random_u64();
    return duration(static_cast<duration::rep>(half + random % half));
  }
};

namespace {

using state_ptr = std::shared_ptr<resolver::state>;
using detail::loaded;

error not_ready() { return error(errc::not_found, "VClusterNotReady", "the vCluster is not ready"); }

// Watches the answers of one client's server for signs that the credentials are no good any more.
class guarded_transport final : public http::transport {
 public:
  guarded_transport(std::shared_ptr<http::transport> inner, std::weak_ptr<resolver::state> owner, reference which)
      : inner_(std::move(inner)), owner_(std::move(owner)), which_(std::move(which)) {}

  task<http::response> send(http::request req, bool want_stream) override {
    auto answer = co_await inner_->send(std::move(req), want_stream);
    bool refused = answer ? answer->status == 401 : answer.error().reason() == "TlsFailed";
    if (refused) {
      if (auto owner = owner_.lock()) owner->memory.invalidate(which_, client_.load(), owner->time().steady());
    }
    co_return answer;
  }
  void belongs_to(const kube::client* c) noexcept { client_ = c; }

 private:
  std::shared_ptr<http::transport> inner_;
  std::weak_ptr<resolver::state> owner_;
  reference which_;
  std::atomic<const kube::client*> client_{nullptr};
};

error refused_kubeconfig(const error& cause) {
  return error(errc::failed_precondition, "KubeconfigRefused", "the vCluster's kubeconfig is refused")
      .with_violations(cause.violations())
      .with_detail(to_string(cause));
}

result<kube::cluster_access> access_of(const kube::object& kubeconfig_secret, const reference& which) {
  auto encoded = json::get_string(kubeconfig_secret, {"data", "config"});
  if (encoded.empty()) return not_ready();
  auto text = crypto::base64_decode(encoded);
  if (!text) return refused_kubeconfig(text.error());
  auto access = kube::read_kubeconfig(*text, kube::kubeconfig_policy::for_vcluster(which.name, which.host_namespace));
  if (!access) return refused_kubeconfig(access.error());
  return access;
}

result<system_time> end_of(const kube::cluster_access& access, system_time now) {
  if (access.client_certificate_pem.empty()) return system_time::max();
  auto facts = crypto::read_certificate_pem(access.client_certificate_pem);
  if (!facts) return refused_kubeconfig(facts.error());
  if (facts->not_after <= now) {
    return error(errc::failed_precondition, "CertificateExpired", "the certificate in the vCluster's kubeconfig has expired")
        .with_context("not_after", format_rfc3339(facts->not_after));
  }
  return facts->not_after;
}

result<std::shared_ptr<kube::client>> connect(const state_ptr& s, const reference& which, const kube::cluster_access& access) {
  auto to = s->options.connect_to ? s->options.connect_to(access.host) : std::string();
  auto transport = s->options.transport ? s->options.transport(access, to) : kube::make_transport(s->executor, access, to);
  if (!transport) return refused_kubeconfig(transport.error());
  auto guarded = std::make_shared<guarded_transport>(std::move(*transport), s, which);
  auto options = s->options.client;
  options.bearer_token = access.token.reveal();
  if (!options.time) options.time = s->options.time;
  auto made = kube::make_client(guarded, std::move(options));
  guarded->belongs_to(made.get());
  return made;
}

void warn_of_end(const state_ptr& s, const reference& which, detail::entry& e, system_time not_after) {
  auto now = s->time().now();
  if (not_after - now > s->options.warn_before || !s->memory.should_warn(which, e, now)) return;
  s->log().warn("vcluster certificate ends soon",
                {{"vcluster", which.name}, {"namespace", which.host_namespace}, {"not_after", format_rfc3339(not_after)}});
}

task<loaded> load(state_ptr s, reference which, std::shared_ptr<detail::entry> e, std::string known_version,
                  std::shared_ptr<kube::client> known) {
  auto read = co_await s->host->get(kube::types::secrets(), {which.host_namespace, "vc-" + which.name});
  if (!read) {
    if (read.error().code() == errc::not_found) co_return not_ready();
    co_return std::move(read).error().prefixed("the vCluster's Secret cannot be read");
  }
  KUBEOPERA_CO_TRY(auto access, access_of(*read, which));
  loaded out;
  out.secret_version = std::string(kube::resource_version_of(*read));
  KUBEOPERA_CO_TRY(out.not_after, end_of(access, s->time().now()));
  warn_of_end(s, which, *e, out.not_after);
  if (known && !out.secret_version.empty() && out.secret_version == known_version) {
    out.client = std::move(known);
  } else {
    KUBEOPERA_CO_TRY(out.client, connect(s, which, access));
  }
  co_return out;
}

// Ends a load whatever becomes of it, also where the coroutine is destroyed: others wait for it.
class load_turn {
 public:
  load_turn(state_ptr s, reference which, std::shared_ptr<detail::entry> e)
      : state_(std::move(s)), which_(std::move(which)), entry_(std::move(e)) {}
  ~load_turn() {
    if (entry_) state_->memory.give_up(which_, *entry_);
  }
  load_turn(const load_turn&) = delete;
  load_turn& operator=(const load_turn&) = delete;
  result<std::shared_ptr<kube::client>> finish(result<loaded> what) {
    auto kept_for = state_->spread(what ? state_->options.fresh_for : state_->options.failure_kept_for);
    auto e = std::exchange(entry_, nullptr);
    return state_->memory.finish(which_, *e, std::move(what), state_->time().steady() + kept_for);
  }

 private:
  state_ptr state_;
  reference which_;
  std::shared_ptr<detail::entry> entry_;
};

task<std::shared_ptr<kube::client>> take_load(state_ptr s, reference which, detail::cache::turn turn) {
  load_turn guard(s, which, turn.load);
  auto found = co_await load(s, which, turn.load, std::move(turn.known_version), std::move(turn.known));
  if (!found && found.error().code() == errc::cancelled) co_return found.error();
  if (!found) {
    s->log().warn("vcluster not resolved",
                  {{"vcluster", which.name}, {"namespace", which.host_namespace}, {"error", found.error()}});
  }
  co_return guard.finish(std::move(found));
}

task<std::shared_ptr<kube::client>> resolve_slowly(state_ptr s, reference which) {
  if (!kube::is_dns_label(which.host_namespace) || !kube::is_dns_label(which.name)) {
    co_return error(errc::invalid_argument, "InvalidName", "the vCluster's namespace or name is not valid");
  }
  while (true) {
    auto turn = s->memory.take_turn(which, s->time().steady());
    if (turn.ready) co_return std::move(*turn.ready);
    if (turn.load) co_return co_await take_load(s, which, std::move(turn));
    KUBEOPERA_CO_CHECK(co_await turn.wait->changed.wait(turn.ticket));
  }
}

task<std::shared_ptr<kube::client>> ready(std::shared_ptr<kube::client> found) { co_return found; }

}  // namespace

result<reference> reference_of(const kube::object& tenant_resource) {
  auto ns = json::get_string(tenant_resource, {"status", "host_namespace"});
  if (ns.empty()) return not_ready();
  return reference(std::string(json::get_string(tenant_resource, {"spec", "tenant_id"})), std::string(ns),
                   std::string(kube::name_of(tenant_resource)));
}

resolver::resolver(asio::any_io_executor executor, std::shared_ptr<kube::client> host, resolver_options options)
    : state_(std::make_shared<state>(std::move(executor), std::move(host), std::move(options))) {}
resolver::~resolver() = default;

task<std::shared_ptr<kube::client>> resolver::resolve(const reference& which) {
  if (auto found = cached(which)) return ready(std::move(found));
  return resolve_slowly(state_, which);
}

std::shared_ptr<kube::client> resolver::cached(const reference& which) const noexcept {
  return state_->memory.hit(which, state_->time().steady());
}

resolver_stats resolver::stats() const { return state_->memory.stats(); }

void resolver::invalidate(const reference& which) { state_->memory.invalidate(which, nullptr, state_->time().steady()); }

}  // namespace kubeopera::inline v1::vcluster
