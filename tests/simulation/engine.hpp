// A deterministic world on one thread: virtual time, handlers that are run in an order drawn from a seed, processes that can be
// killed or stand still, calls over a network that is slow and loses answers. The same seed gives the same run, step by step.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/timekeeper.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kubeopera::simulation {

using namespace std::chrono_literals;

/// splitmix64: small, and the same everywhere.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// From 0 to n-1.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// True `per_mille` times in a thousand.
  bool chance(int per_mille) { return below(1000) < static_cast<std::uint64_t>(per_mille); }
  duration between(duration least, duration most);

 private:
  std::uint64_t state_;
};

class process;

/// Something to run once.
class job {
 public:
  virtual ~job() = default;
  virtual void run() = 0;
};

/// How badly calls go. All zero: the network is slow and nothing else.
struct weather {
  int fails = 0;  ///< per mille: refused before anything happened
  int lost = 0;   ///< per mille: done, but the answer never comes
  duration slowest = 20ms;
};

class engine {
 public:
  /// recording keeps a line for everything that happens; it changes nothing else.
  engine(std::uint64_t seed, bool recording) : dice_(seed), recording_(recording) {}
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  dice& chance() noexcept { return dice_; }
  steady_time now() const noexcept { return now_; }
  duration elapsed() const noexcept { return now_ - start; }
  /// Runs fn in the world (not in a process) after delay.
  void after(duration delay, std::function<void()> fn);
  /// Runs one thing, or moves the time to the next. False when nothing is left to happen.
  bool step();

  /// The first broken promise ends the run.
  void broken(std::string promise, std::string how);
  const std::optional<std::string>& failure() const noexcept { return failure_; }

  bool recording() const noexcept { return recording_; }
  void record(std::string line);
  const std::deque<std::string>& lines() const noexcept { return lines_; }
  /// Folds a number into the run's fingerprint.
  void note(std::uint64_t what) noexcept;
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  std::uint64_t steps() const noexcept { return steps_; }
  std::uint64_t faults() const noexcept { return faults_; }
  void count_fault(const char* what);

  weather sky;  ///< for every call

 private:
  friend class process;
  struct due {
    steady_time when;
    std::uint64_t number;
    bool operator>(const due& o) const { return std::pair(when, number) > std::pair(o.when, o.number); }
  };
  struct waiting {
    process* owner = nullptr;  // null: the world
    std::unique_ptr<timekeeper::wait> wait;
    std::function<void()> fn;
  };
  struct ready {
    process* owner;
    std::unique_ptr<job> work;
  };
  static constexpr steady_time start{std::chrono::hours(24)};
  std::uint64_t keep(duration time, waiting w);
  void fire_next();

  dice dice_;
  bool recording_;
  steady_time now_ = start;
  std::uint64_t last_number_ = 0, steps_ = 0, faults_ = 0, fingerprint_ = 1469598103934665603ull;
  std::priority_queue<due, std::vector<due>, std::greater<>> order_;
  std::unordered_map<std::uint64_t, waiting> waiting_;
  std::vector<ready> ready_;
  std::optional<std::string> failure_;
  std::deque<std::string> lines_;
};

/// The execution context of one process: everything that its coroutines are and hold.
class process final : public asio::execution_context, public timekeeper {
 public:
  process(engine& e, std::string name);
  ~process() override;

  /// Never runs anything at once. It says "possibly" where it is asked to, so that a strand on it runs its own dispatches inline,
  /// as on an io_context.
  class executor_type {
   public:
    explicit executor_type(process& p, asio::execution::blocking_t how = asio::execution::blocking.possibly) noexcept
        : p_(&p), how_(how) {}
    asio::execution_context& query(asio::execution::context_t) const noexcept { return *p_; }
    asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept { return how_; }
    executor_type require(asio::execution::blocking_t::possibly_t) const noexcept {
      return executor_type(*p_, asio::execution::blocking.possibly);
    }
    executor_type require(asio::execution::blocking_t::never_t) const noexcept {
      return executor_type(*p_, asio::execution::blocking.never);
    }
    template <class F>
    void execute(F f) const {
      p_->push(std::make_unique<typed_job<F>>(std::move(f)));
    }
    friend bool operator==(const executor_type& a, const executor_type& b) noexcept { return a.p_ == b.p_ && a.how_ == b.how_; }
    friend bool operator!=(const executor_type& a, const executor_type& b) noexcept { return !(a == b); }

