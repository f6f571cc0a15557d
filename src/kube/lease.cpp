// The election's shell: does what the machine says and runs the leader's body exactly while leadership holds.
#include "src/kube/lease_machine.hpp"

#include <kubeopera/core/wait.hpp>
#include <kubeopera/kube/lease.hpp>

#include <atomic>
#include <mutex>

namespace kubeopera::inline v1::kube {

struct leader_elector::state {
  std::shared_ptr<client> api;
  lease_options options;
  notifier changed;
  // Read from any thread: the fence and, in the steady clock's ticks, until when it holds (0: not leading).
  std::atomic<std::int64_t> fence{0};
  std::atomic<steady_time::rep> until{0};
  mutable std::mutex mutex;
  std::string holder;

  clock& time() const { return options.time ? *options.time : clock::real(); }
  logger& log() const { return options.log ? *options.log : logger::none(); }
  std::uint64_t random() const { return options.random ? options.random() : random_u64(); }
  bool leading() const noexcept { return time().steady().time_since_epoch().count() < until.load(); }
};

namespace {

using state_ptr = std::shared_ptr<leader_elector::state>;
using detail::lease_machine;
using detail::lease_step;
using detail::lease_step_kind;

// The leader's body while it runs.
struct leadership {
  background body;
  std::shared_ptr<std::atomic<bool>> ended;  // by itself, not because it was stopped
  bool running = false;
};

asio::awaitable<void> run_body(leader_body body, std::int64_t fence, std::shared_ptr<std::atomic<bool>> ended) {
  co_await body(fence);
  *ended = true;
}

void publish(leader_elector::state& s, const lease_machine& machine, bool leading) {
  auto until = leading ? machine.leads_until().time_since_epoch().count() : 0;
  s.fence = machine.transitions();
  bool was = s.until.exchange(until) != 0;
  bool other_holder = false;
  {
    std::lock_guard lock(s.mutex);
    other_holder = s.holder != machine.holder();
    if (other_holder) s.holder = machine.holder();
  }
  if (other_holder && s.options.new_leader) s.options.new_leader(machine.holder());
  if (was != leading) {
    s.log().info(
        leading ? "leadership gained" : "leadership lost",
        {{"lease", s.options.name}, {"identity", s.options.identity}, {"fence", static_cast<long long>(machine.transitions())}});
    s.changed.notify();
  }
}

task<void> end_body(leadership& own) {
  if (!own.running) co_return result<void>();
  own.body.stop();
  KUBEOPERA_CO_CHECK(co_await own.body.join());
  own.running = false;
  co_return result<void>();
}

// Brings the body in line with what the machine says.
task<void> follow(state_ptr s, const lease_machine& machine, const leader_body& body, leadership& own) {
  bool leading = machine.leading(s->time().steady());
  publish(*s, machine, leading);
  if (!leading) co_return co_await end_body(own);
  if (own.running) co_return result<void>();
  auto executor = co_await current_executor();
  own.ended = std::make_shared<std::atomic<bool>>(false);
  own.running = true;
  own.body = background::start(executor, run_body(body, machine.transitions(), own.ended));
  co_return result<void>();
}

// A request may take as long as it can still be of use.
duration time_for(const leader_elector::state& s, const lease_machine& machine) {
  auto now = s.time().steady();
  if (!machine.leading(now)) return s.options.renew_deadline;
  return std::max<duration>(machine.leads_until() - now, std::chrono::milliseconds(1));
}

task<void> read_lease(state_ptr s, lease_machine& machine) {
  auto op = s->api->get(types::leases(), {s->options.ns, s->options.name});
  auto lease = co_await with_deadline<object>(time_for(*s, machine), std::move(op));
  if (lease) {
    machine.on_read(std::move(*lease), s->time().steady());
  } else if (lease.error().code() == errc::not_found) {
    machine.on_read(std::nullopt, s->time().steady());
  } else {
    co_return lease.error();
  }
  co_return result<void>();
}

task<void> write_lease(state_ptr s, lease_machine& machine, lease_step step) {
  auto sent = s->time().steady();
  auto op = step.kind == lease_step_kind::create ? s->api->create(types::leases(), step.body)
                                                 : s->api->replace(types::leases(), step.body);
  KUBEOPERA_CO_TRY(auto lease, co_await with_deadline<object>(time_for(*s, machine), std::move(op)));
  machine.on_written(std::move(lease), sent, s->time().steady());
  co_return result<void>();
}

task<void> take(state_ptr s, lease_machine& machine, lease_step step) {
  switch (step.kind) {
    case lease_step_kind::wait:
      co_return co_await s->time().sleep(step.wait);
    case lease_step_kind::read:
      co_return co_await read_lease(s, machine);
    case lease_step_kind::create:
    case lease_step_kind::update:
      co_return co_await write_lease(s, machine, std::move(step));
  }
  co_return result<void>();
}

// Steps until cancelled (an error) or until the body ended by itself.
task<void> elect(state_ptr s, lease_machine& machine, const leader_body& body, leadership& own) {
  while (true) {
    auto step = machine.next(s->time().steady(), s->time().now());
    KUBEOPERA_CO_CHECK(co_await follow(s, machine, body, own));
    if (own.running && *own.ended) co_return result<void>();
    auto done = co_await take(s, machine, std::move(step));
    if (done) continue;
    if (done.error().code() == errc::cancelled) co_return done.error();
    s->log().warn("lease step failed", {{"lease", s->options.name}, {"error", done.error()}});
    machine.on_error(done.error());
  }
}

asio::awaitable<void> release(state_ptr s, lease_machine& machine) {
  auto lease = machine.release(s->time().now());
  if (!lease) co_return;
  auto op = s->api->replace(types::leases(), *lease);
  auto written = co_await with_deadline<object>(s->options.retry_period, std::move(op));
  if (!written) s->log().warn("lease not released", {{"lease", s->options.name}, {"error", written.error()}});
  machine.on_released();
}

// The body ends first, then the Lease is free for others.
asio::awaitable<void> wind_down(state_ptr s, lease_machine& machine, leadership& own) {
  publish(*s, machine, false);
  auto ended = co_await end_body(own);
  if (!ended) s->log().warn("the leader's body was not awaited", {{"error", ended.error()}});
  if (s->options.release_on_stop) co_await release(s, machine);
  publish(*s, machine, false);
}

task<void> run_election(state_ptr s, leader_body body) {
  lease_machine machine(s->options, [s] { return s->random(); });
  leadership own;
  auto outcome = co_await elect(s, machine, body, own);
  co_await uncancelled(wind_down(s, machine, own));
  co_return outcome;
}

error refused(std::string why) { return error(errc::invalid_argument, "InvalidLeaseOptions", std::move(why)); }

}  // namespace

leader_elector::leader_elector(std::shared_ptr<state> s) : state_(std::move(s)) {}
leader_elector::~leader_elector() = default;

result<std::unique_ptr<leader_elector>> leader_elector::make(std::shared_ptr<client> api, lease_options options) {
  if (!is_dns_label(options.ns) || !is_dns_subdomain(options.name)) return refused("the Lease's namespace or name is not valid");
  if (options.identity.empty()) return refused("an identity is needed");
  if (options.retry_period <= duration::zero() || options.retry_period * 6 / 5 >= options.renew_deadline) {
    return refused("renew_deadline must be more than 1.2 times retry_period");
  }
  if (options.renew_deadline >= options.lease_duration) return refused("lease_duration must be more than renew_deadline");
  auto s = std::make_shared<state>();
  s->api = std::move(api);
  s->options = std::move(options);
  return std::unique_ptr<leader_elector>(new leader_elector(std::move(s)));
}

task<void> leader_elector::run(leader_body body) { return run_election(state_, std::move(body)); }
bool leader_elector::leading() const noexcept { return state_->leading(); }

std::optional<std::int64_t> leader_elector::fence() const noexcept {
  auto value = state_->fence.load();
  if (!state_->leading()) return std::nullopt;
  return value;
}

std::string leader_elector::leader() const {
  std::lock_guard lock(state_->mutex);
  return state_->holder;
}

notifier& leader_elector::changed() noexcept { return state_->changed; }

}  // namespace kubeopera::inline v1::kube
