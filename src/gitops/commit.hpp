// Commit objects: reading them, and writing the one that a batch of changes becomes.
#pragma once

#include "src/gitops/oid.hpp"

#include <kubeopera/gitops/committer.hpp>

#include <span>
#include <string>
#include <vector>

namespace kubeopera::inline v1::gitops::detail {

struct parsed_commit {
  oid tree;
  std::vector<oid> parents;
  std::string author_name, author_email, message;
  std::int64_t time = 0;  ///< the committer's, seconds since 1970
};

/// Errors: data_loss.
result<parsed_commit> parse_commit(std::string_view bytes);

struct commit_parts {
  oid tree;
  std::optional<oid> parent;
  std::string name, email;
  std::int64_t time = 0;
  std::string message;  ///< without the blank line before it
};

/// The object's bytes. Characters that a name or address may not hold are left out.
std::string format_commit(const commit_parts& parts);

/// Subject, a list of the subjects where there are several, and every change's trailers in order, one group a change.
/// Readable by `git interpret-trailers --parse` and `git log --format=%(trailers)`.
std::string compose_message(std::span<const change* const> changes);

}  // namespace kubeopera::inline v1::gitops::detail
