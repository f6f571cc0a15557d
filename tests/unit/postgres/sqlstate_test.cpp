// Every row of the SQLSTATE table, and how errors are worded.
#include "src/postgres/sqlstate.hpp"

#include <gtest/gtest.h>

#include <set>

using namespace kubeopera;
using namespace kubeopera::postgres;

namespace {

struct expectation {
  const char* state;
  errc code;
  const char* reason;
};

class sqlstate_rows : public testing::TestWithParam<expectation> {};

const expectation expected[] = {
    {"08000", errc::unavailable, "ConnectionLost"},
    {"08006", errc::unavailable, "ConnectionLost"},
    {"0A000", errc::unsupported, "FeatureNotSupported"},
    {"22P02", errc::invalid_argument, "InvalidValue"},
    {"22001", errc::invalid_argument, "InvalidValue"},
    {"23502", errc::invalid_argument, "NotNullViolation"},
    {"23503", errc::failed_precondition, "ForeignKeyViolation"},
    {"23505", errc::already_exists, "UniqueViolation"},
    {"23514", errc::failed_precondition, "CheckViolation"},
    {"23P01", errc::failed_precondition, "ExclusionViolation"},
    {"23001", errc::failed_precondition, "IntegrityViolation"},
    {"25006", errc::unavailable, "ReadOnly"},
    {"25P02", errc::failed_precondition, "TransactionAborted"},
    {"25P03", errc::unavailable, "IdleInTransaction"},
    {"28P01", errc::unavailable, "AuthenticationRefused"},
    {"3D000", errc::unavailable, "NoDatabase"},
    {"40001", errc::conflict, "SerializationFailure"},
    {"40P01", errc::conflict, "Deadlock"},
    {"40003", errc::unavailable, "CommitUnknown"},
    {"40002", errc::failed_precondition, "TransactionRolledBack"},
    {"42501", errc::permission_denied, "InsufficientPrivilege"},
    {"53300", errc::unavailable, "DatabaseOverloaded"},
    {"54000", errc::too_large, "LimitExceeded"},
    {"55P03", errc::conflict, "LockNotAvailable"},
    {"55006", errc::failed_precondition, "NotInState"},
    {"57014", errc::deadline_exceeded, "StatementTimeout"},
    {"57P01", errc::unavailable, "DatabaseShutdown"},
    {"57P02", errc::unavailable, "DatabaseCrashed"},
    {"57P03", errc::unavailable, "DatabaseStarting"},
    {"57P04", errc::unavailable, "OperatorIntervention"},
    {"58030", errc::unavailable, "DatabaseSystemError"},
    {"P0001", errc::failed_precondition, "Raised"},
    {"P0002", errc::not_found, "NoDataFound"},
    {"XX001", errc::data_loss, "DataCorrupted"},
    {"XX002", errc::data_loss, "IndexCorrupted"},
    {"42P01", errc::internal, "DatabaseError"},
    {"42601", errc::internal, "DatabaseError"},
    {"XX000", errc::internal, "DatabaseError"},
    {"", errc::internal, "DatabaseError"},
};

}  // namespace

TEST_P(sqlstate_rows, maps) {
  diagnostics d;
  d.state = GetParam().state;
  auto e = make_error(d);
  EXPECT_EQ(e.code(), GetParam().code);
  EXPECT_EQ(e.reason(), GetParam().reason);
  EXPECT_EQ(e.retry_after().has_value(), e.code() == errc::unavailable);
}

INSTANTIATE_TEST_SUITE_P(all, sqlstate_rows, testing::ValuesIn(expected), [](const auto& info) {
  return std::string("state_") + (*info.param.state ? info.param.state : "none");
});

TEST(sqlstate, every_row_has_an_expectation) {
  std::set<std::string_view> reached;
  for (const auto& e : expected) reached.insert(find_sqlstate(e.state).state);
  for (const auto& row : sqlstate_table()) EXPECT_TRUE(reached.contains(row.state)) << row.state;
}

TEST(sqlstate, constraint_names_the_reason_and_values_stay_private) {
  diagnostics d;
  d.state = "23505";
  d.message = "duplicate key value violates unique constraint \"apps_name_key\"";
  d.detail = "Key (name)=(secret-project) already exists.";
  d.constraint = "apps_name_key";
  d.table = "apps";
  auto e = make_error(d);
  EXPECT_EQ(e.reason(), "apps_name_key");
  EXPECT_EQ(e.message().find("secret-project"), std::string::npos);
  EXPECT_NE(e.detail().find("secret-project"), std::string::npos);
}

TEST(sqlstate, invalid_values_are_explained) {
  diagnostics d;
  d.state = "22P02";
  d.message = "invalid input syntax for type uuid: \"x\"";
  EXPECT_EQ(make_error(d).message(), d.message);
}
