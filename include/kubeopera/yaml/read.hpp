// Reading YAML: a closed-world reader for documents that people and tenants send, and a reader that errs as Go's does, for
// whoever has to answer as a Kubernetes API server answers. Both give JSON values; neither keeps comments or styles.
#pragma once

#include <kubeopera/core/result.hpp>
#include <kubeopera/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kubeopera::inline v1::yaml {

struct limits {
  limits() = default;
  std::size_t max_bytes = 256 * 1024;
  std::size_t max_depth = 32;
  std::size_t max_nodes = 20'000;  ///< values and keys together
};

/// Reads exactly one document, and only what YAML 1.1 and YAML 1.2 readers understand alike.
///
/// Plain scalars: null (also `~`, `Null`, `NULL` and nothing at all), true/True/TRUE and false likewise, decimal integers
/// without leading zeros that fit 64 bits, `0x` integers, and decimals with digits on both sides of the dot (an exponent has
/// a sign: `1.5e+3`) mean the same in both; every other plain scalar that one version types and the other does not (`yes`,
/// `on`, `y`, `0755`, `0o17`, `0b1`, `1_000`, `12:30`, `1e3`, `.5`, `1.`, `2001-12-14`, `=`) is refused with the advice to
/// quote it. `.inf` and `.nan` are refused because JSON has no such number.
///
/// Errors: too_large, and invalid_argument with one violation (JSON pointer; line and column in the message) and the reason
/// MalformedYaml, DuplicateKey, Anchor, Alias, MergeKey, Tag, Directive, KeyNotString, SecondDocument, AmbiguousScalar,
/// NumberOutOfRange, TooDeep, TooManyNodes or BadCharacter (bad UTF-8, byte order mark, UTF-16, control characters, a tab outside
/// of quotes, blocks and comments).
/// Thread safety: pure.
result<json::value> read(std::string_view text, const limits& lim = limits());

/// The same for a stream of documents separated by `---`; empty documents are left out. The limits hold for the whole stream.
result<std::vector<json::value>> read_all(std::string_view text, const limits& lim = limits());

/// The first document as the Kubernetes API server reads an `application/apply-patch+yaml` body (sigs.k8s.io/yaml over
/// go.yaml.in/yaml/v2): bare `y`, `yes`, `on` are booleans, `0755` is octal, `1_000` is a thousand, aliases and merge keys are
/// expanded, keys that are not strings become strings, of duplicate keys the last one wins, later documents are ignored.
/// Never for a document whose meaning matters to us: it is made to be as lax as its model.
/// @param duplicates  where given, gets one `line N: key "K" already set in map` a duplicate key, as the strict decoder says it
/// Errors: too_large, invalid_argument (MalformedYaml, TooManyNodes after expansion, TooDeep). Thread safety: pure.
result<json::value> read_as_go(std::string_view text, std::vector<std::string>* duplicates = nullptr);

}  // namespace kubeopera::inline v1::yaml
