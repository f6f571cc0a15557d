// Watch framing and decoding as a pure state machine (bytes in, events out), and the stream over a transport's body.
#pragma once

#include "src/kube/decode.hpp"

#include <kubeopera/core/clock.hpp>
#include <kubeopera/http/message.hpp>
#include <kubeopera/kube/client.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::kube::detail {

/// The longest line of a watch that is read.
inline constexpr std::size_t max_watch_line = 32u << 20;

/// Cuts a byte stream into lines. Not thread-safe.
class line_framer {
 public:
  explicit line_framer(std::size_t max_line = max_watch_line) : max_line_(max_line) {}
  void feed(std::string_view bytes);
  /// The next complete line without its end, blank ones left out; nullopt when more bytes are needed. The view is valid
  /// until the next feed(), and so are decoder::padding() bytes behind it. Errors: too_large.
  result<std::optional<std::string_view>> next();
  /// True when the bytes so far end within a line.
  bool half_line() const noexcept { return from_ < buffer_.size(); }

 private:
  std::size_t max_line_;
  std::string buffer_;
  std::size_t from_ = 0;     // start of what was not handed out
  std::size_t scanned_ = 0;  // no newline before it
};

/// An open watch over a response's body.
/// @param open_for  after this long without an orderly end the watch counts as cut
std::unique_ptr<watch_stream> make_watch_stream(std::unique_ptr<http::body_source> body, duration open_for, const clock& clk,
                                                decode_style style = decode_style());

}  // namespace kubeopera::inline v1::kube::detail
