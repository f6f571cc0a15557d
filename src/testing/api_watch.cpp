// Watches: a cursor into a resource's history, filtered, with bookmarks, initial events and an end.
#include "src/testing/api_state.hpp"

#include <kubeopera/json/write.hpp>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::testing::api {
namespace {

struct watch_plan {
  filter wanted;
  std::uint64_t rv = 0;
  bool from_now = false;      ///< begin with the state that there is
  bool announce_end = false;  ///< and mark where it ends
  bool bookmarks = false;
  std::chrono::seconds timeout{1800};
};

class watch_source final : public http::body_source {
 public:
  watch_source(server_ptr s, const request& r, watch_plan plan)
      : server_(std::move(s)), kind_(r.kind), plan_(std::move(plan)), bucket_(server_->store.of(kind_->storage_key())) {
    form_.as = r.as;
    form_.as_version = r.as_version;
    form_.include_object = r.include_object;
    form_.kind = r.kind;
    deadline_ = std::chrono::steady_clock::now() + plan_.timeout;
    cuts_ = server_->faults.shared()->cut_count(kind_->plural);
    bookmark_at_ = next_bookmark(std::chrono::steady_clock::now());
    begin();
  }

  task<std::string> next() override {
    for (;;) {
      std::uint64_t ticket = bucket_.changed.ticket();
      std::string out = std::move(pending_);
      pending_.clear();
      if (ended_ && out.empty()) co_return std::string();
      if (cut()) co_return error(errc::unavailable, "WatchCut", "the watch was cut");
      if (!ended_) collect(out);
      if (!out.empty()) co_return out;
      if (ended_) co_return std::string();
      auto now = std::chrono::steady_clock::now();
      if (now >= deadline_) co_return std::string();
      auto until = plan_.bookmarks ? std::min(deadline_, bookmark_at_) : deadline_;
      if (now >= until) {
        bookmark_at_ = next_bookmark(now);
        co_return bookmark(false);
      }
      KUBEOPERA_CO_TRY(bool woken, co_await bucket_.changed.wait_for(ticket, until - now));
      static_cast<void>(woken);
    }
  }

 private:
  // Every minute, and shortly before the end so that the client can go on from there.
  std::chrono::steady_clock::time_point next_bookmark(std::chrono::steady_clock::time_point now) const {
    auto last = deadline_ - std::min<duration>(std::chrono::seconds(2), duration(plan_.timeout) / 2);
    auto minute = now + std::chrono::minutes(1);
    return minute < last ? minute : now < last ? last : deadline_ + std::chrono::hours(1);
  }

  bool cut() const {
    const auto& f = *server_->faults.shared();
    return f.down || f.cut_count(kind_->plural) != cuts_;
  }

  void begin() {
    if (!plan_.from_now) {
      std::uint64_t lost = 0;
      if (!server_->store.seek(bucket_, plan_.rv, cursor_, lost)) fail(lost);
      return;
    }
    auto state = server_->store.list_and_seek(*kind_, plan_.wanted.ns, cursor_);
    seen_ = state.rv;
    for (const auto& rec : state.records) {
      if (plan_.wanted.matches(*kind_, *rec)) append(pending_, "ADDED", *rec);
    }
    if (plan_.announce_end) pending_ += bookmark(true);
  }

  void fail(std::uint64_t lost) {
    refusal r = expired("too old resource version: " + std::to_string(plan_.rv) + " (" + std::to_string(lost) + ")");
    pending_ += "{\"type\":\"ERROR\",\"object\":" + json::write(status_object(r)) + "}\n";
    ended_ = true;
  }

  void collect(std::string& out) {
    // On while everything was filtered away: what is left must not wait for the next change.
    for (std::vector<event> events; out.empty(); events.clear()) {
      if (!server_->store.events_after(bucket_, cursor_, events)) {
        plan_.rv = seen_;
        fail(seen_);
        std::swap(out, pending_);
        return;
      }
      if (events.empty()) return;
      for (const auto& e : events) {
        if (e.rv <= plan_.rv && !plan_.from_now) continue;
        seen_ = e.rv;
        deliver(out, e);
      }
    }
  }

