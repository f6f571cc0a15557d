// Reads watches: newline framing, event decoding, and what an end or an error in the stream means.
#include "src/kube/watch.hpp"

namespace kubeopera::inline v1::kube::detail {

void line_framer::feed(std::string_view bytes) {
  buffer_.erase(0, from_);
  scanned_ -= from_;
  from_ = 0;
  if (buffer_.capacity() < buffer_.size() + bytes.size() + decoder::padding()) {
    buffer_.reserve(2 * (buffer_.size() + bytes.size() + decoder::padding()));
  }
  buffer_ += bytes;
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

class body_watch final : public watch_stream {
 public:
  body_watch(std::unique_ptr<http::body_source> body, duration open_for, const clock& clk, decode_style style)
      : body_(std::move(body)), clock_(clk), ends_(clk.steady() + open_for), style_(style) {}

  task<std::optional<watch_event>> next() override {
    while (true) {
      KUBEOPERA_CO_TRY(auto line, framer_.next());
      if (line) {
        KUBEOPERA_CO_TRY(auto event, decoder_.event(*line, style_));
        co_return std::optional<watch_event>(std::move(event));
      }
      KUBEOPERA_CO_TRY(auto bytes, co_await read_some());
      if (bytes.empty()) break;
      framer_.feed(bytes);
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
  decode_style style_;
  line_framer framer_;
  decoder decoder_;
};

}  // namespace

std::unique_ptr<watch_stream> make_watch_stream(std::unique_ptr<http::body_source> body, duration open_for, const clock& clk,
                                                decode_style style) {
  return std::make_unique<body_watch>(std::move(body), open_for, clk, style);
}

}  // namespace kubeopera::inline v1::kube::detail
