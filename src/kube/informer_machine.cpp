// The informer's decisions: list, watch, list again; which events are old; what a list says was deleted.
#include "src/kube/informer_machine.hpp"

#include <charconv>

namespace kubeopera::inline v1::kube::detail {

namespace {

// A list that is older than the copy comes from a server that lags, or from one that was reset. After this many it is the latter.
constexpr int backward_lists_believed = 3;
// A watch that ended sooner than this without an event is not worth opening again at once.
constexpr duration short_watch = std::chrono::seconds(1);
constexpr duration relist_spread = std::chrono::seconds(1);

std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
  std::uint64_t out = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

void drop_managed_fields(object& o) {
  auto* metadata = o.if_contains("metadata");
  if (metadata && metadata->is_object()) metadata->get_object().erase("managedFields");
}

}  // namespace

std::optional<bool> version_less(std::string_view a, std::string_view b) noexcept {
  auto x = number_of(a), y = number_of(b);
  if (!x || !y) return std::nullopt;
  return *x < *y;
}

informer_machine::informer_machine(object_cache& cache, const informer_options& options, std::function<std::uint64_t()> random)
    : cache_(cache),
      keep_managed_fields_(options.keep_managed_fields),
      random_(std::move(random)),
      backoff_(options.first_backoff, options.max_backoff),
      first_backoff_(options.first_backoff) {}

duration informer_machine::jitter(duration most) {
  return duration(static_cast<duration::rep>(random_() % static_cast<std::uint64_t>(most.count())) + 1);
}

informer_step informer_machine::next() {
  informer_step step;
  step.kind = state_;
  step.wait = std::exchange(wait_, duration::zero());
  if (state_ == step_kind::list_page) step.continue_token = continue_;
  if (state_ == step_kind::open_watch) step.resource_version = version_;
  return step;
}

void informer_machine::start_list(duration wait) {
  state_ = step_kind::list_page;
  wait_ = wait;
  continue_.clear();
  pages_.clear();
}

changes informer_machine::on_page(object_list page) {
  for (auto& item : page.items) pages_.push_back(std::move(item));
  if (!page.continue_token.empty()) {
    continue_ = std::move(page.continue_token);
    return {};
  }
  if (synced_ && version_less(page.resource_version, version_).value_or(false) && ++backward_lists_ < backward_lists_believed) {
    start_list(backoff_.next(random_()));
    return {};
  }
  return finish_list(std::move(page.resource_version));
}

changes informer_machine::finish_list(std::string list_version) {
  changes out;
  std::unordered_set<object_key, key_hash> present;
  for (auto& item : pages_) {
    auto key = key_of(item);
    present.insert(key);
    auto known = cache_.get(key);
    // Same version, same object: nothing to tell. After a reset of the server versions say nothing, uids do.
    if (known && resource_version_of(*known) == resource_version_of(item) && uid_of(*known) == uid_of(item)) continue;
    put(std::move(key), std::move(item), out);
  }
  for (const auto& key : cache_.keys()) {
    if (!present.contains(key)) drop(key, nullptr, out);
  }
  pages_.clear();
  continue_.clear();
  version_ = std::move(list_version);
  synced_ = true;
  backward_lists_ = 0;
  backoff_.reset();
  state_ = step_kind::open_watch;
  return out;
}

void informer_machine::put(object_key key, object obj, changes& out) {
  if (!keep_managed_fields_) drop_managed_fields(obj);
  auto known = cache_.get(key);
  if (known && uid_of(*known) != uid_of(obj)) drop(key, nullptr, out);  // deleted and made again in between
  auto now = std::make_shared<const object>(std::move(obj));
  auto old = cache_.put(key, now);
  out.push_back({std::move(old), std::move(now)});
}

void informer_machine::drop(const object_key& key, object_ptr last, changes& out) {
  auto old = cache_.erase(key);
  if (!old) return;
  out.push_back({last ? std::move(last) : std::move(old), nullptr});
}

void informer_machine::on_watch_open() {
  state_ = step_kind::read_event;
  events_seen_ = false;
}

// An event is old when it says what the copy already knows or is past.
bool informer_machine::is_old(const object_key& key, const object& obj, event_type type) const {
  auto version = resource_version_of(obj);
  auto known = cache_.get(key);
  if (!known) return type == event_type::deleted || version == version_ || version_less(version, version_).value_or(false);
  auto known_version = resource_version_of(*known);
  if (version == known_version) return type != event_type::deleted;
  return version_less(version, known_version).value_or(false);
}

changes informer_machine::on_event(watch_event event) {
  changes out;
  events_seen_ = true;
  backoff_.reset();
  std::string version(resource_version_of(event.obj));
  if (event.type != event_type::bookmark) {
    auto key = key_of(event.obj);
    if (!is_old(key, event.obj, event.type)) {
      if (event.type == event_type::deleted) {
        if (!keep_managed_fields_) drop_managed_fields(event.obj);
        drop(key, std::make_shared<const object>(std::move(event.obj)), out);
      } else {
        put(std::move(key), std::move(event.obj), out);
      }
    }
  }
  if (!version.empty() && !version_less(version, version_).value_or(false)) version_ = std::move(version);
  return out;
}

void informer_machine::on_watch_end(duration lasted) {
  state_ = step_kind::open_watch;
  if (!events_seen_ && lasted < short_watch) {
    wait_ = backoff_.next(random_());
  } else {
    backoff_.reset();
  }
}

void informer_machine::on_error(const error& what) {
  bool of_list = state_ == step_kind::list_page;
  // An expired continue token, an expired version, or a kind that is not served any more: start over.
  if (what.code() == errc::gone) {
    start_list(of_list ? backoff_.next(random_()) : jitter(relist_spread));
    return;
  }
  duration wait = backoff_.next(random_());
  if (what.retry_after()) wait += *what.retry_after();
  if (of_list) {
    start_list(wait);
  } else if (what.code() == errc::not_found || what.code() == errc::invalid_argument || what.code() == errc::data_loss ||
             what.code() == errc::too_large) {
    start_list(wait);  // watching from here will not get better
  } else {
    state_ = step_kind::open_watch;
    wait_ = wait;
  }
}

}  // namespace kubeopera::inline v1::kube::detail
