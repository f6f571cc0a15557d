// The documents that users see: the golden OpenAPI files, and the list of documented endpoints.
#include "server/app/roles.hpp"

#include <kubeopera/json/write.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

using namespace kubeopera;

namespace {

std::string read_text(const std::string& name) {
  std::ifstream in(std::string(KUBEOPERA_TESTS_DIR) + "/golden/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class golden_openapi : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(golden_openapi, is_what_the_table_says) {
  const auto* role = app::find_role(GetParam());
  ASSERT_NE(role, nullptr);
  EXPECT_EQ(json::write_pretty(app::openapi_of(*role)) + "\n", read_text("openapi/" + role->service + ".json"))
      << "run: kubeopera openapi " << GetParam() << " > tests/golden/openapi/" << role->service << ".json";
}
INSTANTIATE_TEST_SUITE_P(services, golden_openapi, testing::Values("api", "app"));

TEST(endpoints, every_route_is_documented_and_the_open_ones_are_listed) {
  std::set<std::string> documented, served, open;
  std::istringstream lines(read_text("endpoints/kubeopera-api.txt"));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) documented.insert(line);
  std::istringstream missing(read_text("endpoints/kubeopera-api.not-yet.txt"));
  for (std::string line; std::getline(missing, line);)
    if (!line.empty() && line[0] != '#') open.insert(line);
  for (const auto& r : app::find_role("api")->routes()) served.insert(r.method + " " + r.path);
  for (const auto& s : served) EXPECT_TRUE(documented.contains(s)) << s << " is served but not documented";
  for (const auto& d : documented)
    EXPECT_NE(served.contains(d), open.contains(d)) << d << " must be served or listed as not yet, and not both";
}

TEST(routes, every_row_says_who_may_call_it_and_what_it_does) {
  for (const auto& role : app::roles())
    for (const auto& r : role.routes()) {
      EXPECT_FALSE(r.summary.empty()) << r.path;
      EXPECT_TRUE(r.summary.ends_with('.')) << r.path;
      EXPECT_NE(r.access.what(), web::access::kind::open) << r.path;
      EXPECT_FALSE(r.operation_id.empty());
    }
}
