// A request's place in a distributed trace, as the header traceparent carries it. Source: W3C Trace Context, level 1 (version
// 00). Not here: sending spans anywhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kubeopera::inline v1 {

/// One span: what happened under span_id belongs to trace_id. Value type.
struct trace_context {
  trace_context() = default;
  std::string trace_id;        ///< 32 lower-case hex digits, not all zero
  std::string span_id;         ///< 16 lower-case hex digits, not all zero
  std::string flags = "01";    ///< 2 lower-case hex digits; 01: sampled
  std::string header() const;  ///< "00-<trace_id>-<span_id>-<flags>"
};

/// Reads a traceparent. Strict: exact lengths, lower-case hex, no zero ids, no version ff; a later version is read by the rules
/// of version 00, and may have more after another '-'. nullopt for anything else. Thread safety: pure.
std::optional<trace_context> parse_traceparent(std::string_view header);
/// The first span of a new trace.
trace_context new_trace();
/// A new span in the same trace.
trace_context child_of(const trace_context& parent);

}  // namespace kubeopera::inline v1
