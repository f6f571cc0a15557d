// Requests to upload-pack and receive-pack, and the reading of their answers.
#include "src/gitops/exchange.hpp"

namespace kubeopera::inline v1::gitops::detail {

namespace {

constexpr std::string_view agent = "agent=kubeopera/0.1";

void add_word(std::string& line, std::string_view word) {
  line += ' ';
  line += word;
}

}  // namespace

std::string fetch_request(const advertisement& offered, std::string_view want, const std::vector<std::string>& have) {
  std::string line = "want " + std::string(want);
  for (std::string_view word : {"side-band-64k", "ofs-delta", "no-progress"})
    if (offered.has(word)) add_word(line, word);
  if (offered.has("thin-pack") && !have.empty()) add_word(line, "thin-pack");
  if (offered.has("agent")) add_word(line, agent);
  std::string out;
  append_pkt(out, line + "\n");
  append_flush(out);
  for (const auto& id : have) append_pkt(out, "have " + id + "\n");
  append_pkt(out, "done\n");
  return out;
}

bool push_uses_side_band(const advertisement& offered) { return offered.has("side-band-64k"); }

std::string push_request(const advertisement& offered, std::string_view ref, std::string_view from, std::string_view to) {
  std::string line(from.empty() ? zero_hex() : from);
  add_word(line, to);
  add_word(line, ref);
  line.push_back('\0');
  add_word(line, "report-status");
  if (push_uses_side_band(offered)) add_word(line, "side-band-64k");
  if (offered.has("agent")) add_word(line, agent);
  std::string out;
  append_pkt(out, line);
  append_flush(out);
  return out;
}

result<void> fetch_answer::take(std::string_view bytes) {
  if (in_pack_ && !side_band_) {
    got_bytes_ = true;
    return writer_->append(bytes);
  }
  reader_.feed(bytes);
  while (!complete_) {
    KUBEOPERA_TRY(auto p, reader_.next());
    if (!p) return {};
    KUBEOPERA_CHECK(take_pkt(*p));
    if (in_pack_ && !side_band_) {
      got_bytes_ = true;
      return writer_->append(reader_.rest());
    }
  }
  return {};
}

result<void> fetch_answer::take_pkt(const pkt& p) {
  if (p.what == pkt::kind::flush) {
    complete_ = in_pack_;
    return {};
  }
  if (p.what != pkt::kind::data || p.payload.empty()) return protocol_error("an unexpected line before the pack");
  auto line = p.line();
  if (line.starts_with("ERR "))
    return error(errc::unavailable, "GitServer", "the Git server refused to send: " + clean_text(line.substr(4)));
  if (line == "NAK" || line.starts_with("ACK ")) {
    in_pack_ = true;
    return {};
  }
  if (line.starts_with("shallow ") || line.starts_with("unshallow ")) return {};
  auto body = std::string_view(p.payload).substr(1);
  switch (side_band_ && in_pack_ ? p.payload[0] : '\0') {
    case 1:
      got_bytes_ = true;
      return writer_->append(body);
    case 2:
      if (messages_.size() < 4096) messages_.append(body);
      return {};
    case 3:
      return error(errc::unavailable, "GitServer", "the Git server failed while sending: " + clean_text(body));
    default:
      return protocol_error("an unexpected line before the pack");
  }
}

result<void> fetch_answer::finish() {
  if (side_band_ && !complete_) return protocol_error("the pack ends too early");
  if (!got_bytes_) return protocol_error("there is no pack in it");
  return writer_->commit();
}

std::optional<std::string> tip_in(const advertisement& offered, const std::string& branch) {
  auto it = offered.refs.find("refs/heads/" + branch);
  if (it == offered.refs.end()) return std::nullopt;
  return it->second.hex();
}

}  // namespace kubeopera::inline v1::gitops::detail
