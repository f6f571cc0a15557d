// The store's one lock covers the maps and the counter; records are immutable and leave it freely.
#include "src/testing/api_store.hpp"

#include <kubeopera/json/write.hpp>

#include <boost/json/parse.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::api {

std::string storage_name(std::string_view ns, std::string_view name) {
  return ns.empty() ? std::string(name) : std::string(ns) + "/" + std::string(name);
}

std::string full_text(const kind_info& kind, const record& r) { return kind.head() + r.text; }

json::object parse_record(const kind_info& kind, const record& r) {
  boost::json::parse_options options;
  options.max_depth = 128;
  return boost::json::parse(full_text(kind, r), {}, options).as_object();
}

namespace {

std::string text_at(const json::object& o, std::string_view path) {
  const json::object* at = &o;
  while (true) {
    auto dot = path.find('.');
    const auto* v = at->if_contains(path.substr(0, dot));
    if (!v) return {};
    if (dot == std::string_view::npos) {
      if (v->is_string()) return std::string(json::as_view(*v));
      return v->is_null() || v->is_structured() ? std::string() : json::write(*v);
    }
    at = v->if_object();
    if (!at) return {};
    path.remove_prefix(dot + 1);
  }
}

}  // namespace

std::vector<std::string> field_values(const kind_info& kind, const json::object& object) {
  std::vector<std::string> out;
  for (const auto& label : kind.field_labels) {
    std::string v = text_at(object, label);
    if (label == "spec.unschedulable" || label == "spec.hostNetwork") v = v.empty() ? "false" : v;
    if (label == "status.successful") v = text_at(object, "status.succeeded");
    if (label == "reportingComponent" && v.empty()) v = text_at(object, "source.component");
    if (label == "source.component") v = text_at(object, "source.component");
    out.push_back(std::move(v));
  }
  return out;
}

record_ptr make_record(const kind_info& kind, json::object object, std::uint64_t rv) {
  auto r = std::make_shared<record>();
  auto& meta = json::ensure_object(object, "metadata");
  if (rv > 0) {
    meta["resourceVersion"] = std::to_string(rv);
  } else {
    meta.erase("resourceVersion");
  }
  r->rv = rv;
  r->ns = json::get_string(meta, {"namespace"});
  r->name = json::get_string(meta, {"name"});
  r->uid = json::get_string(meta, {"uid"});
  if (const auto* labels = json::get_object(meta, {"labels"})) {
    for (const auto& kv : *labels) r->labels.emplace_back(std::string(kv.key()), std::string(json::as_view(kv.value())));
    std::sort(r->labels.begin(), r->labels.end());
  }
  r->fields = field_values(kind, object);
  // Metadata is written in its own order wherever its fields were added.
  json::object ordered;
  if (kind.custom) {
    std::vector<std::string_view> keys;
    for (const auto& kv : meta) keys.push_back(kv.key());
    std::sort(keys.begin(), keys.end());
    for (auto k : keys) ordered.emplace(k, std::move(meta.at(k)));
  } else {
    for (const auto& f : builtin_types().find("ObjectMeta")->fields) {
      if (auto* v = meta.if_contains(f.name)) ordered.emplace(f.name, std::move(*v));
    }
  }
  std::string out = "\"metadata\":" + json::write(ordered);
  for (const auto& kv : object) {
    if (kv.key() == "metadata" || kv.key() == "kind" || kv.key() == "apiVersion") continue;
    out += ',';
    json::append_quoted(out, kv.key());
    out += ':';
    out += json::write(kv.value());
  }
  out += '}';
  out.shrink_to_fit();
  r->text = std::move(out);
  return r;
}

bool filter::matches(const kind_info& kind, const record& r) const {
  if (!ns.empty() && r.ns != ns) return false;
  if (!labels.matches(r.labels)) return false;
  for (const auto& t : fields.terms()) {
    const std::string* v = nullptr;
    if (t.field == "metadata.name") {
      v = &r.name;
    } else if (t.field == "metadata.namespace") {
      v = &r.ns;
    } else {
      for (std::size_t i = 0; i < kind.field_labels.size() && !v; ++i) {
        if (kind.field_labels[i] == t.field && i < r.fields.size()) v = &r.fields[i];
      }
    }
    if (!v || (*v == t.value) != t.equal) return false;
  }
  return true;
}

bucket& store::of(const std::string& storage_key) {
  std::lock_guard guard(mutex_);
  auto& b = buckets_[storage_key];
  if (!b) b = std::make_unique<bucket>();
  return *b;
}

const bucket* store::peek(const std::string& storage_key) const {
  auto it = buckets_.find(storage_key);
  return it == buckets_.end() ? nullptr : it->second.get();
}

record_ptr store::get(const kind_info& kind, const std::string& key) const {
  std::lock_guard guard(mutex_);
  const bucket* b = peek(kind.storage_key());
  if (!b) return nullptr;
  auto it = b->objects.find(key);
  return it == b->objects.end() ? nullptr : it->second;
}

std::uint64_t store::current() const {
  std::lock_guard guard(mutex_);
  return counter_;
}

void store::append(bucket& b, event e) {
  b.history.push_back(std::move(e));
  while (b.history.size() > limit_) {
    b.lost = b.history.front().rv;
    b.history.pop_front();
    ++b.first;
  }
}

outcome<bool> store::commit(const kind_info& kind, write w, record_ptr& out) {
  bucket& b = of(kind.storage_key());
  {
    std::lock_guard guard(mutex_);
    auto it = b.objects.find(w.key);
    record_ptr now = it == b.objects.end() ? nullptr : it->second;
    if (now != w.expected) return false;
    if (w.check) {
      if (auto r = w.check()) return std::move(*r);
    }
    event e;
    e.rv = ++counter_;
    e.before = now;
    e.what = w.remove ? change::deleted : now ? change::modified : change::added;
    e.now = make_record(kind, std::move(w.object), e.rv);
    if (w.remove) {
      b.objects.erase(it);
    } else {
      b.objects[w.key] = e.now;
    }
    out = e.now;
    if (observer_) observer_(kind.storage_key(), e);
    append(b, std::move(e));
  }
  b.changed.notify();
  return true;
}

