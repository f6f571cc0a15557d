// The fast reader of what an API server streams and lists: simdjson in, Boost.JSON documents out.
// For a peer that is trusted to write JSON; documents that tenants write go through json::read.
#pragma once

#include <kubeopera/kube/client.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::kube::detail {

/// How objects are built.
struct decode_style {
  bool packed = false;         ///< each object in one block of memory of its own: for objects that are kept and not changed
  bool managed_fields = true;  ///< false: metadata.managedFields is skipped
};

/// Not thread-safe; keeps buffers between calls.
/// Equal to json::read for what it accepts, but for duplicate keys, of which the last one counts, as in Go.
class decoder {
 public:
  decoder();
  ~decoder();
  decoder(decoder&&) noexcept;
  decoder& operator=(decoder&&) noexcept;

  /// One event of a watch. text has padding() readable bytes behind it.
  /// Errors: those of an ERROR event's Status, data_loss (MalformedWatchEvent).
  result<watch_event> event(std::string_view text, decode_style style = decode_style());
  /// A list. Errors: data_loss (MalformedAnswer).
  result<object_list> list(std::string body, const resource_type& type, decode_style style = decode_style());
  /// One object. Errors: data_loss (MalformedAnswer).
  result<object> document(std::string body);

  static std::size_t padding() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace kubeopera::inline v1::kube::detail
