// Reads watches: newline framing, event decoding, and what an end or an error in the stream means.
#include "src/kube/watch.hpp"

#include <kubeopera/json/read.hpp>
#include <kubeopera/kube/status.hpp>

namespace kubeopera::inline v1::kube::detail {

void line_framer::feed(std::string bytes) {
  if (from_ == buffer_.size()) {
    buffer_ = std::move(bytes);
  } else {
    buffer_.erase(0, from_);
    buffer_ += bytes;
    scanned_ -= from_;
    from_ = 0;
    return;
  }
  from_ = scanned_ = 0;
}

result<std::optional<std::string_view>> line_framer::next() {
  while (true) {
    auto end = buffer_.find('\n', scanned_);
    auto length = (end == std::string::npos ? buffer_.size() : end) - from_;
    if (length > max_line_) {
      return error(errc::too_large, "WatchLineTooLong", "an event of the watch is over " + std::to_string(max_line_) + " bytes");
    }
    if (end == std::string::npos) {
      scanned_ = buffer_.size();
      return std::optional<std::string_view>();
    }
    std::string_view line(buffer_.data() + from_, length);
    from_ = scanned_ = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) return std::optional<std::string_view>(line);
  }
}

namespace {

error malformed(std::string detail) {
  return error(errc::data_loss, "MalformedWatchEvent", "the API server sent a watch event that cannot be read")
      .with_detail(std::move(detail));
}

std::optional<event_type> type_of(std::string_view word) noexcept {
  if (word == "ADDED") return event_type::added;
  if (word == "MODIFIED") return event_type::modified;
  if (word == "DELETED") return event_type::deleted;
  if (word == "BOOKMARK") return event_type::bookmark;
  return std::nullopt;
}

json::limits event_limits() {
  json::limits lim;
  lim.max_bytes = max_watch_line;
  lim.max_depth = 512;
  lim.max_nodes = 10'000'000;
  return lim;
}

}  // namespace

result<watch_event> decode_event(std::string_view line) {
  auto parsed = json::read_object(line, event_limits());
  if (!parsed) return malformed(to_string(parsed.error()));
  auto word = json::get_string(*parsed, {"type"});
  auto* object_value = parsed->if_contains("object");
  auto* content = object_value ? object_value->if_object() : nullptr;
  if (!content) return malformed("no object");
  if (word == "ERROR") return error_of_status(*content);
  auto type = type_of(word);
  if (!type) return malformed("unknown type " + std::string(word.substr(0, 64)));
  watch_event event;
  event.type = *type;
  event.obj = std::move(*content);
  return event;
}

namespace {

class body_watch final : public watch_stream {
 public:
  body_watch(std::unique_ptr<http::body_source> body, duration open_for, const clock& clk)
      : body_(std::move(body)), clock_(clk), ends_(clk.steady() + open_for) {}

  task<std::optional<watch_event>> next() override {
    while (true) {
      KUBEOPERA_CO_TRY(auto line, framer_.next());
      if (line) {
        KUBEOPERA_CO_TRY(auto event, decode_event(*line));
        co_return std::optional<watch_event>(std::move(event));
      }
      KUBEOPERA_CO_TRY(auto bytes, co_await read_some());
      if (bytes.empty()) break;
      framer_.feed(std::move(bytes));
    }
    if (framer_.half_line()) co_return cut("the watch ended within an event");
    co_return std::optional<watch_event>();
  }

 private:
  static error cut(std::string why) { return error(errc::unavailable, "WatchCut", std::move(why)); }

  task<std::string> read_some() {
    auto left = ends_ - clock_.steady();
    if (left <= duration::zero()) co_return cut("the API server did not end the watch in time");
    auto op = body_->next();
    auto bytes = co_await with_deadline<std::string>(left, std::move(op));
    if (!bytes && bytes.error().code() == errc::deadline_exceeded) co_return cut("the API server did not end the watch in time");
    co_return bytes;
  }

  std::unique_ptr<http::body_source> body_;
  const clock& clock_;
  steady_time ends_;
  line_framer framer_;
};

}  // namespace

std::unique_ptr<watch_stream> make_watch_stream(std::unique_ptr<http::body_source> body, duration open_for, const clock& clk) {
  return std::make_unique<body_watch>(std::move(body), open_for, clk);
}

}  // namespace kubeopera::inline v1::kube::detail
