// pkt-lines, advertisements, side bands and push reports.
#include "src/gitops/pkt.hpp"

#include <array>

namespace kubeopera::inline v1::gitops::detail {

namespace {

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Words in a refusal that mean "somebody else was faster" and not "you may not". From git's receive-pack, and from
// servers that follow it.
bool means_moved(std::string_view reason) {
  static constexpr std::array<std::string_view, 10> words = {
      "failed to update ref", "failed to lock", "cannot lock ref",          "unable to lock",      "non-fast-forward",
      "fetch first",          "stale info",     "reference already exists", "incorrect old value", "but expected"};
  for (auto w : words)
    if (reason.find(w) != std::string_view::npos) return true;
  return false;
}

}  // namespace

void append_pkt(std::string& out, std::string_view payload) {
  static constexpr char digits[] = "0123456789abcdef";
  auto size = payload.size() + 4;
  for (int shift = 12; shift >= 0; shift -= 4) out.push_back(digits[size >> shift & 15]);
  out.append(payload);
}

void append_flush(std::string& out) { out += "0000"; }

std::string_view pkt::line() const noexcept {
  std::string_view out = payload;
  if (out.ends_with('\n')) out.remove_suffix(1);
  return out;
}

error protocol_error(std::string_view what) {
  return {errc::unavailable, "ProtocolError", "the Git server's answer cannot be read: " + std::string(what)};
}

result<std::optional<pkt>> pkt_reader::next() {
  if (at_ > 65536) {
    buffer_.erase(0, at_);
    at_ = 0;
  }
  if (buffer_.size() - at_ < 4) return std::optional<pkt>();
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    int digit = hex_value(buffer_[at_ + i]);
    if (digit < 0) return protocol_error("a line has no length");
    size = size * 16 + static_cast<std::size_t>(digit);
  }
  pkt out;
  if (size < 4) {
    if (size == 3) return protocol_error("a line has a length below four");
    at_ += 4;
    out.what = size == 0 ? pkt::kind::flush : size == 1 ? pkt::kind::delimiter : pkt::kind::response_end;
    return std::optional<pkt>(std::move(out));
  }
  if (size > max_pkt_payload + 4) return protocol_error("a line is too long");
  if (buffer_.size() - at_ < size) return std::optional<pkt>();
  out.payload = buffer_.substr(at_ + 4, size - 4);
  at_ += size;
  return std::optional<pkt>(std::move(out));
}

std::string clean_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || c == '\t') {
      if (!out.empty() && out.back() != ' ') out.push_back(' ');
    } else if (u >= 0x20 && u < 0x7f) {
      out.push_back(c);
    }
    if (out.size() == 500) break;
  }
  while (out.ends_with(' ')) out.pop_back();
  // "scheme://user:password@host" loses what stands before the '@'.
  for (auto at = out.find("://"); at != std::string::npos; at = out.find("://", at + 3)) {
    auto end = out.find_first_of(" /'\"", at + 3);
    auto sign = out.rfind('@', end == std::string::npos ? out.size() : end);
    if (sign != std::string::npos && sign > at + 2) out.replace(at + 3, sign - at - 3, "***");
  }
  return out;
}

result<bool> advertisement_reader::take(const pkt& p) {
  if (p.what == pkt::kind::flush) {
    if (flush_due_) {
      flush_due_ = false;
      return false;
    }
    if (!service_seen_) return protocol_error("it names no service");
    return true;
  }
  if (p.what != pkt::kind::data) return protocol_error("an advertisement of another protocol version");
  auto line = p.line();
  if (line.starts_with("ERR "))
    return error(errc::permission_denied, "GitServer", "the Git server refused: " + clean_text(line.substr(4)));
  if (!service_seen_) {
    if (line != "# service=" + service_) return protocol_error("it is not a smart Git server");
    service_seen_ = flush_due_ = true;
    return false;
  }
  if (first_ && line == "version 1") return false;
  if (first_ && line.starts_with("version "))
    return error(errc::unsupported, "GitProtocol", "the Git server insists on another protocol version");
  KUBEOPERA_CHECK(take_ref(line));
  return false;
}

result<void> advertisement_reader::take_ref(std::string_view line) {
  if (first_) {
    first_ = false;
    auto nul = line.find('\0');
    if (nul == std::string_view::npos) return protocol_error("it lists no capabilities");
    for (auto rest = line.substr(nul + 1); !rest.empty();) {
      auto word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      auto equals = word.find('=');
      if (!word.empty())
        value_.capabilities.insert_or_assign(std::string(word.substr(0, equals)),
                                             equals == std::string_view::npos ? "" : std::string(word.substr(equals + 1)));
    }
    line = line.substr(0, nul);
  }
  if (line.starts_with("shallow ")) return {};
  if (line.size() < 42 || line[40] != ' ') return protocol_error("a ref without an id");
  auto id = oid::parse(line.substr(0, 40));
  if (!id) return protocol_error("a ref without an id");
  auto name = line.substr(41);
  if (name != "capabilities^{}" && name != ".have") value_.refs.insert_or_assign(std::string(name), *id);
  return {};
}

result<bool> push_report::take(const pkt& p) {
  if (p.what == pkt::kind::flush) {
    complete_ = true;
    return true;
  }
  if (p.what != pkt::kind::data || p.payload.empty()) return protocol_error("an unexpected line in a push report");
  if (!side_band_) {
    take_line(p.line());
    return false;
  }
  auto body = std::string_view(p.payload).substr(1);
  switch (p.payload[0]) {
    case 1: {
      inner_.feed(body);
      while (true) {
        KUBEOPERA_TRY(auto inner, inner_.next());
        if (!inner) return false;
        if (inner->what == pkt::kind::data) take_line(inner->line());
      }
    }
    case 2:
    case 3:
      if (messages_.size() < 8192) messages_.append(body);
      return false;
    default:
      return protocol_error("an unknown side band");
  }
}

void push_report::take_line(std::string_view line) {
  if (line.starts_with("unpack ")) {
    unpack_ = std::string(line.substr(7));
  } else if (line.starts_with("ok ")) {
    accepted_[std::string(line.substr(3))] = true;
  } else if (line.starts_with("ng ")) {
    auto rest = line.substr(3);
    auto space = rest.find(' ');
    refused_[std::string(rest.substr(0, space))] =
        space == std::string_view::npos ? "refused" : std::string(rest.substr(space + 1));
  }
}

result<void> push_report::verdict(std::string_view ref) const {
  if (auto it = refused_.find(ref); it != refused_.end()) {
    auto words = clean_text(it->second);
    auto told = clean_text(messages_);
    if (!told.empty()) words += ": " + told;
    if (unpack_ != "ok" && !unpack_.empty())
      return error(errc::unavailable, "UnpackFailed",
                   "the Git server could not store the pack (" + clean_text(unpack_) + "): " + words);
    if (means_moved(it->second) || (it->second.find("hook") == std::string::npos && means_moved(messages_)))
      return error(errc::conflict, "BranchMoved", "the branch has moved meanwhile: " + words);
    return error(errc::permission_denied, "PushRefused", "the Git server refused the push: " + words);
  }
  if (unpack_ == "ok" && accepted_.contains(ref)) return {};
  if (!unpack_.empty() && unpack_ != "ok")
    return error(errc::unavailable, "UnpackFailed", "the Git server could not store the pack: " + clean_text(unpack_));
  return protocol_error("it says nothing on the branch");
}

}  // namespace kubeopera::inline v1::gitops::detail
