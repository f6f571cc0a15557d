#include "tests/simulation/engine.hpp"

#include <algorithm>
#include <cstdio>

namespace kubeopera::simulation {

std::uint64_t dice::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

duration dice::between(duration least, duration most) {
  if (most <= least) return least;
  return least + duration(static_cast<duration::rep>(below(static_cast<std::uint64_t>((most - least).count()))));
}

engine::~engine() = default;

void engine::note(std::uint64_t what) noexcept { fingerprint_ = (fingerprint_ ^ what) * 1099511628211ull; }

void engine::record(std::string line) {
  if (!recording_) return;
  char at[32];
  std::snprintf(at, sizeof at, "%9.3f ", std::chrono::duration<double>(elapsed()).count());
  lines_.push_back(at + std::move(line));
}

void engine::broken(std::string promise, std::string how) {
  if (failure_) return;
  failure_ = promise + ": " + how;
  record("BROKEN " + *failure_);
}

void engine::count_fault(const char* what) {
  ++faults_;
  if (recording_) record(std::string("fault: ") + what);
}

std::uint64_t engine::keep(duration time, waiting w) {
  auto number = ++last_number_;
  order_.push({now_ + std::max(time, duration::zero()), number});
  waiting_.emplace(number, std::move(w));
  return number;
}

void engine::after(duration delay, std::function<void()> fn) {
  waiting w;
  w.fn = std::move(fn);
  keep(delay, std::move(w));
}

void engine::fire_next() {
  auto number = order_.top().number;
  now_ = order_.top().when;
  order_.pop();
  auto it = waiting_.find(number);
  auto w = std::move(it->second);
  waiting_.erase(it);
  if (w.fn) return w.fn();
  w.wait->end(true);
}

bool engine::step() {
  while (!order_.empty() && !waiting_.contains(order_.top().number)) order_.pop();
  // What is due now and what is ready take turns; the time moves when nothing is ready.
  bool due_now = !order_.empty() && order_.top().when <= now_;
  if (ready_.empty() && order_.empty()) return false;
  ++steps_;
  std::size_t choices = ready_.size() + (due_now || ready_.empty() ? 1 : 0);
  auto pick = choices == 1 ? 0 : dice_.below(choices);
  note(static_cast<std::uint64_t>(now_.time_since_epoch().count()) * 31 + pick * 7 + choices);
  if (pick == ready_.size()) {
    fire_next();
    return true;
  }
  auto chosen = std::move(ready_[pick]);
  ready_[pick] = std::move(ready_.back());
  ready_.pop_back();
  chosen.work->run();
  return true;
}

process::process(engine& e, std::string name) : engine_(e), name_(std::move(name)) { keep_time(*this, *this); }

process::~process() {
  kill();
  asio::execution_context::destroy();
}

void process::push(std::unique_ptr<job> work) {
  if (dead_) return;  // destroys it
  if (frozen_) {
    held_.push_back(std::move(work));
  } else {
    engine_.ready_.push_back({this, std::move(work)});
  }
}

std::uint64_t process::keep(duration time, std::unique_ptr<timekeeper::wait> w) {
  if (dead_) return 0;
  engine::waiting kept;
  kept.owner = this;
  kept.wait = std::move(w);
  return engine_.keep(time, std::move(kept));
}

std::unique_ptr<timekeeper::wait> process::take(std::uint64_t number) {
  auto it = engine_.waiting_.find(number);
  if (it == engine_.waiting_.end()) return nullptr;
  auto w = std::move(it->second.wait);
  engine_.waiting_.erase(it);
  return w;
}

void process::kill() {
  if (dead_) return;
  dead_ = true;
  // Each destruction may add to the others' containers; what is taken out first is destroyed last, outside of them.
  std::vector<std::unique_ptr<job>> jobs = std::move(held_);
  std::erase_if(engine_.ready_, [&](auto& r) {
    if (r.owner != this) return false;
    jobs.push_back(std::move(r.work));
    return true;
  });
  std::vector<std::unique_ptr<timekeeper::wait>> waits;
  for (auto it = engine_.waiting_.begin(); it != engine_.waiting_.end();) {
    if (it->second.owner != this) {
      ++it;
      continue;
    }
    waits.push_back(std::move(it->second.wait));
    it = engine_.waiting_.erase(it);
  }
  waits.clear();
  jobs.clear();
  asio::execution_context::shutdown();
}

void process::freeze() {
  frozen_ = true;
  std::erase_if(engine_.ready_, [&](auto& r) {
    if (r.owner != this) return false;
    held_.push_back(std::move(r.work));
    return true;
  });
}

void process::thaw() {
  frozen_ = false;
  for (auto& work : std::exchange(held_, {})) engine_.ready_.push_back({this, std::move(work)});
}

system_time virtual_clock::now() const {
  // 2026-01-01T00:00:00Z and on.
  return system_time(std::chrono::seconds(1767225600)) + std::chrono::duration_cast<system_time::duration>(engine_.elapsed());
}

namespace detail {

route draw_route(engine& e, duration latest) {
  auto& d = e.chance();
  route r;
  r.there = d.between(duration::zero(), e.sky.slowest);
  r.back = d.between(duration::zero(), e.sky.slowest);
  r.fails = e.sky.fails > 0 && d.chance(e.sky.fails);
  r.lost = !r.fails && e.sky.lost > 0 && d.chance(e.sky.lost);
  // Now and then one takes very much longer than the others.
  if (e.sky.fails > 0 && d.chance(15)) r.there = std::min(r.there + d.between(1s, 45s), latest);
  if (e.sky.fails > 0 && d.chance(15)) r.back += d.between(1s, 45s);
  if (r.fails) e.count_fault("a call is refused");
  if (r.lost) e.count_fault("an answer is lost");
  return r;
}

}  // namespace detail

}  // namespace kubeopera::simulation
