// The election's decisions with clocks of the test's own: two candidates, frozen leaders, skewed clocks, lost races.
#include "src/kube/lease_machine.hpp"

#include "tests/unit/kube/kit.hpp"

#include <random>

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace std::chrono_literals;
using kube::detail::lease_machine;
using kube::detail::lease_step;
using kube::detail::lease_step_kind;

namespace {

const steady_time start{1h};
const system_time wall{std::chrono::hours(24 * 365 * 50)};

lease_options options_of(const std::string& identity) {
  lease_options o;
  o.ns = "ns";
  o.name = "l";
  o.identity = identity;
  return o;
}

// The Lease on the server, with optimistic concurrency.
struct server {
  std::optional<object> lease;
  int version = 0;
  result<object> create(object body) {
    if (lease) return error(errc::already_exists, "AlreadyExists", "");
    return store(std::move(body));
  }
  result<object> update(object body) {
    if (!lease) return error(errc::not_found, "NotFound", "");
    if (resource_version_of(body) != resource_version_of(*lease)) return error(errc::conflict, "Conflict", "");
    return store(std::move(body));
  }
  object store(object body) {
    json::ensure_object(body, "metadata")["resourceVersion"] = std::to_string(++version);
    lease = body;
    return body;
  }
  std::string holder() const { return lease ? std::string(json::get_string(*lease, {"spec", "holderIdentity"})) : ""; }
  std::int64_t transitions() const { return json::get_int(*lease, {"spec", "leaseTransitions"}, -1); }
};

struct candidate {
  candidate(server& s, const std::string& name, duration clock_skew = 0s)
      : api(s), machine(options_of(name), [] { return std::uint64_t{0}; }), skew(clock_skew) {}
  server& api;
  lease_machine machine;
  duration skew;  // of its wall clock
  std::optional<lease_step> held;

  lease_step next(steady_time now) {
    return machine.next(now, wall + std::chrono::duration_cast<system_time::duration>(now - start + skew));
  }
  // Takes steps until the machine wants to wait; gives how long.
  duration go(steady_time now) {
    for (int i = 0; i < 20; ++i) {
      auto step = next(now);
      if (step.kind == lease_step_kind::wait) return step.wait;
      take(step, now, now);
    }
    ADD_FAILURE() << "never waits";
    return 1h;
  }
  void take(const lease_step& step, steady_time sent, steady_time now) {
    if (step.kind == lease_step_kind::read) return machine.on_read(api.lease, now);
    auto r = step.kind == lease_step_kind::create ? api.create(step.body) : api.update(step.body);
    if (r)
      machine.on_written(std::move(*r), sent, now);
    else
      machine.on_error(r.error());
  }
};

}  // namespace

TEST(lease, the_first_candidate_creates_and_leads) {
  server api;
  candidate a(api, "a");
  EXPECT_EQ(a.next(start).kind, lease_step_kind::read);
  EXPECT_EQ(a.go(start), 2s) << "a leader renews every retry period";
  EXPECT_TRUE(a.machine.leading(start));
  EXPECT_EQ(api.holder(), "a");
  EXPECT_EQ(api.transitions(), 0);
  EXPECT_EQ(json::get_int(*api.lease, {"spec", "leaseDurationSeconds"}), 15);
  EXPECT_EQ(json::get_string(*api.lease, {"spec", "renewTime"}), format_rfc3339_micros(wall));
  EXPECT_EQ(json::get_string(*api.lease, {"spec", "acquireTime"}), format_rfc3339_micros(wall));
}

TEST(lease, renewal_keeps_the_fence_and_the_time_of_acquisition) {
  server api;
  candidate a(api, "a");
  a.go(start);
  a.go(start + 2s);
  EXPECT_EQ(api.transitions(), 0);
  EXPECT_EQ(a.machine.transitions(), 0);
  EXPECT_EQ(json::get_string(*api.lease, {"spec", "acquireTime"}), format_rfc3339_micros(wall));
  EXPECT_EQ(json::get_string(*api.lease, {"spec", "renewTime"}), format_rfc3339_micros(wall + 2s));
  EXPECT_TRUE(a.machine.leading(start + 11s));
  EXPECT_FALSE(a.machine.leading(start + 12s)) << "ten seconds after the last renewal was sent";
}

