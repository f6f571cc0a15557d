// The informer's shell: does what the machine says, publishes the changes, waits through outages.
#include "src/kube/informer_machine.hpp"

#include <kubeopera/kube/informer.hpp>

#include <atomic>
#include <mutex>

namespace kubeopera::inline v1::kube {

struct informer::state {
  state(std::shared_ptr<client> c, resource_type t, informer_options o)
      : source(std::move(c)), type(std::move(t)), options(std::move(o)), cache(options.index) {}

  clock& time() const { return options.time ? *options.time : clock::real(); }
  logger& log() const { return options.log ? *options.log : logger::none(); }
  std::uint64_t random() const { return options.random ? options.random() : random_u64(); }

  std::shared_ptr<client> source;
  resource_type type;
  informer_options options;
  detail::object_cache cache;
  notifier changed;
  std::atomic<bool> synced{false};

  std::mutex handlers_mutex;  // held while changes are delivered, so that a new handler misses none and sees none twice
  std::vector<informer_handler> handlers;

  mutable std::mutex mutex;  // of the ones below
  std::string version;
  std::optional<error> trouble;
  std::uint64_t lists = 0, events = 0, errors = 0;
  std::optional<steady_time> heard_at;
};

namespace {

using state_ptr = std::shared_ptr<informer::state>;

void tell(const informer_handler& handler, const detail::change& c) {
  if (!c.now) {
    if (handler.deleted) handler.deleted(c.old);
  } else if (!c.old) {
    if (handler.added) handler.added(c.now);
  } else if (handler.updated) {
    handler.updated(c.old, c.now);
  }
}

void publish(informer::state& s, const detail::changes& all) {
  for (const auto& c : all) {
    for (const auto& handler : s.handlers) tell(handler, c);
  }
}

// Steps the machine under the handlers' lock: cache and deliveries change together.
template <class Step>
void advance(informer::state& s, detail::informer_machine& machine, Step step, std::uint64_t informer::state::* counter) {
  bool first = false;
  {
    std::lock_guard lock(s.handlers_mutex);
    detail::changes all = step();
    publish(s, all);
    {
      std::lock_guard inner(s.mutex);
      s.version = machine.resource_version();
      s.trouble.reset();
      s.heard_at = s.time().steady();
      if (counter) ++(s.*counter);
    }
    first = machine.synced() && !s.synced.exchange(machine.synced());
    if (all.empty() && !first) return;
  }
  s.changed.notify();
}

void failed(informer::state& s, detail::informer_machine& machine, const error& what) {
  s.log().warn("informer step failed", {{"resource", s.type.plural}, {"error", what}});
  {
    std::lock_guard lock(s.mutex);
    s.trouble = what;
    ++s.errors;
  }
  machine.on_error(what);
}

void resync(informer::state& s) {
  std::lock_guard lock(s.handlers_mutex);
  for (const auto& o : s.cache.list({})) {
    for (const auto& handler : s.handlers) tell(handler, {o, o});
  }
}

list_options page_options(const informer::state& s, const detail::informer_step& step) {
  list_options options;
  options.label_selector = s.options.label_selector;
  options.field_selector = s.options.field_selector;
  options.limit = s.options.page_size;
  options.continue_token = step.continue_token;
  options.for_cache = !s.options.keep_managed_fields;
  return options;
}

watch_options open_options(const informer::state& s, const detail::informer_step& step) {
  watch_options options;
  options.label_selector = s.options.label_selector;
  options.field_selector = s.options.field_selector;
  options.resource_version = step.resource_version;
  options.for_cache = !s.options.keep_managed_fields;
  auto least = std::max(1, s.options.watch_timeout_seconds);
  options.timeout_seconds = least + static_cast<int>(s.random() % static_cast<std::uint64_t>(least));
  return options;
}

struct open_watch {
  std::unique_ptr<watch_stream> stream;
  steady_time since;
};

task<void> list_step(state_ptr s, detail::informer_machine& machine, detail::informer_step step) {
  auto options = page_options(*s, step);
  KUBEOPERA_CO_TRY(auto page, co_await s->source->list(s->type, s->options.ns, options));
  bool last = page.continue_token.empty();
  advance(*s, machine, [&] { return machine.on_page(std::move(page)); }, last ? &informer::state::lists : nullptr);
  co_return result<void>();
}

task<void> open_step(state_ptr s, detail::informer_machine& machine, detail::informer_step step, open_watch& watch) {
  auto options = open_options(*s, step);
  KUBEOPERA_CO_TRY(watch.stream, co_await s->source->watch(s->type, s->options.ns, options));
  watch.since = s->time().steady();
  machine.on_watch_open();
  co_return result<void>();
}

task<void> event_step(state_ptr s, detail::informer_machine& machine, open_watch& watch) {
  KUBEOPERA_CO_TRY(auto event, co_await watch.stream->next());
  if (event) {
    advance(*s, machine, [&] { return machine.on_event(std::move(*event)); }, &informer::state::events);
  } else {
    watch.stream.reset();
    machine.on_watch_end(s->time().steady() - watch.since);
  }
  co_return result<void>();
}

task<void> take_step(state_ptr s, detail::informer_machine& machine, detail::informer_step step, open_watch& watch) {
  switch (step.kind) {
    case detail::step_kind::list_page:
      co_return co_await list_step(s, machine, std::move(step));
    case detail::step_kind::open_watch:
      co_return co_await open_step(s, machine, std::move(step), watch);
    case detail::step_kind::read_event:
      co_return co_await event_step(s, machine, watch);
  }
  co_return result<void>();
}

asio::awaitable<void> resync_loop(state_ptr s) {
  while (true) {
    auto slept = co_await s->time().sleep(s->options.resync);
    if (!slept) co_return;
    if (s->synced) resync(*s);
  }
}

task<void> run_loop(state_ptr s) {
  detail::informer_machine machine(s->cache, s->options, [s] { return s->random(); });
  open_watch watch;
  background resyncing;
  if (s->options.resync > duration::zero()) {
    auto executor = co_await current_executor();
    resyncing = background::start(executor, resync_loop(s));
  }
  while (true) {
    auto step = machine.next();
    if (step.wait > duration::zero()) {
      KUBEOPERA_CO_CHECK(co_await s->time().sleep(step.wait));
    }
    auto done = co_await take_step(s, machine, std::move(step), watch);
    if (done) continue;
    watch.stream.reset();
    if (done.error().code() == errc::cancelled) co_return done.error();
    failed(*s, machine, done.error());
  }
}

}  // namespace

informer::informer(std::shared_ptr<client> source, resource_type type, informer_options options)
    : state_(std::make_shared<state>(std::move(source), std::move(type), std::move(options))) {}
informer::~informer() = default;

task<void> informer::run() { return run_loop(state_); }

namespace {

task<void> synced_wait(state_ptr s) {
  while (true) {
    auto ticket = s->changed.ticket();
    if (s->synced) co_return result<void>();
    KUBEOPERA_CO_CHECK(co_await s->changed.wait(ticket));
  }
}

}  // namespace

task<void> informer::wait_synced() { return synced_wait(state_); }
bool informer::synced() const noexcept { return state_->synced; }
object_ptr informer::get(const object_key& key) const { return state_->cache.get(key); }
std::vector<object_ptr> informer::list(const std::string& ns) const { return state_->cache.list(ns); }
std::vector<object_ptr> informer::by_index(const std::string& value) const { return state_->cache.by_index(value); }
std::size_t informer::size() const { return state_->cache.size(); }

std::string informer::resource_version() const {
  std::lock_guard lock(state_->mutex);
  return state_->version;
}

void informer::add_handler(informer_handler handler) {
  std::lock_guard lock(state_->handlers_mutex);
  for (const auto& o : state_->cache.list({})) tell(handler, {nullptr, o});
  state_->handlers.push_back(std::move(handler));
}

notifier& informer::changed() noexcept { return state_->changed; }

std::optional<error> informer::last_error() const {
  std::lock_guard lock(state_->mutex);
  return state_->trouble;
}

informer_stats informer::stats() const {
  informer_stats out;
  out.objects = state_->cache.size();
  std::lock_guard lock(state_->mutex);
  out.lists = state_->lists;
  out.events = state_->events;
  out.errors = state_->errors;
  if (state_->heard_at) out.quiet = state_->time().steady() - *state_->heard_at;
  return out;
}

const resource_type& informer::type() const noexcept { return state_->type; }

}  // namespace kubeopera::inline v1::kube
