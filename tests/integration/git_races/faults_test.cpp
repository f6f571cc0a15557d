// A Git server that refuses, hangs, lies and dies in every way at every step: the change lands once, or the caller is told.
#include "tests/integration/git_races/faulty_server.hpp"
#include "tests/integration/git_races/history.hpp"
#include "tests/integration/git_races/proxy.hpp"
#include "tests/integration/git_races/readers.hpp"
#include "tests/integration/gitops/world.hpp"
#include "tests/support/figures.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <random>

using namespace races;
using kubeopera::tests::long_run;
using kubeopera::tests::number_from;

namespace {

committer_options hurried() {
  committer_options o;
  o.max_attempts = 8;
  o.push_timeout = std::chrono::milliseconds(1500);
  o.fetch_timeout = std::chrono::milliseconds(1500);
  o.max_backoff = std::chrono::milliseconds(50);
  return o;
}

const char* word(fault f) {
  static constexpr std::array words = {"none",        "unauthorized", "forbidden",     "missing", "broken",
                                       "busy",        "garbage",      "wrong_service", "silent",  "cut_answer",
                                       "lost_answer", "mute_answer",  "done_later"};
  return words[static_cast<std::size_t>(f)];
}

const char* word(phase p) {
  static constexpr std::array words = {"read_refs", "fetch", "write_refs", "push"};
  return words[static_cast<std::size_t>(p)];
}

// What the caller is told of a server that does not change its mind; nullopt where trying again helps.
std::optional<errc> final_code(fault f) {
  switch (f) {
    case fault::unauthorized:
      return errc::unauthenticated;
    case fault::forbidden:
      return errc::permission_denied;
    case fault::missing:
      return errc::not_found;
    case fault::wrong_service:
      return errc::unsupported;
    default:
      return std::nullopt;
  }
}

// The next two requests of a phase go wrong (one, where that takes a time-out). Somebody else moves the branch meanwhile, so that
// every phase is met.
void survive(phase where, fault what) {
  SCOPED_TRACE(std::string(word(where)) + " " + word(what));
  temp_folder dir;
  io_threads io;
  auto fleet = make_bare(dir, "fleet.git");
  auto other = open_store(dir / "other.git").value();
  running outsider(io, other, make_file_remote(fleet, other));
  ASSERT_TRUE(outsider.submit(make_change("outsider", "o1")));
  bool slow = what == fault::silent || what == fault::mute_answer || what == fault::done_later || what == fault::busy;
  const int times = slow ? 1 : 2;
  std::atomic<bool> armed{false};
  std::atomic<int> left{times};
  faulty_server server(io, fleet, [&](phase p, int) { return armed && p == where && left-- > 0 ? what : fault::none; });
  auto store = open_store(dir / "s.git").value();
  running c(io, store, server.open(store), hurried());
  tip_watch tips(fleet);
  ledger done;
  auto submit = [&](const std::string& revision) {
    auto got = c.submit(make_change("web", revision));
    if (got) done.add({"web", revision, *got});
    return got;
  };
  // What may be written is asked for once, before the first push; everything else goes wrong later.
  armed = where == phase::write_refs;
  auto got = submit("v1");
  auto code = final_code(what);
  if (armed && code) {
    ASSERT_FALSE(got) << "refused by the server, said to be done";
    EXPECT_EQ(got.error().code(), *code) << to_string(got.error());
    for (int tries = 0; tries < 3 && !got; ++tries) got = submit("v1");
  }
  ASSERT_TRUE(got) << to_string(got.error());
  ASSERT_TRUE(outsider.submit(make_change("outsider", "o2")));
  if (!armed) {
    armed = true;
    got = submit("v2");
    if (code) {
      ASSERT_FALSE(got) << "refused by the server, said to be done";
      EXPECT_EQ(got.error().code(), *code) << to_string(got.error());
      for (int tries = 0; tries < 3 && !got; ++tries) got = submit("v2");
    }
    ASSERT_TRUE(got) << to_string(got.error());
  }
  EXPECT_EQ(server.faults(), times) << "the fault was not met";
  server.release();  // what was put off is done now, long after its sender has gone
  auto next = submit("v3");
  ASSERT_TRUE(next) << to_string(next.error());
  check_history(fleet, done, tips.seen());
  EXPECT_EQ(git(fleet, "show main:" + app_directory("team", "web").value() + "/deployment.yaml"), "v3");
  EXPECT_EQ(fsck(fleet), "");
  EXPECT_EQ(fsck(store->directory()), "");
}

class server_fault : public testing::TestWithParam<phase> {};

}  // namespace

// Mostly waiting: a few at a time.
TEST_P(server_fault, of_every_kind_is_survived_or_told) {
  std::atomic<int> next{1};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      for (int f = next++; f <= static_cast<int>(fault::done_later); f = next++) survive(GetParam(), static_cast<fault>(f));
    });
  }
  for (auto& w : workers) w.join();
}

INSTANTIATE_TEST_SUITE_P(git, server_fault, testing::Values(phase::read_refs, phase::fetch, phase::write_refs, phase::push),
                         [](const auto& info) { return word(info.param); });