TEST(lease, a_second_candidate_waits_for_the_whole_duration_from_the_last_change_it_saw) {
  server api;
  candidate a(api, "a"), b(api, "b");
  a.go(start);
  auto now = start;
  for (; now < start + 15s; now += 2s) {
    EXPECT_GE(b.go(now), 2s);
    EXPECT_FALSE(b.machine.leading(now)) << (now - start).count();
    EXPECT_EQ(api.holder(), "a");
  }
  b.go(now);
  EXPECT_TRUE(b.machine.leading(now));
  EXPECT_EQ(api.transitions(), 1);
  EXPECT_EQ(b.machine.transitions(), 1);
}

TEST(lease, a_leader_that_renews_is_never_overtaken_whatever_the_clocks_say) {
  for (duration skew : {duration(-24h), duration(0s), duration(24h)}) {
    server api;
    candidate a(api, "a"), b(api, "b", skew);
    for (auto now = start; now < start + 10min; now += 2s) {
      a.go(now);
      b.go(now + 1s);
      ASSERT_TRUE(a.machine.leading(now + 1s));
      ASSERT_FALSE(b.machine.leading(now + 1s));
    }
  }
}

TEST(lease, a_frozen_leader_knows_that_it_is_out_before_the_other_is_in) {
  server api;
  candidate a(api, "a"), b(api, "b");
  a.go(start);
  b.go(start);
  std::optional<steady_time> b_leads;
  for (auto now = start; !b_leads && now < start + 1min; now += 500ms) {
    b.go(now);
    if (b.machine.leading(now)) b_leads = now;
    EXPECT_FALSE(a.machine.leading(now) && b.machine.leading(now));
  }
  ASSERT_TRUE(b_leads);
  EXPECT_GE(*b_leads - start, 15s);
  EXPECT_FALSE(a.machine.leading(*b_leads));
  // It wakes: its renewal meets a conflict, it reads, it waits as a candidate.
  EXPECT_GE(a.go(*b_leads), 2s);
  EXPECT_FALSE(a.machine.leading(*b_leads));
  EXPECT_EQ(a.machine.holder(), "b");
  EXPECT_EQ(api.holder(), "b");
}

TEST(lease, a_renewal_that_took_too_long_does_not_lengthen_leadership) {
  server api;
  candidate a(api, "a");
  a.go(start);
  auto step = a.next(start + 2s);
  ASSERT_EQ(step.kind, lease_step_kind::update);
  a.take(step, start + 2s, start + 11s);
  EXPECT_TRUE(a.machine.leading(start + 11s));
  EXPECT_FALSE(a.machine.leading(start + 12s)) << "counted from when it was sent";
}

TEST(lease, a_conflict_of_the_leader_is_read_up_at_once) {
  server api;
  candidate a(api, "a");
  a.go(start);
  api.store(*api.lease);  // someone adds an annotation
  auto step = a.next(start + 2s);
  a.take(step, start + 2s, start + 2s);
  EXPECT_TRUE(a.machine.leading(start + 2s)) << "a conflict alone loses nothing";
  EXPECT_EQ(a.next(start + 2s).kind, lease_step_kind::read);
  a.go(start + 2s);
  EXPECT_TRUE(a.machine.leading(start + 11s));
  EXPECT_EQ(api.transitions(), 0) << "the same leadership";
}

TEST(lease, conflicts_without_end_are_not_a_tight_loop) {
  lease_machine m(options_of("a"), [] { return std::uint64_t{0}; });
  server api;
  api.store(make_object(types::leases(), {"ns", "l"}));
  int steps = 0;
  for (; m.next(start, wall).kind != lease_step_kind::wait && steps < 50; ++steps) {
    auto step = m.next(start, wall);
    if (step.kind == lease_step_kind::read)
      m.on_read(api.lease, start);
    else
      m.on_error(error(errc::conflict, "Conflict", ""));
  }
  EXPECT_LT(steps, 6);
}

