#include "server/services/api/log_merge.hpp"

#include <deque>
#include <mutex>

namespace kubeopera::inline v1::api {
namespace {

constexpr std::size_t max_waiting = 1 << 20;
constexpr std::size_t max_line = 64 << 10;

struct shared_state {
  std::mutex mutex;
  std::string ready;
  std::size_t open = 0;
  std::optional<error> failure;
  notifier filled, drained;
};

// Appends the whole lines of pending, or its first part when it has grown too long.
void take_lines(std::string& pending, const std::string& prefix, bool last, std::string& out) {
  std::size_t from = 0;
  for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n', from)) {
    out += prefix;
    out.append(pending, from, end - from + 1);
    from = end + 1;
  }
  pending.erase(0, from);
  if (!pending.empty() && (last || pending.size() > max_line)) {
    out += prefix + pending + "\n";
    pending.clear();
  }
}

asio::awaitable<void> read_one(std::shared_ptr<shared_state> s, std::unique_ptr<http::body_source> source, std::string prefix) {
  std::string pending;
  while (true) {
    auto piece = co_await source->next();
    bool over = !piece || piece->empty();
    if (piece) pending += *piece;
    std::string lines;
    take_lines(pending, prefix, over, lines);
    std::uint64_t ticket = s->drained.ticket();
    bool full = false;
    {
      std::lock_guard lock(s->mutex);
      s->ready += lines;
      full = s->ready.size() > max_waiting;
      if (over) --s->open;
      if (!piece && piece.error().code() != errc::cancelled) s->failure = piece.error();
    }
    s->filled.notify();
    if (over) co_return;
    if (full) {
      auto room = co_await s->drained.wait(ticket);
      if (!room) co_return;
    }
  }
}

class merged final : public http::body_source {
 public:
  merged(asio::any_io_executor executor, std::vector<named_source> sources) : state_(std::make_shared<shared_state>()) {
    state_->open = sources.size();
    bool many = sources.size() > 1;
    for (auto& [name, source] : sources)
      readers_.push_back(
          background::start(executor, read_one(state_, std::move(source), many ? "[" + name + "] " : std::string())));
  }
  task<std::string> next() override {
    while (true) {
      auto ticket = state_->filled.ticket();
      {
        std::lock_guard lock(state_->mutex);
        if (!state_->ready.empty()) {
          auto out = std::exchange(state_->ready, std::string());
          state_->drained.notify();
          co_return out;
        }
        if (state_->open == 0) co_return std::string();
      }
      KUBEOPERA_CO_CHECK(co_await state_->filled.wait(ticket));
    }
  }

 private:
  std::shared_ptr<shared_state> state_;
  std::vector<background> readers_;
};

}  // namespace

std::unique_ptr<http::body_source> merge_logs(asio::any_io_executor executor, std::vector<named_source> sources) {
  return std::make_unique<merged>(std::move(executor), std::move(sources));
}

}  // namespace kubeopera::inline v1::api
