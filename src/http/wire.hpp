// HTTP/1.1 framing as pure functions and state machines: heads, chunked bodies, and the writing of heads. No sockets.
// Strict where leniency lets two readers disagree (RFC 9112 section 11.2): one Content-Length, Transfer-Encoding exactly
// "chunked", CRLF only, no folding.
#pragma once

#include <kubeopera/http/message.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::http::wire {

/// Why bytes are not a message, as the status a server answers.
struct fault {
  int status = 400;
  const char* reason = "";
  const char* message = "";
};

/// Finds the end of a head while bytes arrive. Each byte is looked at once.
class head_scanner {
 public:
  /// @param buffer everything received so far, from the head's first byte
  /// Returns the length of the head with its empty line, or 0 when more bytes are needed.
  /// Fault: 400 for a line that ends in a bare LF or holds a stray CR or NUL, 431 over limit.
  std::size_t scan(std::string_view buffer, std::size_t limit, std::optional<fault>& bad);
  void reset() { scanned_ = line_ = 0; }

 private:
  std::size_t scanned_ = 0;  // bytes already looked at
  std::size_t line_ = 0;     // where the present line begins
};

enum class body_kind { none, length, chunked, until_close };

struct request_head {
  std::string method;
  std::string target;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;
  body_kind body = body_kind::none;
  std::uint64_t content_length = 0;
  fields headers;
};

/// Reads a complete head (with its empty line).
std::optional<fault> parse_request_head(std::string_view head, request_head& out);

struct response_head {
  int status = 0;
  bool http_1_0 = false;
  bool keep_alive = true;
  body_kind body = body_kind::none;
  std::uint64_t content_length = 0;
  fields headers;
};

/// @param to_head the response answers a HEAD request and so has no body
std::optional<fault> parse_response_head(std::string_view head, bool to_head, response_head& out);

/// Takes a chunked body apart. Extensions and trailers are dropped.
class chunk_decoder {
 public:
  /// Decodes from input, appends body bytes to out, at most max_out of them. Returns how many bytes of input were used.
  std::size_t feed(std::string_view input, std::string& out, std::size_t max_out, std::optional<fault>& bad);
  bool done() const noexcept { return state_ == state::done; }

 private:
  enum class state {
    size_start,
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer,
    trailer_lf,
    end_lf,
    done
  };
  state state_ = state::size_start;
  std::uint64_t left_ = 0;
  std::size_t digits_ = 0;
  std::size_t overhead_ = 0;  // bytes of extensions or trailers
};

/// True where name and value can be sent without being read as something else.
bool sendable(const fields& headers) noexcept;

/// Appends "name: value\r\n".
void append_field(std::string& out, std::string_view name, std::string_view value);
/// Appends a chunk's size line.
void append_chunk_head(std::string& out, std::size_t size);
/// "HTTP/1.1 404 Not Found\r\n".
void append_status_line(std::string& out, int status);
/// The reason phrase of a status; "Unknown" for unassigned ones.
std::string_view status_text(int status) noexcept;
/// True for headers that the transport writes itself: Connection, Content-Length, Transfer-Encoding, Keep-Alive, TE, Trailer,
/// Upgrade.
bool framing_header(std::string_view name) noexcept;

}  // namespace kubeopera::inline v1::http::wire