  // An object that comes into the selection is ADDED, one that leaves it is DELETED as it last was.
  void deliver(std::string& out, const event& e) {
    bool before = e.before && plan_.wanted.matches(*kind_, *e.before);
    if (e.what == change::deleted) {
      if (before) append(out, "DELETED", *e.now);
      return;
    }
    bool now = plan_.wanted.matches(*kind_, *e.now);
    if (now) {
      append(out, before ? "MODIFIED" : "ADDED", *e.now);
    } else if (before) {
      append(out, "DELETED", *make_record(*kind_, parse_record(*kind_, *e.before), e.rv));
    }
  }

  void append(std::string& out, const char* type, const record& rec) {
    out += "{\"type\":\"";
    out += type;
    out += "\",\"object\":";
    if (form_.as == view::plain) {
      out += kind_->head();
      out += rec.text;
    } else {
      json::object o = parse_record(*kind_, rec);
      if (form_.as == view::partial) {
        out += json::write(partial_metadata(o));
      } else {
        json::object table = make_table(*server_, form_, {std::move(o)}, first_row_);
        json::ensure_object(table, "metadata")["resourceVersion"] = std::to_string(rec.rv);
        first_row_ = false;
        out += json::write(table);
      }
    }
    out += "}\n";
  }

  std::string bookmark(bool initial_end) {
    json::object o = kind_->custom ? json::object() : zero_object(*kind_->t);
    json::object out;
    if (form_.as == view::plain) {
      out["kind"] = kind_->kind;
      out["apiVersion"] = kind_->api_version();
    } else {
      out["kind"] = form_.as == view::table ? "Table" : "PartialObjectMetadata";
      out["apiVersion"] = "meta.k8s.io/v1";
      o.clear();
    }
    for (auto& kv : o) out[kv.key()] = kv.value();
    json::object meta;
    meta["resourceVersion"] = std::to_string(server_->store.current());
    if (initial_end) json::ensure_object(meta, "annotations")["k8s.io/initial-events-end"] = "true";
    out["metadata"] = std::move(meta);
    return "{\"type\":\"BOOKMARK\",\"object\":" + json::write(out) + "}\n";
  }

  server_ptr server_;
  kind_ptr kind_;
  watch_plan plan_;
  bucket& bucket_;
  request form_;
  std::uint64_t cursor_ = 0, seen_ = 0, cuts_ = 0;
  bool first_row_ = true, ended_ = false;
  std::string pending_;
  std::chrono::steady_clock::time_point deadline_, bookmark_at_;
};

outcome<std::uint64_t> number(const request& r, const char* key) {
  std::string text = r.query(key);
  std::uint64_t out = 0;
  if (text.empty()) return out;
  auto [p, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (ec != std::errc() || p != text.data() + text.size()) {
    return bad_request("invalid resource version: " + std::string(key) + ": Invalid value: " + go_quote(text) +
                       ": strconv.ParseUint: parsing " + go_quote(text) + ": invalid syntax");
  }
  return out;
}

}  // namespace

outcome<http::response> watch_objects(const server_ptr& s, request& r) {
  watch_plan plan;
  KUBEOPERA_TRY(plan.wanted, read_filter(r));
  if (!r.name.empty()) return method_not_allowed();
  KUBEOPERA_TRY(plan.rv, number(r, "resourceVersion"));
  KUBEOPERA_TRY(std::uint64_t timeout, number(r, "timeoutSeconds"));
  if (timeout > 0) plan.timeout = std::chrono::seconds(std::min<std::uint64_t>(timeout, 86400));
  plan.bookmarks = r.flag("allowWatchBookmarks");
  bool initial = r.flag("sendInitialEvents");
  plan.from_now = plan.rv == 0 || initial;
  if (r.query("sendInitialEvents") == "false" && plan.rv == 0) {
    plan.from_now = false;
    plan.rv = s->store.current();
  }
  plan.announce_end = initial && plan.bookmarks;
  http::response out(200);
  out.headers.set("Content-Type", "application/json");
  out.stream = std::make_unique<watch_source>(s, r, std::move(plan));
  return out;
}

}  // namespace kubeopera::inline v1::testing::api
