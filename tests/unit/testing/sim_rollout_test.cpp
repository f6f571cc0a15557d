// Rolling update arithmetic, step by step, without a cluster.
#include "src/testing/sim_rollout.hpp"

#include <kubeopera/json/read.hpp>

#include <gtest/gtest.h>

using namespace kubeopera;
using namespace kubeopera::testing::sim;

namespace {

rs_counts set_of(std::string name, int spec, int available, std::string created) {
  rs_counts c;
  c.name = std::move(name);
  c.spec = spec;
  c.replicas = spec;
  c.ready = c.available = available;
  c.created = std::move(created);
  return c;
}

rollout_spec spec_of(int replicas, int surge, int unavailable) {
  rollout_spec s;
  s.replicas = replicas;
  s.max_surge = surge;
  s.max_unavailable = unavailable;
  return s;
}

object deployment(std::string_view strategy, int replicas) {
  return json::read_object(R"({"spec":{"replicas":)" + std::to_string(replicas) + R"(,"strategy":)" + std::string(strategy) +
                           "}}")
      .value();
}

}  // namespace

TEST(rollout, percentages_round_surge_up_and_unavailable_down) {
  auto s =
      rollout_spec_of(deployment(R"({"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}})", 2));
  EXPECT_EQ(s.max_surge, 1);
  EXPECT_EQ(s.max_unavailable, 0);
  s = rollout_spec_of(deployment(R"({"type":"RollingUpdate","rollingUpdate":{"maxSurge":"30%","maxUnavailable":"30%"}})", 10));
  EXPECT_EQ(s.max_surge, 3);
  EXPECT_EQ(s.max_unavailable, 3);
}

TEST(rollout, both_zero_would_never_move_so_one_may_be_unavailable) {
  auto s = rollout_spec_of(deployment(R"({"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}})", 3));
  EXPECT_EQ(s.max_unavailable, 1);
}

TEST(rollout, the_new_set_grows_within_the_surge) {
  auto s = spec_of(10, 3, 2);
  EXPECT_EQ(new_replica_set_size(s, 0, 10), 3);
  EXPECT_EQ(new_replica_set_size(s, 3, 13), 3);
  EXPECT_EQ(new_replica_set_size(s, 3, 11), 5);
  EXPECT_EQ(new_replica_set_size(s, 9, 9), 10);
  EXPECT_EQ(new_replica_set_size(s, 12, 12), 10);
}

TEST(rollout, old_sets_give_up_what_is_not_needed_for_availability) {
  auto plan = scale_down_old(spec_of(10, 3, 2), set_of("new", 3, 0, "2"), {set_of("old", 10, 10, "1")});
  EXPECT_EQ(plan, (std::vector<scaling>{{0, 8}}));
  plan = scale_down_old(spec_of(10, 3, 2), set_of("new", 5, 5, "2"), {set_of("old", 8, 8, "1")});
  EXPECT_EQ(plan, (std::vector<scaling>{{0, 3}}));
}

TEST(rollout, unhealthy_old_pods_go_first_oldest_set_first) {
  auto plan = scale_down_old(spec_of(4, 1, 0), set_of("new", 1, 1, "3"), {set_of("b", 3, 3, "2"), set_of("a", 2, 0, "1")});
  EXPECT_EQ(plan, (std::vector<scaling>{{1, 0}}));
}

TEST(rollout, nothing_is_given_up_while_the_new_pods_are_not_available) {
  EXPECT_TRUE(scale_down_old(spec_of(2, 1, 0), set_of("new", 1, 0, "2"), {set_of("old", 2, 2, "1")}).empty());
}

// Whatever the numbers, a rollout stays within its limits and ends.
TEST(rollout, every_rollout_keeps_its_promises) {
  for (int replicas = 1; replicas <= 7; ++replicas) {
    for (int surge = 0; surge <= 3; ++surge) {
      for (int unavailable = surge == 0 ? 1 : 0; unavailable <= std::min(3, replicas); ++unavailable) {
        auto s = spec_of(replicas, surge, unavailable);
        auto old = set_of("old", replicas, replicas, "1"), fresh = set_of("new", 0, 0, "2");
        int steps = 0;
        while ((old.spec > 0 || fresh.available < replicas) && ++steps < 100) {
          int total = old.spec + fresh.spec;
          int size = new_replica_set_size(s, fresh.spec, total);
          if (size != fresh.spec) {
            fresh.spec = size;
          } else if (auto plan = scale_down_old(s, fresh, {old}); !plan.empty()) {
            old.spec = plan.front().to;
            old.available = std::min(old.available, old.spec);
          } else {
            ++fresh.available;  // a pod gets ready
          }
          ASSERT_LE(old.spec + fresh.spec, replicas + surge);
          ASSERT_GE(old.available + fresh.available, replicas - unavailable);
          ASSERT_LE(fresh.available, fresh.spec);
        }
        ASSERT_LT(steps, 100) << replicas << " " << surge << " " << unavailable;
      }
    }
  }
}

TEST(rollout, scaling_in_the_middle_of_a_rollout_keeps_the_shares) {
  auto plan = proportional(spec_of(20, 3, 2), {set_of("new", 5, 5, "2"), set_of("old", 8, 8, "1")}, {13, 13});
  int total = 0;
  for (const auto& p : plan) total += p.to;
  EXPECT_EQ(total, 23);
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0], (scaling{1, 14}));
  EXPECT_EQ(plan[1], (scaling{0, 9}));
}

TEST(rollout, a_condition_with_the_same_status_and_reason_stays_as_it_is) {
  json::array conditions;
  set_deployment_condition(conditions, "Available", "False", "MinimumReplicasUnavailable", "m", "t1");
  set_deployment_condition(conditions, "Available", "False", "MinimumReplicasUnavailable", "other words", "t2");
  EXPECT_EQ(json::get_string(*condition_in(conditions, "Available"), {"message"}), "m");
  set_deployment_condition(conditions, "Available", "False", "Other", "m", "t3");
  EXPECT_EQ(json::get_string(*condition_in(conditions, "Available"), {"lastTransitionTime"}), "t1");
  set_deployment_condition(conditions, "Available", "True", "MinimumReplicasAvailable", "m", "t4");
  EXPECT_EQ(json::get_string(*condition_in(conditions, "Available"), {"lastTransitionTime"}), "t4");
  EXPECT_EQ(conditions.size(), 1u);
}
