// Chunked bodies, and the writing side of heads.
#include "src/http/text.hpp"
#include "src/http/wire.hpp"

#include <charconv>

namespace kubeopera::inline v1::http::wire {

namespace {
constexpr std::size_t max_extension = 1024;
constexpr std::size_t max_trailers = 8192;
constexpr fault bad_chunk{400, "BadChunk", "the chunked body is malformed"};

bool text_byte(char c) noexcept {
  auto u = static_cast<unsigned char>(c);
  return (u >= 0x20 && u != 0x7f) || u == '\t';
}
}  // namespace

std::size_t chunk_decoder::feed(std::string_view input, std::string& out, std::size_t max_out, std::optional<fault>& bad) {
  std::size_t at = 0;
  auto fail = [&] {
    bad = bad_chunk;
    return at;
  };
  while (at < input.size() && state_ != state::done) {
    char c = input[at];
    switch (state_) {
      case state::size_start:
      case state::size:
        if (int v = hex_value(c); v >= 0) {
          if (++digits_ > 15) return fail();
          left_ = left_ * 16 + static_cast<unsigned>(v);
          state_ = state::size;
        } else if (state_ == state::size_start) {
          return fail();
        } else if (c == ';') {
          state_ = state::extension;
        } else if (c == '\r') {
          state_ = state::size_lf;
        } else {
          return fail();
        }
        ++at;
        break;
      case state::extension:
        if (c == '\r')
          state_ = state::size_lf;
        else if (!text_byte(c) || ++overhead_ > max_extension)
          return fail();
        ++at;
        break;
      case state::size_lf:
        if (c != '\n') return fail();
        ++at;
        state_ = left_ > 0 ? state::data : state::trailer_start;
        if (left_ == 0) overhead_ = 0;
        break;
      case state::data: {
        auto take = std::min<std::uint64_t>({left_, input.size() - at, max_out});
        if (take == 0) return at;
        out.append(input.substr(at, take));
        at += take;
        max_out -= take;
        left_ -= take;
        if (left_ == 0) state_ = state::data_cr;
        break;
      }
      case state::data_cr:
        if (c != '\r') return fail();
        ++at;
        state_ = state::data_lf;
        break;
      case state::data_lf:
        if (c != '\n') return fail();
        ++at;
        digits_ = 0;
        state_ = state::size_start;
        break;
      case state::trailer_start:
        if (c == '\r') {
          state_ = state::end_lf;
        } else if (!detail::token_chars[static_cast<unsigned char>(c)]) {
          return fail();
        } else {
          state_ = state::trailer;
        }
        ++at;
        break;
      case state::trailer:
        if (c == '\r')
          state_ = state::trailer_lf;
        else if (!text_byte(c) || ++overhead_ > max_trailers)
          return fail();
        ++at;
        break;
      case state::trailer_lf:
        if (c != '\n') return fail();
        ++at;
        state_ = state::trailer_start;
        break;
      case state::end_lf:
        if (c != '\n') return fail();
        ++at;
        state_ = state::done;
        break;
      case state::done:
        break;
    }
  }
  return at;
}

bool sendable(const fields& headers) noexcept {
  for (const auto& [name, value] : headers) {
    if (!is_token(name) || !is_field_value(value)) return false;
  }
  return true;
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

void append_chunk_head(std::string& out, std::size_t size) {
  char digits[20];
  auto [end, ec] = std::to_chars(digits, digits + sizeof digits, size, 16);
  out.append(digits, end);
  out += "\r\n";
}

void append_status_line(std::string& out, int status) {
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += status_text(status);
  out += "\r\n";
}

std::string_view status_text(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 425:
      return "Too Early";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

bool framing_header(std::string_view name) noexcept {
  for (std::string_view own : {"connection", "content-length", "transfer-encoding", "keep-alive", "te", "trailer", "upgrade"}) {
    if (iequals(name, own)) return true;
  }
  return false;
}

}  // namespace kubeopera::inline v1::http::wire
