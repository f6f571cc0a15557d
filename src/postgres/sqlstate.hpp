// The one table from SQLSTATE to error code. Not here: reading it from a result.
#pragma once

#include <kubeopera/core/error.hpp>

#include <span>
#include <string>
#include <string_view>

namespace kubeopera::inline v1::postgres {

/// How a SQLSTATE (five characters) or a class of them (two) is told to a caller.
struct sqlstate_row {
  std::string_view state;
  errc code;
  std::string_view reason;
  std::string_view sentence;
};

/// All rows; an exact state wins over its class.
std::span<const sqlstate_row> sqlstate_table() noexcept;

/// The row of a state; the last row (internal) where the table has none.
const sqlstate_row& find_sqlstate(std::string_view state) noexcept;

/// What a server said about a failed statement.
struct diagnostics {
  std::string state, message, detail, constraint, table;
};

/// The error of a failed statement: constraint violations carry the constraint's name as reason; the server's words go to
/// the private detail, except where they are about the caller's value (class 22) or written for it (P0001).
error make_error(const diagnostics& d);

/// The server cannot be reached, or went away.
error connection_error(std::string reason, std::string message, std::string detail);

}  // namespace kubeopera::inline v1::postgres
