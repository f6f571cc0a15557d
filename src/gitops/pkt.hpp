// pkt-lines and what git says in them: advertisements, side bands, push reports. Pure: bytes in, values out.
// Formats: gitprotocol-common(5), gitprotocol-pack(5), gitprotocol-http(5), gitprotocol-capabilities(5).
#pragma once

#include "src/gitops/oid.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

constexpr std::size_t max_pkt_payload = 65516;

/// Appends one pkt-line.
void append_pkt(std::string& out, std::string_view payload);
void append_flush(std::string& out);

struct pkt {
  enum class kind { data, flush, delimiter, response_end };
  kind what = kind::data;
  std::string payload;
  /// The payload without a newline at its end.
  std::string_view line() const noexcept;
};

/// Splits a byte stream into pkt-lines. Not thread-safe.
class pkt_reader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next complete pkt; nullopt when more bytes are needed. Errors: unavailable with reason ProtocolError.
  result<std::optional<pkt>> next();
  /// True when no half-read pkt is left.
  bool empty() const noexcept { return at_ == buffer_.size(); }
  /// What has been fed and not been read.
  std::string_view rest() const noexcept { return std::string_view(buffer_).substr(at_); }

 private:
  std::string buffer_;
  std::size_t at_ = 0;
};

error protocol_error(std::string_view what);

/// What a server offers.
struct advertisement {
  std::map<std::string, oid, std::less<>> refs;
  std::map<std::string, std::string, std::less<>> capabilities;
  bool has(std::string_view capability) const { return capabilities.contains(capability); }
};

/// Reads a protocol 0 or 1 advertisement up to its flush; over HTTP first "# service=<service>" and a flush.
class advertisement_reader {
 public:
  /// service: "" over SSH, "git-upload-pack" or "git-receive-pack" over HTTP.
  explicit advertisement_reader(std::string service) : service_(std::move(service)), service_seen_(service_.empty()) {}
  /// True when it is complete. Errors: unavailable (protocol), permission_denied (the server's ERR line), unsupported (version
  /// 2).
  result<bool> take(const pkt& p);
  const advertisement& value() const noexcept { return value_; }

 private:
  result<void> take_ref(std::string_view line);
  std::string service_;
  bool service_seen_, flush_due_ = false, first_ = true;
  advertisement value_;
};

/// Collects what a receive-pack answers: side bands where `side_band`, then "unpack" and "ok"/"ng" lines.
class push_report {
 public:
  explicit push_report(bool side_band) : side_band_(side_band) {}
  /// True when the report is complete. Errors: unavailable (protocol).
  result<bool> take(const pkt& p);
  /// The server's word on ref: success, or conflict (it moved), permission_denied (refused, with the words), unavailable.
  result<void> verdict(std::string_view ref) const;
  bool complete() const noexcept { return complete_; }

 private:
  void take_line(std::string_view line);
  bool side_band_, complete_ = false;
  pkt_reader inner_;
  std::string unpack_, messages_;
  std::map<std::string, std::string, std::less<>> refused_;
  std::map<std::string, bool, std::less<>> accepted_;
};

/// Text of a peer made fit for messages and logs: printable, no terminal codes, no credentials in URLs, at most 500 bytes.
std::string clean_text(std::string_view text);

}  // namespace kubeopera::inline v1::gitops::detail
