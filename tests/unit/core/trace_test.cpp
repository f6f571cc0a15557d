// traceparent: what is accepted, and what the next span says.
#include <kubeopera/core/trace.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;

namespace {

const std::string trace = "0af7651916cd43dd8448eb211c80319c";
const std::string span = "b7ad6b7169203331";
const std::string good = "00-" + trace + "-" + span + "-01";

}  // namespace

TEST(trace, reads_version_00) {
  auto t = parse_traceparent(good);
  ASSERT_TRUE(t);
  EXPECT_EQ(t->trace_id, trace);
  EXPECT_EQ(t->span_id, span);
  EXPECT_EQ(t->header(), good);
  EXPECT_EQ(parse_traceparent("00-" + trace + "-" + span + "-00")->flags, "00");
}

TEST(trace, keeps_the_one_flag_it_knows) {
  EXPECT_EQ(parse_traceparent("00-" + trace + "-" + span + "-ff")->flags, "01");
  EXPECT_EQ(parse_traceparent("00-" + trace + "-" + span + "-fe")->flags, "00");
}

TEST(trace, later_versions_are_read_by_the_rules_of_version_00) {
  EXPECT_TRUE(parse_traceparent("cc-" + trace + "-" + span + "-01"));
  auto t = parse_traceparent("cc-" + trace + "-" + span + "-01-what-the-future-brings");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->header(), good);
  EXPECT_FALSE(parse_traceparent("cc-" + trace + "-" + span + "-01.more"));
}

class refused_traceparent : public testing::TestWithParam<std::string> {};
TEST_P(refused_traceparent, is_none) { EXPECT_FALSE(parse_traceparent(GetParam())) << GetParam(); }
INSTANTIATE_TEST_SUITE_P(all, refused_traceparent,
                         testing::Values("", "00", good.substr(0, 54), good + "-", good + "-00", good + "0", " " + good,
                                         good + " ", "ff-" + trace + "-" + span + "-01", "0x-" + trace + "-" + span + "-01",
                                         "00-" + std::string(32, '0') + "-" + span + "-01",
                                         "00-" + trace + "-" + std::string(16, '0') + "-01",
                                         "00-0AF7651916CD43DD8448EB211C80319C-" + span + "-01",
                                         "00-" + trace + "-" + span + "-0g", "00_" + trace + "_" + span + "_01",
                                         "00-" + trace.substr(1) + "x-" + span + "-01", "00-" + trace + "-" + span + "-0\n"));

TEST(trace, a_child_goes_on_in_its_trace) {
  auto parent = new_trace();
  EXPECT_TRUE(parse_traceparent(parent.header()));
  auto child = child_of(parent);
  EXPECT_EQ(child.trace_id, parent.trace_id);
  EXPECT_NE(child.span_id, parent.span_id);
  EXPECT_TRUE(parse_traceparent(child.header()));
  EXPECT_NE(new_trace().trace_id, parent.trace_id);
}