store::snapshot store::collect(const bucket& b, const std::string& ns, const std::string& start) const {
  snapshot out;
  out.rv = counter_;
  std::string prefix = ns.empty() ? std::string() : ns + "/";
  auto it = b.objects.lower_bound(std::max(prefix, start));
  for (; it != b.objects.end(); ++it) {
    if (!prefix.empty() && it->first.compare(0, prefix.size(), prefix) != 0) break;
    out.records.push_back(it->second);
  }
  return out;
}

std::optional<store::snapshot> store::list(const kind_info& kind, const std::string& ns, std::uint64_t rv,
                                           const std::string& start) const {
  std::lock_guard guard(mutex_);
  const bucket* b = peek(kind.storage_key());
  if (rv != 0 && rv != counter_ && (rv < compacted_ || (b && rv < b->lost))) return std::nullopt;
  if (!b) {
    snapshot none;
    none.rv = rv == 0 ? counter_ : rv;
    return none;
  }
  snapshot out = collect(*b, ns, start);
  if (rv == 0 || rv == counter_) return out;
  // Roll back: what an object was before its first change after rv.
  std::map<std::string, record_ptr> was;
  for (const auto& e : b->history) {
    if (e.rv > rv) was.emplace(storage_name(e.now->ns, e.now->name), e.before);
  }
  std::map<std::string, record_ptr> state;
  for (auto& r : out.records) state[storage_name(r->ns, r->name)] = r;
  for (auto& [key, before] : was) {
    bool wanted = key >= start && (ns.empty() || key.compare(0, ns.size() + 1, ns + "/") == 0);
    if (!wanted) continue;
    if (before) {
      state[key] = before;
    } else {
      state.erase(key);
    }
  }
  out.records.clear();
  for (auto& [key, r] : state) out.records.push_back(r);
  out.rv = rv;
  return out;
}

std::size_t store::count(const std::string& storage_key, const std::string& ns) const {
  std::lock_guard guard(mutex_);
  const bucket* b = peek(storage_key);
  return b ? collect(*b, ns, {}).records.size() : 0;
}

void store::compact() {
  std::lock_guard guard(mutex_);
  compacted_ = counter_;
  for (auto& [key, b] : buckets_) {
    b->first += b->history.size();
    b->history.clear();
    b->lost = compacted_;
  }
}

void store::drop(const kind_info& kind) {
  bucket& b = of(kind.storage_key());
  {
    std::lock_guard guard(mutex_);
    for (auto& [key, r] : b.objects) {
      event e;
      e.what = change::deleted;
      e.rv = ++counter_;
      e.before = r;
      e.now = make_record(kind, parse_record(kind, *r), e.rv);
      if (observer_) observer_(kind.storage_key(), e);
      append(b, std::move(e));
    }
    b.objects.clear();
  }
  b.changed.notify();
}

void store::observe(observer o) {
  std::lock_guard guard(mutex_);
  observer_ = std::move(o);
  if (!observer_) return;
  for (const auto& [key, b] : buckets_) {
    for (const auto& [name, r] : b->objects) {
      event e;
      e.rv = r->rv;
      e.now = r;
      observer_(key, e);
    }
  }
}

void store::reset(std::uint64_t rv) {
  std::lock_guard guard(mutex_);
  counter_ = compacted_ = std::max(rv, counter_);
  for (auto& [key, b] : buckets_) {
    b->objects.clear();
    b->first += b->history.size();
    b->history.clear();
    b->lost = compacted_;
  }
}

void store::load(const kind_info& kind, json::object object) {
  std::uint64_t rv = 0;
  auto text = json::get_string(object, {"metadata", "resourceVersion"});
  std::from_chars(text.data(), text.data() + text.size(), rv);
  auto r = make_record(kind, std::move(object), rv);
  bucket& b = of(kind.storage_key());
  std::lock_guard guard(mutex_);
  b.objects[storage_name(r->ns, r->name)] = r;
}

void store::notify_all() {
  std::lock_guard guard(mutex_);
  for (auto& [key, b] : buckets_) b->changed.notify();
}

bool store::events_after(bucket& b, std::uint64_t& cursor, std::vector<event>& out) const {
  std::lock_guard guard(mutex_);
  if (cursor < b.first) return false;
  for (std::size_t i = cursor - b.first; i < b.history.size() && out.size() < 512; ++i) {
    out.push_back(b.history[i]);
    ++cursor;
  }
  return true;
}

bool store::seek(bucket& b, std::uint64_t rv, std::uint64_t& cursor, std::uint64_t& lost) const {
  std::lock_guard guard(mutex_);
  lost = std::max(b.lost, compacted_);
  if (rv < lost && rv != 0) return false;
  auto it = std::partition_point(b.history.begin(), b.history.end(), [rv](const event& e) { return e.rv <= rv; });
  cursor = b.first + static_cast<std::uint64_t>(it - b.history.begin());
  return true;
}

store::snapshot store::list_and_seek(const kind_info& kind, const std::string& ns, std::uint64_t& cursor) const {
  std::lock_guard guard(mutex_);
  const bucket* b = peek(kind.storage_key());
  cursor = b ? b->first + b->history.size() : 0;
  return b ? collect(*b, ns, {}) : snapshot{{}, counter_};
}

}  // namespace kubeopera::inline v1::testing::api
