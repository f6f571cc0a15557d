// What is said to a Git server, and how its pack comes back: the parts that smart HTTP and SSH share. Pure.
#pragma once

#include "src/gitops/pkt.hpp"

#include <kubeopera/gitops/store.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

/// An upload-pack request in one piece: want, flush, haves, done. Answered by one ACK or NAK line and the pack.
std::string fetch_request(const advertisement& offered, std::string_view want, const std::vector<std::string>& have);

/// The command part of a receive-pack request: "<from> <to> <ref>\0<capabilities>" and a flush. The pack follows it.
std::string push_request(const advertisement& offered, std::string_view ref, std::string_view from, std::string_view to);

/// True when push_request() asks for side bands, and so the report comes in them.
bool push_uses_side_band(const advertisement& offered);

/// Feeds an upload-pack's answer into a pack_writer. Errors: unavailable (protocol, the server's words), data_loss.
class fetch_answer {
 public:
  fetch_answer(bool side_band, std::unique_ptr<pack_writer> writer) : side_band_(side_band), writer_(std::move(writer)) {}
  result<void> take(std::string_view bytes);
  /// Called at the end of the stream: completes and stores the pack.
  result<void> finish();
  /// True once the answer is complete although the stream may still be open (side bands end with a flush).
  bool complete() const noexcept { return complete_; }

 private:
  result<void> take_pkt(const pkt& p);
  bool side_band_, in_pack_ = false, complete_ = false, got_bytes_ = false;
  std::unique_ptr<pack_writer> writer_;
  pkt_reader reader_;
  std::string messages_;
};

/// The branch's tip in an advertisement.
std::optional<std::string> tip_in(const advertisement& offered, const std::string& branch);

}  // namespace kubeopera::inline v1::gitops::detail
