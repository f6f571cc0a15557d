// Rings of log lines and the streams that read them.
#include "src/testing/sim_logs.hpp"

namespace kubeopera::inline v1::testing::sim {

namespace {

std::string format(const log_line& line, bool timestamps) {
  if (!timestamps) return line.text + "\n";
  return format_rfc3339_micros(line.at) + " " + line.text + "\n";
}

class log_body final : public http::body_source {
 public:
  log_body(std::shared_ptr<container_log> log, std::uint64_t from, const api_log_request& r)
      : log_(std::move(log)), next_(from), follow_(r.follow), timestamps_(r.timestamps) {
    if (r.limit_bytes) left_ = *r.limit_bytes;
  }

  task<std::string> next() override {
    while (true) {
      auto ticket = log_->grew.ticket();
      bool closed = false;
      auto piece = take(closed);
      if (left_ && *left_ <= 0 && piece.empty()) co_return std::string();
      if (!piece.empty()) co_return piece;
      if (!follow_ || closed) co_return std::string();
      KUBEOPERA_CO_CHECK(co_await log_->grew.wait(ticket));
    }
  }

 private:
  std::string take(bool& closed) {
    std::lock_guard lock(log_->mutex);
    closed = log_->closed;
    if (next_ < log_->dropped) next_ = log_->dropped;
    std::string piece;
    while (next_ - log_->dropped < log_->lines.size() && piece.size() < 64 * 1024) {
      piece += format(log_->lines[next_ - log_->dropped], timestamps_);
      ++next_;
    }
    if (left_) {
      if (static_cast<std::int64_t>(piece.size()) > *left_) piece.resize(static_cast<std::size_t>(*left_));
      *left_ -= static_cast<std::int64_t>(piece.size());
      if (*left_ <= 0) follow_ = false;
    }
    return piece;
  }

  std::shared_ptr<container_log> log_;
  std::uint64_t next_;
  bool follow_, timestamps_;
  std::optional<std::int64_t> left_;
};

}  // namespace

void log_store::begin(const std::string& ns, const std::string& pod, const std::string& container) {
  std::lock_guard lock(mutex_);
  auto& e = pods_[ns + "/" + pod][container];
  e.before = e.now;
  e.now = std::make_shared<container_log>();
}

void log_store::print(const std::string& ns, const std::string& pod, const std::string& container, std::string text) {
  auto log = find(ns, pod, container, false);
  if (!log) return;
  {
    std::lock_guard lock(log->mutex);
    if (log->closed) return;
    log->bytes += text.size() + 1;
    log->lines.push_back({time_.now(), std::move(text)});
    while (log->bytes > limit_ && log->lines.size() > 1) {
      log->bytes -= log->lines.front().text.size() + 1;
      log->lines.pop_front();
      ++log->dropped;
    }
  }
  log->grew.notify();
}

void log_store::end(const std::string& ns, const std::string& pod, const std::string& container) {
  auto log = find(ns, pod, container, false);
  if (!log) return;
  {
    std::lock_guard lock(log->mutex);
    log->closed = true;
  }
  log->grew.notify();
}

void log_store::forget(const std::string& ns, const std::string& pod) {
  pod_logs gone;
  {
    std::lock_guard lock(mutex_);
    auto it = pods_.find(ns + "/" + pod);
    if (it == pods_.end()) return;
    gone = std::move(it->second);
    pods_.erase(it);
  }
  for (auto& [name, e] : gone) {
    for (auto& log : {e.now, e.before}) {
      if (!log) continue;
      {
        std::lock_guard lock(log->mutex);
        log->closed = true;
      }
      log->grew.notify();
    }
  }
}

bool log_store::known(const std::string& ns, const std::string& pod) const {
  std::lock_guard lock(mutex_);
  return pods_.contains(ns + "/" + pod);
}

std::shared_ptr<container_log> log_store::find(const std::string& ns, const std::string& pod, const std::string& container,
                                               bool previous) const {
  std::lock_guard lock(mutex_);
  auto p = pods_.find(ns + "/" + pod);
  if (p == pods_.end() || p->second.empty()) return nullptr;
  auto c = container.empty() ? p->second.begin() : p->second.find(container);
  if (c == p->second.end()) return nullptr;
  return previous ? c->second.before : c->second.now;
}

result<std::unique_ptr<http::body_source>> log_store::open(const std::string& ns, const std::string& pod,
                                                           const api_log_request& r) const {
  auto log = find(ns, pod, r.container, r.previous);
  if (!log && r.previous) {
    return error(errc::invalid_argument, "BadRequest",
                 "previous terminated container \"" + r.container + "\" in pod \"" + pod + "\" not found");
  }
  if (!log) {
    return error(errc::invalid_argument, "BadRequest",
                 "container \"" + r.container + "\" in pod \"" + pod + "\" is waiting to start: ContainerCreating");
  }
  std::lock_guard lock(log->mutex);
  std::uint64_t from = log->dropped, end = log->dropped + log->lines.size();
  if (r.tail_lines) {
    auto wanted = static_cast<std::uint64_t>(std::max<std::int64_t>(0, *r.tail_lines));
    from = end - std::min<std::uint64_t>(wanted, log->lines.size());
  }
  if (r.since_seconds) {
    auto since = time_.now() - std::chrono::seconds(*r.since_seconds);
    while (from < end && log->lines[from - log->dropped].at < since) ++from;
  }
  return std::make_unique<log_body>(log, from, r);
}

}  // namespace kubeopera::inline v1::testing::sim