TEST(lease, errors_keep_leadership_until_its_deadline_and_no_longer) {
  server api;
  candidate a(api, "a");
  a.go(start);
  auto now = start + 2s;
  while (now < start + 10s) {
    auto step = a.next(now);
    if (step.kind == lease_step_kind::wait) {
      EXPECT_LE(now + step.wait, start + 10s) << "wakes at the deadline, not after it";
      now += step.wait;
      continue;
    }
    a.machine.on_error(error(errc::unavailable, "Down", ""));
    EXPECT_TRUE(a.machine.leading(now));
  }
  EXPECT_FALSE(a.machine.leading(now));
  a.go(now);
  EXPECT_TRUE(a.machine.leading(now)) << "the API is back and nobody else took it";
  EXPECT_EQ(api.transitions(), 1) << "it is a new leadership all the same";
}

TEST(lease, a_write_whose_answer_was_lost_is_found_by_reading) {
  server api;
  candidate a(api, "a");
  auto now = start;
  a.take(a.next(now), now, now);  // read: none
  auto step = a.next(now);
  ASSERT_EQ(step.kind, lease_step_kind::create);
  ASSERT_TRUE(api.create(step.body));
  a.machine.on_error(error(errc::unavailable, "Reset", ""));
  EXPECT_FALSE(a.machine.leading(now));
  EXPECT_GE(a.go(now), 2s);
  a.go(now + 2s);
  EXPECT_TRUE(a.machine.leading(now + 2s));
}

TEST(lease, an_earlier_process_of_the_same_name_is_fenced_off) {
  server api;
  candidate before(api, "a");
  before.go(start);
  candidate after(api, "a");
  after.go(start);
  EXPECT_TRUE(after.machine.leading(start));
  EXPECT_GT(after.machine.transitions(), before.machine.transitions());
}

TEST(lease, release_lets_the_next_one_in_at_once_and_keeps_the_count) {
  server api;
  candidate a(api, "a"), b(api, "b");
  a.go(start);
  b.go(start);
  auto body = a.machine.release(wall);
  ASSERT_TRUE(body);
  ASSERT_TRUE(api.update(*body));
  a.machine.on_released();
  EXPECT_FALSE(a.machine.leading(start));
  EXPECT_EQ(api.holder(), "");
  EXPECT_EQ(json::get_int(*api.lease, {"spec", "leaseDurationSeconds"}), 1);
  EXPECT_FALSE(b.machine.release(wall)) << "only what is ours";
  b.go(start + 2s);
  EXPECT_TRUE(b.machine.leading(start + 2s));
  EXPECT_EQ(api.transitions(), 1);
}

TEST(lease, a_deleted_lease_ends_leadership_and_the_count_goes_on) {
  server api;
  candidate a(api, "a");
  a.go(start);
  a.machine.release(wall);
  api.lease.reset();
  a.go(start + 2s);
  EXPECT_TRUE(a.machine.leading(start + 2s));
  EXPECT_EQ(api.transitions(), 1) << "larger than the token that was given out before";
}

// Many candidates, steps in random order, lost answers, frozen machines: never two at once, and every new leadership has a
// larger token than all before it.
TEST(lease, random_walks_never_have_two_leaders) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    server api;
    std::vector<std::unique_ptr<candidate>> all;
    for (auto name : {"a", "b", "c"}) all.push_back(std::make_unique<candidate>(api, name));
    std::map<candidate*, steady_time> sleeps_until;
    std::int64_t most = -1;
    candidate* last = nullptr;
    for (auto now = start; now < start + 10min; now += 250ms) {
      for (auto& c : all) {
        if (sleeps_until[c.get()] > now) continue;
        if (random() % 100 == 0) {
          sleeps_until[c.get()] = now + std::chrono::seconds(random() % 40);  // frozen
          continue;
        }
        auto step = c->next(now);
        if (step.kind == lease_step_kind::wait) {
          sleeps_until[c.get()] = now + step.wait;
        } else if (random() % 10 == 0) {
          if (step.kind == lease_step_kind::update && random() % 2) (void)api.update(step.body);  // done, but nobody was told
          c->machine.on_error(error(errc::unavailable, "Down", ""));
        } else {
          c->take(step, now, now);
        }
        if (c->machine.leading(now) && (last != c.get() || c->machine.transitions() != most)) {
          ASSERT_GT(c->machine.transitions(), most);
          most = c->machine.transitions();
          last = c.get();
        }
      }
      int leaders = 0;
      for (auto& c : all) leaders += c->machine.leading(now);
      ASSERT_LE(leaders, 1);
    }
    ASSERT_NE(last, nullptr) << "somebody must have led";
  }
}
