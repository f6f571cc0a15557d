#include "tests/simulation/cluster.hpp"

#include <algorithm>

namespace kubeopera::simulation {
namespace {

std::string kind_of(const kube::resource_type& type) { return type.plural + "." + type.group; }

error not_found(const kube::object_key& key) { return {errc::not_found, "NotFound", key.str() + " is not there"}; }
error conflict() { return {errc::conflict, "Conflict", "the object has been modified"}; }
error unreachable() { return {errc::unavailable, "ClusterGone", "nobody answers at the cluster's address"}; }

void merge(object& into, const object& patch, bool nulls_remove) {
  for (const auto& m : patch) {
    if (nulls_remove && m.value().is_null()) {
      into.erase(m.key());
    } else if (auto* o = m.value().if_object()) {
      auto& at = into[m.key()];
      if (!at.is_object()) at = object();
      merge(at.get_object(), *o, nulls_remove);
    } else {
      into[m.key()] = m.value();
    }
  }
}

object& meta_of(object& o) { return json::ensure_object(o, "metadata"); }

bool same_part(const object& a, const object& b, const char* part) {
  auto* x = a.if_contains(part);
  auto* y = b.if_contains(part);
  return x && y ? *x == *y : x == y;
}

}  // namespace

bool has_finalizer(const object& o, std::string_view name) {
  auto* all = json::get_array(o, {"metadata", "finalizers"});
  return all && std::any_of(all->begin(), all->end(), [&](const auto& f) { return json::as_view(f) == name; });
}

const object_ptr* cluster::find(const std::string& kind, const kube::object_key& key) const {
  auto kinds = objects_.find(kind);
  if (kinds == objects_.end()) return nullptr;
  auto it = kinds->second.find(key);
  return it == kinds->second.end() ? nullptr : &it->second;
}

result<object> cluster::get(const kube::resource_type& type, const kube::object_key& key) const {
  if (gone_) return unreachable();
  auto* found = find(kind_of(type), key);
  if (!found) return not_found(key);
  return **found;
}

kube::object_list cluster::list(const kube::resource_type& type, const std::string& ns) const {
  kube::object_list out;
  auto kinds = objects_.find(kind_of(type));
  if (kinds != objects_.end())
    for (const auto& [key, obj] : kinds->second)
      if (ns.empty() || key.ns == ns) out.items.push_back(*obj);
  out.resource_version = std::to_string(version_);
  return out;
}

result<object> cluster::put(const actor& who, const kube::resource_type& type, const object_ptr& before, object next) {
  auto key = kube::key_of(next);
  auto& meta = meta_of(next);
  if (before && *before == next) return next;  // nothing to write
  if (before && !same_part(*before, next, "spec")) meta["generation"] = kube::generation_of(*before) + 1;
  auto* finalizers = json::get_array(next, {"metadata", "finalizers"});
  if (before && kube::being_deleted(next) && (!finalizers || finalizers->empty()) && type.kind != "Namespace") {
    auto last = std::make_shared<const object>(next);
    if (changed) changed(who, type, before, last);
    drop(who, type, last);
    return next;
  }
  meta["resourceVersion"] = std::to_string(++version_);
  auto now = std::make_shared<const object>(std::move(next));
  auto kind = kind_of(type);
  objects_[kind][key] = now;
  publish(kind, before ? kube::event_type::modified : kube::event_type::added, now);
  if (changed) changed(who, type, before, now);
  return *now;
}

void cluster::drop(const actor& who, const kube::resource_type& type, const object_ptr& before) {
  auto kind = kind_of(type);
  objects_[kind].erase(kube::key_of(*before));
  object last = *before;
  meta_of(last)["resourceVersion"] = std::to_string(++version_);
  publish(kind, kube::event_type::deleted, std::make_shared<const object>(std::move(last)));
  if (changed) changed(who, type, before, nullptr);
}

result<object> cluster::create(const actor& who, const kube::resource_type& type, object obj) {
  if (gone_) return unreachable();
  auto key = kube::key_of(obj);
  if (find(kind_of(type), key)) return error(errc::already_exists, "AlreadyExists", key.str() + " is there already");
  auto& meta = meta_of(obj);
  meta["uid"] = name_ + "-" + std::to_string(++last_uid_);
  meta["generation"] = 1;
  obj.erase("status");
  return put(who, type, nullptr, std::move(obj));
}

result<object> cluster::replace(const actor& who, const kube::resource_type& type, object obj) {
  if (gone_) return unreachable();
  auto key = kube::key_of(obj);
  auto* found = find(kind_of(type), key);
  if (!found) return not_found(key);
  object_ptr before = *found;
  auto wanted = kube::resource_version_of(obj);
  if (!wanted.empty() && wanted != kube::resource_version_of(*before)) return conflict();
  auto& meta = meta_of(obj);
  for (auto part : {"uid", "generation", "resourceVersion", "deletionTimestamp"}) {
    auto* kept = json::get_object(*before, {"metadata"})->if_contains(part);
    if (kept)
      meta[part] = *kept;
    else
      meta.erase(part);
  }
  obj.erase("status");
  if (auto* status = before->if_contains("status")) obj["status"] = *status;
  return put(who, type, before, std::move(obj));
}

result<object> cluster::patch(const actor& who, const kube::resource_type& type, const kube::object_key& key, const object& body,
                              bool status) {
  if (gone_) return unreachable();
  auto* found = find(kind_of(type), key);
  if (!found) return not_found(key);
  object_ptr before = *found;
  auto wanted = kube::resource_version_of(body);
  if (!wanted.empty() && wanted != kube::resource_version_of(*before)) return conflict();
  object next = *before;
  object part;
  if (status) {
    if (auto* s = body.if_contains("status")) part["status"] = *s;
  } else {
    part = body;
    part.erase("status");
  }
  merge(next, part, true);
  return put(who, type, before, std::move(next));
}

result<object> cluster::apply(const actor& who, const kube::resource_type& type, const object& obj) {
  if (gone_) return unreachable();
  auto* found = find(kind_of(type), kube::key_of(obj));
  if (!found) return create(who, type, obj);
  object_ptr before = *found;
  object next = *before;
  merge(next, obj, false);
  return put(who, type, before, std::move(next));
}

result<void> cluster::remove(const actor& who, const kube::resource_type& type, const kube::object_key& key,
                             const kube::delete_options& options) {
  if (gone_) return unreachable();
  auto* found = find(kind_of(type), key);
  if (!found) return not_found(key);
  object_ptr before = *found;
  if (!options.uid.empty() && options.uid != kube::uid_of(*before)) return conflict();
  if (!options.resource_version.empty() && options.resource_version != kube::resource_version_of(*before)) return conflict();
  if (deleting) deleting(who, type, *before);
  auto* finalizers = json::get_array(*before, {"metadata", "finalizers"});
  bool lingers = (finalizers && !finalizers->empty()) || type.kind == "Namespace";
  if (!lingers) {
    drop(who, type, before);
    return {};
  }
  if (kube::being_deleted(*before)) return {};
  object next = *before;
  meta_of(next)["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  auto put_back = put(who, type, before, std::move(next));
  if (!put_back) return put_back.error();
  if (type.kind != "Namespace") return {};
  // What is inside takes its time to end.
  engine_.after(engine_.chance().between(0ms, 3s), [this, type, key] {
    auto* there = find(kind_of(type), key);
    if (there && kube::being_deleted(**there)) drop({"namespace controller"}, type, object_ptr(*there));
  });
  return {};
}

// ---- watches --------------------------------------------------------------------------------------------------------

void cluster::publish(const std::string& kind, kube::event_type type, object_ptr obj) {
  auto& h = histories_[kind];
  h.events.push_back({version_, type, std::move(obj)});
  std::erase_if(h.watchers, [](const auto& w) { return w.expired(); });
  for (auto& w : h.watchers) pump(w.lock());
}

result<std::shared_ptr<cluster::stream>> cluster::open_watch(const kube::resource_type& type,
                                                             const kube::watch_options& options) {
  if (gone_) return unreachable();
  if (engine_.chance().chance(expiries)) {
    engine_.count_fault("a version has expired");
    return error(errc::gone, "Expired", "too old resource version");
  }
  auto s = std::make_shared<stream>();
  s->kind = kind_of(type);
  auto from = static_cast<std::uint64_t>(std::stoull(options.resource_version.empty() ? "0" : options.resource_version));
  auto& h = histories_[s->kind];
  auto first = std::find_if(h.events.begin(), h.events.end(), [&](const event& e) { return e.version > from; });
  s->next = static_cast<std::size_t>(first - h.events.begin());
  h.watchers.push_back(s);
  pump(s);
  engine_.after(std::chrono::seconds(options.timeout_seconds), [weak = std::weak_ptr(s)] {
    if (auto open = weak.lock()) {
      open->ended = true;
      open->arrived.notify();
    }
  });
  return s;
}

void cluster::pump(std::shared_ptr<stream> s) {
  if (!s || s->pumping || s->next >= histories_[s->kind].events.size()) return;
  s->pumping = true;
  auto late = engine_.chance().chance(50) ? engine_.chance().between(0ms, cuts ? 8s : 1s) : engine_.chance().between(0ms, 30ms);
  engine_.after(late, [this, weak = std::weak_ptr(s)] {
    auto open = weak.lock();
    if (!open) return;
    open->pumping = false;
    if (open->ended || open->failed) return;
    deliver(*open);
    open->arrived.notify();
    pump(open);
  });
}

void cluster::deliver(stream& s) {
  auto& d = engine_.chance();
  const auto& events = histories_[s.kind].events;
  if (d.chance(cuts)) {
    engine_.count_fault("a watch is cut");
    s.failed = d.chance(300) ? error(errc::gone, "Expired", "too old resource version")
                             : error(errc::unavailable, "Cut", "the watch was cut");
    return;
  }
  auto most = 1 + d.below(4);
  for (std::uint64_t i = 0; i < most && s.next < events.size(); ++i) {
    const auto& e = events[s.next++];
    s.inbox.push_back({e.type, *e.obj});
    if (d.chance(repeats)) {
      engine_.count_fault("events are repeated");
      auto back = std::min<std::uint64_t>(s.next, 1 + d.below(3));
      for (auto k = s.next - back; k < s.next; ++k) s.inbox.push_back({events[k].type, *events[k].obj});
    }
  }
}

// ---- client ---------------------------------------------------------------------------------------------------------

namespace {

class model_stream final : public kube::watch_stream {
 public:
  explicit model_stream(std::shared_ptr<cluster::stream> s) : s_(std::move(s)) {}
  task<std::optional<kube::watch_event>> next() override { return next_of(s_); }

 private:
  static task<std::optional<kube::watch_event>> next_of(std::shared_ptr<cluster::stream> s) {
    while (true) {
      auto ticket = s->arrived.ticket();
      if (!s->inbox.empty()) {
        std::optional<kube::watch_event> out(std::move(s->inbox.front()));
        s->inbox.pop_front();
        co_return std::move(out);
      }
      if (s->failed) co_return *s->failed;
      if (s->ended) co_return std::optional<kube::watch_event>();
      KUBEOPERA_CO_CHECK(co_await s->arrived.wait(ticket));
    }
  }
  std::shared_ptr<cluster::stream> s_;
};

class model_client final : public kube::client {
 public:
  model_client(std::shared_ptr<process> from, std::shared_ptr<cluster> to)
      : from_(std::move(from)), to_(std::move(to)), me_{from_->name(), true} {}

  task<object> get(const kube::resource_type& type, const kube::object_key& key) override {
    return send<object>("get", type, key, [to = to_, type, key] { return to->get(type, key); });
  }
  task<kube::object_list> list(const kube::resource_type& type, const std::string& ns, const kube::list_options&) override {
    return send<kube::object_list>("list", type, {ns, ""}, [to = to_, type, ns]() -> result<kube::object_list> {
      if (to->gone()) return unreachable();
      return to->list(type, ns);
    });
  }
  task<object> create(const kube::resource_type& type, const object& obj, const kube::write_options&) override {
    return send<object>("create", type, kube::key_of(obj),
                        [to = to_, who = me_, type, obj] { return to->create(who, type, obj); });
  }
  task<object> replace(const kube::resource_type& type, const object& obj, const kube::write_options&) override {
    auto held = to_->hold_back ? to_->hold_back(*from_, type, obj) : duration::zero();
    return send<object>(
        "replace", type, kube::key_of(obj), [to = to_, who = me_, type, obj] { return to->replace(who, type, obj); }, held);
  }
  task<object> patch(const kube::resource_type& type, const kube::object_key& key, kube::patch_kind, const json::value& body,
                     const kube::write_options& options) override {
    bool status = options.subresource == "status";
    auto part = body.as_object();
    return send<object>(status ? "patch status of" : "patch", type, key,
                        [to = to_, who = me_, type, key, part, status] { return to->patch(who, type, key, part, status); });
  }
  task<object> apply(const kube::resource_type& type, const object& obj, const kube::write_options&) override {
    return send<object>("apply", type, kube::key_of(obj), [to = to_, who = me_, type, obj] { return to->apply(who, type, obj); });
  }
  task<void> remove(const kube::resource_type& type, const kube::object_key& key, const kube::delete_options& options) override {
    return send<void>("delete", type, key,
                      [to = to_, who = me_, type, key, options] { return to->remove(who, type, key, options); });
  }
  task<std::unique_ptr<kube::watch_stream>> watch(const kube::resource_type& type, const std::string& ns,
                                                  const kube::watch_options& options) override {
    using shared = std::shared_ptr<cluster::stream>;
    return opened(send<shared>("watch", type, {ns, ""}, [to = to_, type, options] { return to->open_watch(type, options); }));
  }
  task<std::unique_ptr<http::body_source>> logs(const kube::object_key&, const kube::log_options&) override {
    co_return error(errc::unsupported, "NotModelled", "logs are not modelled");
  }
  task<http::response> raw(http::request, bool) override {
    co_return error(errc::unsupported, "NotModelled", "raw requests are not modelled");
  }

 private:
  template <class T>
  task<T> send(const char* verb, const kube::resource_type& type, const kube::object_key& key, std::function<result<T>()> effect,
               duration held = duration::zero()) {
    std::string what;
    if (from_->world().recording()) what = std::string(verb) + " " + type.kind + " " + key.str() + " on " + to_->name();
    bool makes = verb == std::string_view("create") || verb == std::string_view("apply");
    return call<T>(from_, std::move(what), std::move(effect), makes ? duration(900ms) : duration(45s), held);
  }
  static task<std::unique_ptr<kube::watch_stream>> opened(task<std::shared_ptr<cluster::stream>> opening) {
    KUBEOPERA_CO_TRY(auto s, co_await std::move(opening));
    std::unique_ptr<kube::watch_stream> out = std::make_unique<model_stream>(std::move(s));
    co_return std::move(out);
  }
  std::shared_ptr<process> from_;
  std::shared_ptr<cluster> to_;
  actor me_;
};

}  // namespace

std::shared_ptr<kube::client> make_client(std::shared_ptr<process> from, std::shared_ptr<cluster> to) {
  return std::make_shared<model_client>(std::move(from), std::move(to));
}

}  // namespace kubeopera::simulation
