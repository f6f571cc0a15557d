// Server-sent events: encoding, the thread-safe channel, decoding.
#include "src/http/text.hpp"

#include <kubeopera/http/sse.hpp>

#include <charconv>
#include <deque>
#include <mutex>

namespace kubeopera::inline v1::http {

std::string encode_sse(const sse_event& event) {
  std::string out;
  out.reserve(event.data.size() + event.type.size() + 48);
  if (event.id) {
    out += "id: ";
    out += std::to_string(*event.id);
    out += '\n';
  }
  if (!event.type.empty()) {
    out += "event: ";
    for (char c : event.type) {
      if (c != '\r' && c != '\n' && c != '\0') out += c;
    }
    out += '\n';
  }
  std::string_view rest = event.data;
  for (;;) {
    auto end = rest.find_first_of("\r\n");
    out += "data: ";
    out += rest.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) break;
    bool crlf = rest[end] == '\r' && end + 1 < rest.size() && rest[end + 1] == '\n';
    rest.remove_prefix(end + (crlf ? 2 : 1));
  }
  out += '\n';
  return out;
}

std::string_view sse_ping() noexcept { return ": ping\n\n"; }

result<std::uint64_t> parse_last_event_id(std::string_view text) {
  std::uint64_t id = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || ec != std::errc() || end != text.data() + text.size()) {
    return error(errc::invalid_argument, "BadEventId", "Last-Event-ID must be a number");
  }
  return id;
}

struct sse_channel::state {
  sse_channel_options options;
  std::mutex mutex;
  std::string queued;    // encoded events that the reader has not taken
  bool ended = false;    // no more events will be queued
  bool overrun = false;  // the reader was too far behind
  bool gone = false;     // no reader any more
  bool taken = false;    // reader() was called
  notifier changed;
};

namespace {

template <class State>
class sse_body final : public body_source {
 public:
  explicit sse_body(std::shared_ptr<State> s) : state_(std::move(s)) {}
  ~sse_body() override {
    {
      std::lock_guard lock(state_->mutex);
      state_->gone = state_->ended = true;
    }
    state_->changed.notify();
  }
  task<std::string> next() override {
    for (;;) {
      auto ticket = state_->changed.ticket();
      {
        std::lock_guard lock(state_->mutex);
        if (state_->overrun) co_return error(errc::unavailable, "ReaderTooSlow", "the reader of the stream is too far behind");
        if (!state_->queued.empty()) co_return std::exchange(state_->queued, std::string());
        if (state_->ended) co_return std::string();
      }
      auto woken = co_await state_->changed.wait_for(ticket, state_->options.ping_interval);
      if (!woken) co_return woken.error();
      if (!*woken) co_return std::string(sse_ping());
    }
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

sse_channel::sse_channel(sse_channel_options options) : state_(std::make_shared<state>()) { state_->options = options; }

sse_channel::~sse_channel() { close(); }

bool sse_channel::send(const sse_event& event) { return send_encoded(encode_sse(event)); }

bool sse_channel::send_encoded(std::string_view text) {
  bool accepted = false;
  {
    std::lock_guard lock(state_->mutex);
    if (state_->ended) return false;
    accepted = state_->queued.size() + text.size() <= state_->options.max_queued_bytes;
    if (accepted) {
      state_->queued += text;
    } else {
      state_->overrun = state_->ended = true;
      state_->queued.clear();
    }
  }
  state_->changed.notify();
  return accepted;
}

void sse_channel::close() {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->ended) return;
    state_->ended = true;
  }
  state_->changed.notify();
}

bool sse_channel::closed() const noexcept {
  std::lock_guard lock(state_->mutex);
  return state_->ended;
}

task<void> sse_channel::wait_closed() {
  auto s = state_;
  for (;;) {
    auto ticket = s->changed.ticket();
    {
      std::lock_guard lock(s->mutex);
      if (s->ended) co_return result<void>();
    }
    KUBEOPERA_CO_CHECK(co_await s->changed.wait(ticket));
  }
}

std::unique_ptr<body_source> sse_channel::reader() {
  {
    std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->taken, true)) throw std::logic_error("sse_channel::reader() may be called once");
  }
  return std::make_unique<sse_body<state>>(state_);
}

response make_sse_response(sse_channel& channel) {
  response res(200);
  res.headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
  res.stream = channel.reader();
  res.endless = true;
  return res;
}

result<void> sse_decoder::feed(std::string_view bytes, std::vector<sse_event>& out) {
  while (!bytes.empty()) {
    if (skip_lf_) {
      skip_lf_ = false;
      if (bytes.front() == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    auto end = bytes.find_first_of("\r\n");
    auto part = bytes.substr(0, end);
    if (pending_.size() + data_.size() + part.size() > max_) {
      return error(errc::too_large, "EventTooLarge", "an event is larger than " + std::to_string(max_) + " bytes");
    }
    if (end == std::string_view::npos) {
      pending_ += part;
      break;
    }
    skip_lf_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (pending_.empty()) {
      line(part, out);
    } else {
      pending_ += part;
      auto whole = std::exchange(pending_, std::string());
      line(whole, out);
    }
  }
  return {};
}

void sse_decoder::line(std::string_view text, std::vector<sse_event>& out) {
  if (!std::exchange(started_, true) && text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  if (text.empty()) {
    if (has_data_) {
      sse_event event(std::exchange(type_, std::string()), std::exchange(data_, std::string()));
      if (auto id = parse_last_event_id(last_id_)) event.id = *id;
      out.push_back(std::move(event));
    }
    has_data_ = false;
    type_.clear();
    return;
  }
  auto colon = text.find(':');
  if (colon == 0) return;
  auto name = text.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (name == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (name == "event") {
    type_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) last_id_ = value;
  } else if (name == "retry") {
    std::uint64_t ms = 0;
    auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), ms);
    if (!value.empty() && ec == std::errc() && end == value.data() + value.size()) retry_ = ms;
  }
}

task<std::optional<sse_event>> sse_reader::next() {
  while (given_ == ready_.size()) {
    ready_.clear();
    given_ = 0;
    KUBEOPERA_CO_TRY(auto piece, co_await body_->next());
    if (piece.empty()) co_return std::optional<sse_event>();
    KUBEOPERA_CO_CHECK(decoder_.feed(piece, ready_));
  }
  co_return std::optional<sse_event>(std::move(ready_[given_++]));
}

}  // namespace kubeopera::inline v1::http
