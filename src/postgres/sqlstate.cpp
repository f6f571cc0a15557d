// SQLSTATE to error code (PostgreSQL 15, appendix A).
#include "src/postgres/sqlstate.hpp"

#include <array>

namespace kubeopera::inline v1::postgres {
namespace {

constexpr std::array table = {
    sqlstate_row{"08", errc::unavailable, "ConnectionLost", "the database connection failed"},
    sqlstate_row{"0A000", errc::unsupported, "FeatureNotSupported", "the database does not do that"},
    sqlstate_row{"22", errc::invalid_argument, "InvalidValue", "the database refused a value"},
    sqlstate_row{"23502", errc::invalid_argument, "NotNullViolation", "a required value is missing"},
    sqlstate_row{"23503", errc::failed_precondition, "ForeignKeyViolation", "it is referred to, or refers to what is not there"},
    sqlstate_row{"23505", errc::already_exists, "UniqueViolation", "it exists already"},
    sqlstate_row{"23514", errc::failed_precondition, "CheckViolation", "a rule of the stored data does not allow it"},
    sqlstate_row{"23P01", errc::failed_precondition, "ExclusionViolation", "it overlaps with what is there"},
    sqlstate_row{"23", errc::failed_precondition, "IntegrityViolation", "a rule of the stored data does not allow it"},
    sqlstate_row{"25006", errc::unavailable, "ReadOnly", "the database takes no writes now"},
    sqlstate_row{"25P02", errc::failed_precondition, "TransactionAborted", "an earlier statement of the transaction failed"},
    sqlstate_row{"25P03", errc::unavailable, "IdleInTransaction", "the database ended an idle transaction"},
    sqlstate_row{"28", errc::unavailable, "AuthenticationRefused", "the database refused the login"},
    sqlstate_row{"3D000", errc::unavailable, "NoDatabase", "the database does not exist"},
    sqlstate_row{"40001", errc::conflict, "SerializationFailure", "another transaction changed the same rows"},
    sqlstate_row{"40P01", errc::conflict, "Deadlock", "another transaction waited for the same rows"},
    sqlstate_row{"40003", errc::unavailable, "CommitUnknown", "it is not known whether the transaction was committed"},
    sqlstate_row{"40", errc::failed_precondition, "TransactionRolledBack", "the transaction was rolled back"},
    sqlstate_row{"42501", errc::permission_denied, "InsufficientPrivilege", "the database does not allow it"},
    sqlstate_row{"53", errc::unavailable, "DatabaseOverloaded", "the database has no room for more work"},
    sqlstate_row{"54", errc::too_large, "LimitExceeded", "it is larger than the database takes"},
    sqlstate_row{"55P03", errc::conflict, "LockNotAvailable", "another transaction holds the lock"},
    sqlstate_row{"55", errc::failed_precondition, "NotInState", "the database object is not in the right state"},
    sqlstate_row{"57014", errc::deadline_exceeded, "StatementTimeout", "the statement took too long"},
    sqlstate_row{"57P01", errc::unavailable, "DatabaseShutdown", "the database is shutting down"},
    sqlstate_row{"57P02", errc::unavailable, "DatabaseCrashed", "the database crashed"},
    sqlstate_row{"57P03", errc::unavailable, "DatabaseStarting", "the database is starting"},
    sqlstate_row{"57", errc::unavailable, "OperatorIntervention", "an operator stopped the statement"},
    sqlstate_row{"58", errc::unavailable, "DatabaseSystemError", "the database's machine has a problem"},
    sqlstate_row{"P0001", errc::failed_precondition, "Raised", "the database raised an error"},
    sqlstate_row{"P0002", errc::not_found, "NoDataFound", "no such row"},
    sqlstate_row{"XX001", errc::data_loss, "DataCorrupted", "stored data is damaged"},
    sqlstate_row{"XX002", errc::data_loss, "IndexCorrupted", "a stored index is damaged"},
    sqlstate_row{"", errc::internal, "DatabaseError", "the database reported an unexpected error"},
};

}  // namespace

std::span<const sqlstate_row> sqlstate_table() noexcept { return table; }

const sqlstate_row& find_sqlstate(std::string_view state) noexcept {
  for (const auto& row : table)
    if (row.state == state) return row;
  for (const auto& row : table)
    if (row.state.size() == 2 && state.substr(0, 2) == row.state) return row;
  return table.back();
}

error make_error(const diagnostics& d) {
  const auto& row = find_sqlstate(d.state);
  bool speaks_to_caller = d.state.starts_with("22") || d.state == "P0001";
  std::string reason(d.state.starts_with("23") && !d.constraint.empty() ? std::string_view(d.constraint) : row.reason);
  error e(row.code, std::move(reason), speaks_to_caller ? d.message : std::string(row.sentence));
  std::string detail = d.state + " " + d.message;
  if (!d.detail.empty()) detail += "; " + d.detail;
  e = std::move(e).with_detail(std::move(detail)).with_context("sqlstate", d.state);
  if (!d.table.empty()) e = std::move(e).with_context("table", d.table);
  if (row.code == errc::unavailable) e = std::move(e).with_retry_after(std::chrono::seconds(2));
  return e;
}

error connection_error(std::string reason, std::string message, std::string detail) {
  return error(errc::unavailable, std::move(reason), std::move(message))
      .with_detail(std::move(detail))
      .with_retry_after(std::chrono::seconds(2));
}

}  // namespace kubeopera::inline v1::postgres
