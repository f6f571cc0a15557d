// Every code and reason of the API server, and what it means to us.
#include <kubeopera/kube/status.hpp>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::kube;
using std::chrono::seconds;

namespace {

struct expectation {
  int code;
  const char* reason;  // "" = no Status at all
  errc means;
  const char* reported;
};

class meaning : public testing::TestWithParam<expectation> {};

std::string status_json(int code, const std::string& reason) {
  json::object o{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"}, {"message", "m"}, {"code", code}};
  if (!reason.empty()) o["reason"] = reason;
  return boost::json::serialize(o);
}

json::object parse(const char* text) { return boost::json::parse(text).as_object(); }

}  // namespace

TEST_P(meaning, is_as_the_table_says) {
  auto p = GetParam();
  auto body = p.reason[0] ? status_json(p.code, p.reason) : std::string("<html>");
  auto e = error_of_response(p.code, {}, body);
  EXPECT_EQ(e.code(), p.means);
  EXPECT_EQ(e.reason(), p.reported);
}

INSTANTIATE_TEST_SUITE_P(
    all, meaning,
    testing::Values(
        expectation{400, "BadRequest", errc::invalid_argument, "BadRequest"},
        expectation{401, "Unauthorized", errc::unauthenticated, "Unauthorized"},
        expectation{403, "Forbidden", errc::permission_denied, "Forbidden"},
        expectation{404, "NotFound", errc::not_found, "NotFound"},
        expectation{405, "MethodNotAllowed", errc::unsupported, "MethodNotAllowed"},
        expectation{406, "NotAcceptable", errc::unsupported, "NotAcceptable"},
        expectation{409, "AlreadyExists", errc::already_exists, "AlreadyExists"},
        expectation{409, "Conflict", errc::conflict, "Conflict"}, expectation{410, "Gone", errc::gone, "Gone"},
        expectation{410, "Expired", errc::gone, "Expired"},
        expectation{413, "RequestEntityTooLarge", errc::too_large, "RequestEntityTooLarge"},
        expectation{415, "UnsupportedMediaType", errc::unsupported, "UnsupportedMediaType"},
        expectation{422, "Invalid", errc::invalid_argument, "Invalid"},
        expectation{429, "TooManyRequests", errc::resource_exhausted, "TooManyRequests"},
        expectation{500, "InternalError", errc::unavailable, "InternalError"},
        expectation{500, "ServerTimeout", errc::unavailable, "ServerTimeout"},
        expectation{500, "StoreReadError", errc::data_loss, "StoreReadError"},
        expectation{503, "ServiceUnavailable", errc::unavailable, "ServiceUnavailable"},
        expectation{504, "Timeout", errc::deadline_exceeded, "Timeout"},
        // A reason that is not known goes by the code, and is kept.
        expectation{409, "SomethingNew", errc::conflict, "SomethingNew"},
        expectation{503, "SomethingNew", errc::unavailable, "SomethingNew"},
        // Answers that are no Status: the code alone.
        expectation{301, "", errc::unsupported, "RedirectRefused"}, expectation{307, "", errc::unsupported, "RedirectRefused"},
        expectation{400, "", errc::invalid_argument, "BadRequest"}, expectation{401, "", errc::unauthenticated, "Unauthorized"},
        expectation{403, "", errc::permission_denied, "Forbidden"}, expectation{404, "", errc::not_found, "NotFound"},
        expectation{408, "", errc::deadline_exceeded, "UnexpectedAnswer"}, expectation{409, "", errc::conflict, "Conflict"},
        expectation{410, "", errc::gone, "Gone"}, expectation{413, "", errc::too_large, "RequestEntityTooLarge"},
        expectation{418, "", errc::invalid_argument, "UnexpectedAnswer"}, expectation{422, "", errc::invalid_argument, "Invalid"},
        expectation{429, "", errc::resource_exhausted, "TooManyRequests"},
        expectation{500, "", errc::unavailable, "InternalError"}, expectation{502, "", errc::unavailable, "UnexpectedAnswer"},
        expectation{503, "", errc::unavailable, "ServiceUnavailable"}, expectation{504, "", errc::deadline_exceeded, "Timeout"}));

TEST(status, every_row_of_the_table_is_tested_above) {
  EXPECT_EQ(status_table().size(), 19u);
  for (const auto& row : status_table()) {
    auto e = error_of_response(row.code, {}, status_json(row.code, std::string(row.reason)));
    EXPECT_EQ(e.code(), row.means) << row.reason;
  }
}

TEST(status, causes_become_violations_with_pointers) {
  auto e = error_of_status(parse(R"({"kind":"Status","reason":"Invalid","code":422,"message":"bad","details":{"causes":[
    {"reason":"FieldValueInvalid","message":"Invalid value","field":"spec.containers[0].image"},
    {"message":"no","field":"metadata.annotations[a.b/c]"},{"message":"top"}]}})"));
  ASSERT_EQ(e.violations().size(), 3u);
  EXPECT_EQ(e.violations()[0].pointer, "/spec/containers/0/image");
  EXPECT_EQ(e.violations()[0].message, "Invalid value");
  EXPECT_EQ(e.violations()[1].pointer, "/metadata/annotations/a.b~1c");
  EXPECT_EQ(e.violations()[2].pointer, "");
}

TEST(status, field_paths) {
  EXPECT_EQ(pointer_of_field("metadata.name"), "/metadata/name");
  EXPECT_EQ(pointer_of_field(".spec.replicas"), "/spec/replicas");
  EXPECT_EQ(pointer_of_field("spec.limits[cpu]"), "/spec/limits/cpu");
  EXPECT_EQ(pointer_of_field("a[0][1].b"), "/a/0/1/b");
  EXPECT_EQ(pointer_of_field("a[\"x.y\"]"), "/a/x.y");
  EXPECT_EQ(pointer_of_field("<nil>"), "");
  EXPECT_EQ(pointer_of_field(""), "");
  EXPECT_EQ(pointer_of_field("a[0"), "/a/0");
}

TEST(status, retry_after_from_details_or_header) {
  auto body = R"({"kind":"Status","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":3}})";
  EXPECT_EQ(error_of_response(429, {{"Retry-After", "9"}}, body).retry_after(), seconds(3));
  EXPECT_EQ(error_of_response(503, {{"Retry-After", "9"}}, "").retry_after(), seconds(9));
  EXPECT_EQ(error_of_response(503, {}, "").retry_after(), std::nullopt);
}

TEST(status, a_body_that_is_no_status_is_kept_as_private_detail) {
  auto e = error_of_response(502, {}, "<html>proxy</html>");
  EXPECT_EQ(e.message(), "the API server answered 502");
  EXPECT_EQ(e.detail(), "<html>proxy</html>");
}
