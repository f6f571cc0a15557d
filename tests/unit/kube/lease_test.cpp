// The elector's shell: the body runs while leadership holds, is cancelled when it is lost, and the Lease is released on stop.
#include "tests/unit/kube/kit.hpp"

#include <kubeopera/kube/lease.hpp>

#include <boost/json/parse.hpp>

#include <atomic>

using namespace kubeopera;
using namespace kubeopera::kube;
using namespace kubeopera::kube_test;
using namespace std::chrono_literals;

namespace {

// A server with one Lease and optimistic concurrency, behind a transport; can be made to fail.
class lease_server final : public http::transport {
 public:
  task<http::response> send(http::request req, bool) override {
    co_await sleep_for(duration::zero());
    std::lock_guard lock(mutex_);
    if (down_) co_return error(errc::unavailable, "ConnectFailed", "refused");
    if (req.method == "GET") co_return lease_ ? answer(200, *lease_) : missing();
    auto body = boost::json::parse(req.body).as_object();
    if (req.method == "POST" && lease_) co_return status(409, "AlreadyExists");
    if (req.method == "PUT" && !lease_) co_return missing();
    if (req.method == "PUT" && resource_version_of(body) != resource_version_of(*lease_)) co_return status(409, "Conflict");
    body["metadata"].as_object()["resourceVersion"] = std::to_string(++version_);
    lease_ = body;
    co_return answer(200, *lease_);
  }
  void set_down(bool down) {
    std::lock_guard lock(mutex_);
    down_ = down;
  }
  void steal(const std::string& by) {
    std::lock_guard lock(mutex_);
    auto& spec = json::ensure_object(*lease_, "spec");
    spec["holderIdentity"] = by;
    spec["leaseTransitions"] = json::get_int(spec, {"leaseTransitions"}) + 1;
    json::ensure_object(*lease_, "metadata")["resourceVersion"] = std::to_string(++version_);
  }
  std::string holder() const {
    std::lock_guard lock(mutex_);
    return lease_ ? std::string(json::get_string(*lease_, {"spec", "holderIdentity"})) : "none";
  }

 private:
  static result<http::response> answer(int code, const object& o) {
    return http::response(code, "application/json", json::write(o));
  }
  static result<http::response> status(int code, const char* reason) {
    return answer(code, {{"kind", "Status"}, {"code", code}, {"reason", reason}});
  }
  static result<http::response> missing() { return status(404, "NotFound"); }
  mutable std::mutex mutex_;
  std::optional<object> lease_;
  int version_ = 0;
  bool down_ = false;
};

lease_options quick(const std::string& identity) {
  lease_options o;
  o.ns = "ns";
  o.name = "l";
  o.identity = identity;
  o.lease_duration = 1s;
  o.renew_deadline = 300ms;
  o.retry_period = 20ms;
  return o;
}

// What happened to one candidate.
struct record {
  std::atomic<int> started{0}, stopped{0};
  std::atomic<std::int64_t> fence{-1};
  std::optional<errc> ended;
  bool succeeded = false;
};

asio::awaitable<void> lead(record& r, std::int64_t fence) {
  r.fence = fence;
  ++r.started;
  (void)co_await sleep_for(std::chrono::hours(1));
  ++r.stopped;
}

asio::awaitable<void> candidate(leader_elector& e, record& r) {
  auto outcome = co_await e.run([&r](std::int64_t fence) { return lead(r, fence); });
  r.succeeded = outcome.has_value();
  if (!outcome) r.ended = outcome.error().code();
}

asio::awaitable<void> until(std::function<bool()> cond) {
  auto end = std::chrono::steady_clock::now() + 20s;
  while (!cond()) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "the condition was not met in time";
      co_return;
    }
    (void)co_await sleep_for(1ms);
  }
}

struct elector_test : testing::Test {
  std::shared_ptr<lease_server> server = std::make_shared<lease_server>();
  std::unique_ptr<leader_elector> make(const std::string& identity) {
    client_options o;
    o.max_retries = 0;
    auto e = leader_elector::make(make_client(server, o), quick(identity));
    EXPECT_TRUE(e);
    return std::move(*e);
  }
};