   private:
    process* p_;
    asio::execution::blocking_t how_;
  };
  executor_type get_executor() noexcept { return executor_type(*this); }

  /// kill -9: all that waits or is ready is destroyed, now; what it sent is still under way.
  void kill();
  bool dead() const noexcept { return dead_; }
  /// Stands still (SIGSTOP) and goes on where it was.
  void freeze();
  void thaw();
  bool frozen() const noexcept { return frozen_; }
  const std::string& name() const noexcept { return name_; }
  engine& world() noexcept { return engine_; }

  std::uint64_t keep(duration time, std::unique_ptr<timekeeper::wait> w) override;
  std::unique_ptr<timekeeper::wait> take(std::uint64_t number) override;

 private:
  template <class F>
  struct typed_job final : job {
    explicit typed_job(F f) : fn(std::move(f)) {}
    void run() override { std::move(fn)(); }
    F fn;
  };
  void push(std::unique_ptr<job> work);

  engine& engine_;
  std::string name_;
  bool dead_ = false, frozen_ = false;
  std::vector<std::unique_ptr<job>> held_;
};

/// The virtual time as processes read it.
class virtual_clock final : public clock {
 public:
  explicit virtual_clock(engine& e) : engine_(e) {}
  system_time now() const override;
  steady_time steady() const override { return engine_.now(); }
  task<void> sleep(duration time) override { return sleep_for(time); }

 private:
  engine& engine_;
};

namespace detail {
/// When a call arrives, when its answer does, and whether either gets lost. Drawn when the call is sent.
struct route {
  duration there, back;
  bool fails = false, lost = false;
};
route draw_route(engine& e, duration latest);

template <class T>
struct call_state {
  std::optional<result<T>> answer;
  notifier arrived;
};
}  // namespace detail

/// Sends a call from a process: effect runs in the world when it arrives there, whatever became of the process meanwhile.
/// @param latest a call that is not there after this long never gets there
/// @param held how much later than drawn it arrives
template <class T>
task<T> call(std::shared_ptr<process> from, std::string what, std::function<result<T>()> effect, duration latest = 45s,
             duration held = duration::zero()) {
  auto& e = from->world();
  auto way = detail::draw_route(e, latest);
  way.there += held;
  auto state = std::make_shared<detail::call_state<T>>();
  auto ticket = state->arrived.ticket();
  if (e.recording()) e.record(from->name() + " sends " + what);
  auto arrive = [state, from, way, what, effect = std::move(effect)] {
    auto& world = from->world();
    std::optional<result<T>> answer;
    if (way.fails) {
      answer.emplace(error(errc::unavailable, "Simulated", "the call was refused"));
    } else {
      answer.emplace(effect());
    }
    if (world.recording())
      world.record(from->name() + "'s " + what +
                   (way.fails             ? " is refused"
                    : answer->has_value() ? ""
                                          : ": " + to_string(answer->error())) +
                   (way.lost && !way.fails ? ", answer lost" : ""));
    if (way.lost && !way.fails) answer.emplace(error(errc::unavailable, "Simulated", "the answer was lost"));
    world.after(way.back, [state, answer = std::move(answer)]() mutable {
      state->answer = std::move(answer);
      state->arrived.notify();
    });
  };
  e.after(way.there, std::move(arrive));
  auto waited = co_await state->arrived.wait(ticket);
  if (!waited) co_return waited.error();
  co_return std::move(*state->answer);
}

}  // namespace kubeopera::simulation
