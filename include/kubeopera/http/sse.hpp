// Server-sent events: encoder, a stream fed from any thread, and an incremental decoder. Source: WHATWG HTML, section 9.2.
#pragma once

#include <kubeopera/http/message.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::http {

struct sse_event {
  sse_event() = default;
  sse_event(std::string event_type, std::string event_data) : type(std::move(event_type)), data(std::move(event_data)) {}
  std::string type;                 ///< "" means "message"
  std::string data;                 ///< any text; line breaks become data lines
  std::optional<std::uint64_t> id;  ///< for Last-Event-ID
};

/// The bytes of one event. CR, LF and CRLF in data start a new data line; type loses its line breaks.
std::string encode_sse(const sse_event& event);
/// A comment line that keeps the connection alive.
std::string_view sse_ping() noexcept;
/// The value of a Last-Event-ID header: digits only. Errors: invalid_argument (BadEventId).
result<std::uint64_t> parse_last_event_id(std::string_view text);

struct sse_channel_options {
  sse_channel_options() = default;
  std::size_t max_queued_bytes = 1u << 20;  ///< a reader that is further behind is cut off
  duration ping_interval = std::chrono::seconds(15);
};

/// The producer's end of an event stream. Thread safety: all members may be called from any thread.
class sse_channel {
 public:
  explicit sse_channel(sse_channel_options options = sse_channel_options());
  ~sse_channel();
  sse_channel(const sse_channel&) = delete;
  sse_channel& operator=(const sse_channel&) = delete;
  /// Queues an event. False when the stream is over: closed, its reader gone or too far behind.
  bool send(const sse_event& event);
  /// The same for what encode_sse() gave: an event that goes to many readers is encoded once.
  bool send_encoded(std::string_view event);
  /// Ends the stream after what is queued.
  void close();
  /// True when nobody will read any more.
  bool closed() const noexcept;
  /// Returns when closed() has become true. Errors: cancelled.
  task<void> wait_closed();
  /// The reader's end; once. Destroying it closes the channel.
  std::unique_ptr<body_source> reader();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// A text/event-stream response over channel's reader.
response make_sse_response(sse_channel& channel);

/// Reads an event stream piece by piece; a pure state machine. Not thread-safe.
class sse_decoder {
 public:
  /// @param max_event_bytes limit of one event
  explicit sse_decoder(std::size_t max_event_bytes = 1u << 20) : max_(max_event_bytes) {}
  /// Adds bytes; appends the events that became complete. Errors: too_large (EventTooLarge).
  result<void> feed(std::string_view bytes, std::vector<sse_event>& out);
  /// The last id seen, as sent.
  const std::string& last_event_id() const noexcept { return last_id_; }
  /// The server's wish for the delay before reconnecting, milliseconds.
  std::optional<std::uint64_t> retry_ms() const noexcept { return retry_; }

 private:
  void line(std::string_view text, std::vector<sse_event>& out);
  std::size_t max_;
  std::string pending_, data_, type_, last_id_;
  bool has_data_ = false, skip_lf_ = false, started_ = false;
  std::optional<std::uint64_t> retry_;
};

/// Reads events from a streamed response. Not thread-safe.
class sse_reader {
 public:
  explicit sse_reader(std::unique_ptr<body_source> body) : body_(std::move(body)) {}
  /// The next event; nullopt at the end of the stream. Errors: those of the body, too_large.
  task<std::optional<sse_event>> next();
  const std::string& last_event_id() const noexcept { return decoder_.last_event_id(); }

 private:
  std::unique_ptr<body_source> body_;
  sse_decoder decoder_;
  std::vector<sse_event> ready_;
  std::size_t given_ = 0;
};

}  // namespace kubeopera::inline v1::http