asio::awaitable<void> hand_over(asio::any_io_executor executor, leader_elector& a, leader_elector& b, lease_server& server) {
  record ra, rb;
  auto first = background::start(executor, candidate(a, ra));
  co_await until([&] { return ra.started == 1; });
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.fence(), 0);
  EXPECT_EQ(a.leader(), "a");
  auto second = background::start(executor, candidate(b, rb));
  co_await until([&] { return b.leader() == "a"; });
  EXPECT_FALSE(b.leading());
  EXPECT_EQ(b.fence(), std::nullopt);
  first.stop();
  auto joined = co_await first.join();
  EXPECT_TRUE(joined);
  EXPECT_EQ(ra.stopped, 1) << "the body has ended before run() returns";
  EXPECT_EQ(ra.ended, errc::cancelled);
  EXPECT_FALSE(a.leading());
  EXPECT_NE(server.holder(), "a") << "released";
  co_await until([&] { return rb.started == 1; });
  EXPECT_EQ(rb.fence, 1);
  EXPECT_EQ(b.fence(), 1);
  second.stop();
  joined = co_await second.join();
}

asio::awaitable<void> lose_by_outage(asio::any_io_executor executor, leader_elector& a, lease_server& server) {
  record r;
  auto run = background::start(executor, candidate(a, r));
  co_await until([&] { return r.started == 1; });
  server.set_down(true);
  co_await until([&] { return r.stopped == 1; });
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(a.fence(), std::nullopt);
  server.set_down(false);
  co_await until([&] { return r.started == 2; });
  EXPECT_EQ(r.fence, 1) << "a new leadership, a larger token";
  run.stop();
  auto joined = co_await run.join();
  EXPECT_EQ(r.stopped, 2);
}

asio::awaitable<void> lose_by_theft(asio::any_io_executor executor, leader_elector& a, lease_server& server) {
  record r;
  auto run = background::start(executor, candidate(a, r));
  co_await until([&] { return r.started == 1; });
  server.steal("thief");
  co_await until([&] { return r.stopped == 1; });
  EXPECT_EQ(a.leader(), "thief");
  co_await until([&] { return r.started == 2; });
  EXPECT_EQ(r.fence, 2) << "the thief's Lease ran out unchanged";
  run.stop();
  auto joined = co_await run.join();
}

asio::awaitable<void> short_body(record& r, std::int64_t) {
  ++r.started;
  co_return;
}

asio::awaitable<void> run_short(leader_elector& e, record& r) {
  auto outcome = co_await e.run([&r](std::int64_t fence) { return short_body(r, fence); });
  r.succeeded = outcome.has_value();
}

}  // namespace

TEST_F(elector_test, leadership_passes_on_when_the_leader_stops) {
  asio::io_context io;
  auto a = make("a"), b = make("b");
  spawn(io.get_executor(), hand_over(io.get_executor(), *a, *b, *server));
  io.run();
}

TEST_F(elector_test, an_outage_ends_the_body_before_the_lease_expires) {
  asio::io_context io;
  auto a = make("a");
  spawn(io.get_executor(), lose_by_outage(io.get_executor(), *a, *server));
  io.run();
}

TEST_F(elector_test, a_stolen_lease_ends_the_body) {
  asio::io_context io;
  auto a = make("a");
  spawn(io.get_executor(), lose_by_theft(io.get_executor(), *a, *server));
  io.run();
}

TEST_F(elector_test, a_body_that_ends_by_itself_ends_the_candidacy) {
  asio::io_context io;
  auto a = make("a");
  record r;
  spawn(io.get_executor(), run_short(*a, r));
  io.run();
  EXPECT_TRUE(r.succeeded);
  EXPECT_EQ(r.started, 1);
  EXPECT_EQ(server->holder(), "");
}

TEST_F(elector_test, options_that_cannot_be_safe_are_refused) {
  auto c = make_client(server);
  auto refused = [&](auto change) {
    auto o = quick("a");
    change(o);
    auto e = leader_elector::make(c, o);
    return !e && e.error().code() == errc::invalid_argument;
  };
  EXPECT_FALSE(refused([](lease_options&) {}));
  EXPECT_TRUE(refused([](lease_options& o) { o.identity.clear(); }));
  EXPECT_TRUE(refused([](lease_options& o) { o.ns = "../x"; }));
  EXPECT_TRUE(refused([](lease_options& o) { o.name.clear(); }));
  EXPECT_TRUE(refused([](lease_options& o) { o.renew_deadline = o.lease_duration; }));
  EXPECT_TRUE(refused([](lease_options& o) { o.retry_period = o.renew_deadline; }));
  EXPECT_TRUE(refused([](lease_options& o) { o.retry_period = 0s; }));
}
