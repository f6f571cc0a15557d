// What becomes of an outbox row: every error code, and the growth of the delays.
#include "src/events/relay_rules.hpp"

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::events;
using namespace std::chrono_literals;

namespace {

struct expectation {
  errc code;
  verdict what;
};

class relay_rules : public testing::TestWithParam<expectation> {};

}  // namespace

TEST_P(relay_rules, by_code) {
  result<void> r = error(GetParam().code, "R", "m");
  EXPECT_EQ(decide(r, 0, relay_options(), 0).what, GetParam().what);
}

INSTANTIATE_TEST_SUITE_P(
    all, relay_rules,
    testing::Values(expectation{errc::invalid_argument, verdict::dead}, expectation{errc::unauthenticated, verdict::dead},
                    expectation{errc::permission_denied, verdict::dead}, expectation{errc::not_found, verdict::again},
                    expectation{errc::already_exists, verdict::again}, expectation{errc::conflict, verdict::again},
                    expectation{errc::failed_precondition, verdict::dead}, expectation{errc::gone, verdict::again},
                    expectation{errc::too_large, verdict::dead}, expectation{errc::resource_exhausted, verdict::again},
                    expectation{errc::unsupported, verdict::dead}, expectation{errc::unavailable, verdict::again},
                    expectation{errc::deadline_exceeded, verdict::again}, expectation{errc::cancelled, verdict::again},
                    expectation{errc::data_loss, verdict::again}, expectation{errc::internal, verdict::again}),
    [](const auto& info) { return std::string(to_string(info.param.code)); });

TEST(relay_rules, success_is_done) { EXPECT_EQ(decide(result<void>(), 5, relay_options(), 7).what, verdict::done); }

TEST(relay_rules, delays_double_up_to_the_limit) {
  relay_options o;
  o.first_retry = 100ms;
  o.max_retry = 1s;
  result<void> r = error(errc::unavailable, "R", "m");
  EXPECT_EQ(decide(r, 0, o, 0).delay, 100ms);
  EXPECT_EQ(decide(r, 1, o, 0).delay, 200ms);
  EXPECT_EQ(decide(r, 3, o, 0).delay, 800ms);
  EXPECT_EQ(decide(r, 4, o, 0).delay, 1s);
  EXPECT_EQ(decide(r, 1'000'000, o, 0).delay, 1s);
  for (std::uint64_t random = 1; random < (1ull << 62); random = random * 3 + 1) {
    EXPECT_LE(decide(r, 0, o, random).delay, 100ms);
    EXPECT_GT(decide(r, 0, o, random).delay, 50ms - 1ns);
  }
}

TEST(relay_rules, retry_after_is_the_least) {
  result<void> r = error(errc::unavailable, "R", "m").with_retry_after(7s);
  EXPECT_EQ(decide(r, 0, relay_options(), 0).delay, 7s);
}