// Several committers against a server that fails at random, at every step, for a while.
TEST(faults, a_storm_of_them_loses_and_doubles_nothing) {
  auto seeds = number_from("KUBEOPERA_SEEDS", long_run() ? 40 : 1);
  auto first = number_from("KUBEOPERA_SEED", 1);
  int faults = 0, changes = 0, commits = 0, told = 0;
  for (auto seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    temp_folder dir;
    io_threads io;
    auto fleet = make_bare(dir, "fleet.git");
    std::mt19937 random(static_cast<unsigned>(seed));
    std::mutex mutex;
    faulty_server server(io, fleet, [&](phase, int) {
      std::lock_guard lock(mutex);
      if (random() % 3) return fault::none;
      auto f = static_cast<fault>(1 + random() % static_cast<unsigned>(fault::done_later));
      bool slow = f == fault::silent || f == fault::mute_answer || f == fault::done_later;
      return slow && random() % 4 ? fault::cut_answer : f;
    });
    write_hook(fleet, "pre-receive", "test $(od -An -N1 -tu1 /dev/urandom) -ge 40 || { echo 'not at this hour' >&2; exit 1; }");
    tip_watch tips(fleet);
    ledger done;
    std::atomic<int> errors{0};
    std::vector<std::unique_ptr<running>> all;
    std::vector<std::thread> writers;
    for (int i = 0; i < 3; ++i) {
      auto store = open_store(dir / ("s" + std::to_string(i) + ".git")).value();
      all.push_back(std::make_unique<running>(io, store, server.open(store), hurried()));
      writers.emplace_back([&, i] {
        for (int step = 0; step < 6; ++step) {
          auto app = "c" + std::to_string(i) + "-" + std::to_string(step % 2);
          auto revision = "c" + std::to_string(i) + "-" + std::to_string(step);
          for (int tries = 0; tries < 200; ++tries) {
            auto got = all[static_cast<std::size_t>(i)]->submit(make_change(app, revision));
            if (got) {
              done.add({app, revision, *got});
              break;
            }
            ++errors;
          }
          if (step == 3) server.release();
        }
      });
    }
    for (auto& t : writers) t.join();
    all.clear();
    server.release();
    EXPECT_EQ(done.all().size(), 18u);
    expectations loose;
    loose.receipts_are_exact = false;
    commits += check_history(fleet, done, tips.seen(), loose);
    check_readers(fleet);
    faults += server.faults();
    changes += static_cast<int>(done.all().size());
    told += errors;
  }
  EXPECT_GT(faults, 0);
  kubeopera::tests::report("git_server_faults", std::to_string(seeds) + " storms: " + std::to_string(faults) + " faults, " +
                                                    std::to_string(changes) + " changes in " + std::to_string(commits) +
                                                    " commits, " + std::to_string(told) + " errors told");
}

namespace {

class cut_connections : public testing::TestWithParam<kind> {};

// Where a connection breaks: anywhere in the first kilobytes of what is sent or of what comes back. An HTTP connection carries
// many requests and is always cut in the end; an SSH connection carries one, after about 5 KB of greeting.
link_plan cut_somewhere(std::mt19937& random, kind k) {
  link_plan out;
  switch (random() % (k == kind::ssh ? 8 : 5)) {
    case 0:
    case 1:
      out.cut_request_after = random() % 9000;
      break;
    case 2:
    case 3:
      out.cut_answer_after = random() % (k == kind::ssh ? 9000 : 3000);
      break;
    case 4:
      out.swallow_answers = random() % 2;
      out.swallow_requests = !out.swallow_answers;
      break;
    default:
      break;
  }
  return out;
}

}  // namespace

TEST_P(cut_connections, in_the_middle_of_packs_and_answers) {
  if (GetParam() == kind::ssh && !long_run()) GTEST_SKIP() << "takes long over SSH: ./check --long";
  world w(GetParam());
  if (!w.available()) GTEST_SKIP() << "sshd is not installed";
  std::mt19937 random(static_cast<unsigned>(number_from("KUBEOPERA_SEED", 7)));
  fault_proxy proxy(w.port(), [&random](int) { return cut_somewhere(random, GetParam()); });
  const int committers = 2, steps = (GetParam() == kind::ssh ? 5 : 12) * (long_run() ? 10 : 1);
  tip_watch tips(w.fleet());
  ledger done;
  std::vector<std::unique_ptr<running>> all;
  std::vector<std::thread> writers;
  for (int i = 0; i < committers; ++i) {
    auto store = open_store(w.dir / ("s" + std::to_string(i) + ".git")).value();
    all.push_back(std::make_unique<running>(w.io, store, w.open_through(proxy.port(), store), hurried()));
    writers.emplace_back([&, i] {
      for (int step = 0; step < steps; ++step) {
        auto app = "c" + std::to_string(i);
        auto c = make_change(app, app + "-" + std::to_string(step));
        // Bytes that do not compress, so that packs are long enough to be cut.
        for (int n = 0; n < 100; ++n) c.files["noise.yaml"] += std::to_string(random_u64()) + "\n";
        for (int tries = 0; tries < 100; ++tries) {
          auto got = all[static_cast<std::size_t>(i)]->submit(c);
          if (got) {
            done.add({app, app + "-" + std::to_string(step), *got});
            break;
          }
        }
      }
    });
  }
  for (auto& t : writers) t.join();
  all.clear();
  EXPECT_EQ(static_cast<int>(done.all().size()), committers * steps);
  EXPECT_GT(proxy.cuts(), 0);
  expectations loose;
  loose.receipts_are_exact = false;
  int commits = check_history(w.fleet(), done, tips.seen(), loose);
  check_readers(w.fleet());
  kubeopera::tests::report("git_cut_connections", name_of({GetParam(), 0}) + ": " + std::to_string(proxy.connections()) +
                                                      " connections, " + std::to_string(proxy.cuts()) + " cut, " +
                                                      std::to_string(commits) + " commits");
}

INSTANTIATE_TEST_SUITE_P(git, cut_connections, testing::Values(kind::http_server, kind::ssh), name_of);
