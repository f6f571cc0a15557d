#include "tests/simulation/fleet.hpp"

#include "src/gitops/batch.hpp"
#include "src/gitops/push_flow.hpp"

#include <kubeopera/core/backoff.hpp>

#include <algorithm>

namespace kubeopera::simulation {

const fleet_tree& fleet::tree_of(const std::string& commit) const {
  static const fleet_tree empty;
  auto it = places_.find(commit);
  return it == places_.end() ? empty : log_[it->second]->tree;
}

bool fleet::is_ancestor(const std::string& ancestor, const std::string& descendant) const {
  return places_.at(ancestor) <= places_.at(descendant);
}

result<void> fleet::push(std::shared_ptr<const fleet_commit> commit) {
  if (commit->parent != tip_) return error(errc::conflict, "Moved", "the branch is at another commit");
  const fleet_tree before = tree();
  places_[commit->id] = log_.size();
  log_.push_back(commit);
  tip_ = commit->id;
  if (pushed) pushed(before, *commit);
  return {};
}

namespace {

using namespace gitops::detail;
using gitops::receipt;

std::string trailer(const gitops::change& c, std::string_view name) {
  for (const auto& [key, value] : c.trailers)
    if (key == name) return value;
  return {};
}

std::shared_ptr<const directory> content_of(const gitops::change& c) {
  auto d = std::make_shared<directory>();
  d->app = trailer(c, "Kubeopera-App");
  d->revision = std::stoll("0" + trailer(c, "Kubeopera-Revision"));
  d->files = c.files;
  return d;
}

class model_committer final : public gitops::committer {
 public:
  model_committer(std::shared_ptr<process> from, std::shared_ptr<fleet> origin, clock& clk,
                  std::function<result<void>()> may_push)
      : from_(std::move(from)), origin_(std::move(origin)), clock_(clk) {
    options_.may_push = std::move(may_push);
  }

  task<void> run() override {
    while (true) {
      auto seen = queued_.ticket();
      auto batch = take_batch(queue_, options_.max_batch);
      if (batch.empty()) {
        if (auto waited = co_await queued_.wait(seen); !waited) break;
        continue;
      }
      auto done = co_await commit(batch);
      for (const auto& entry : batch)
        if (!entry->answer) reply(*entry, done ? result<receipt>(error()) : result<receipt>(done.error()));
      if (co_await kubeopera::detail::cancelled()) break;
    }
    for (const auto& entry : std::exchange(queue_, {})) reply(*entry, error(errc::cancelled, "Cancelled", "stopped"));
    co_return error(errc::cancelled, "Cancelled", "the committer was stopped");
  }

  task<receipt> submit(gitops::change c) override {
    auto entry = std::make_shared<pending_change>(std::move(c));
    queue_.push_back(entry);
    queued_.notify();
    while (true) {
      auto seen = entry->answered.ticket();
      if (entry->answer) co_return *entry->answer;
      auto waited = co_await entry->answered.wait(seen);
      if (waited) continue;
      if (entry->answer) co_return *entry->answer;
      if (!entry->taken) std::erase(queue_, entry);
      co_return waited.error();
    }
  }

  task<bool> is_ancestor(const std::string& ancestor, const std::string& descendant) override {
    std::function<result<bool>()> ask = [origin = origin_, ancestor, descendant]() -> result<bool> {
      if (!origin->contains(ancestor) || !origin->contains(descendant))
        return error(errc::not_found, "CommitNotFound", "no such commit");
      return origin->is_ancestor(ancestor, descendant);
    };
    co_return co_await call<bool>(from_, "look at history", std::move(ask));
  }

  std::string tip() const override { return tip_; }
  std::size_t waiting() const override { return queue_.size(); }

 private:
  struct attempt {
    std::string base;
    std::shared_ptr<const fleet_commit> built;
    std::vector<bool> changed;
    std::vector<std::pair<std::string, std::vector<bool>>> sent;
    std::string landed;
    std::vector<bool> landed_changed;
  };

  task<void> commit(const pending_list& batch) {
    push_flow flow(options_.max_attempts, tip_known_);
    backoff delays(options_.first_backoff, options_.max_backoff);
    attempt a;
    while (flow.next() != push_flow::step::done) {
      switch (flow.next()) {
        case push_flow::step::refresh:
          flow.refreshed(co_await refresh(a));
          break;
        case push_flow::step::build:
          flow.built(build(a, batch));
          break;
        case push_flow::step::push:
          flow.pushed(co_await push(a));
          break;
        case push_flow::step::pause:
          KUBEOPERA_CO_CHECK(co_await clock_.sleep(delays.next(from_->world().chance().next())));
          flow.paused();
          break;
        case push_flow::step::failed:
          tip_known_ = false;
          co_return flow.failure();
        case push_flow::step::done:
          break;
      }
    }
    bool committed = flow.outcome() != push_flow::outcome_kind::unchanged;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      receipt done;
      done.commit = committed ? a.landed : tip_;
      done.changed = committed && a.landed_changed[i];
      reply(*batch[i], done);
    }
    co_return result<void>();
  }

  task<bool> refresh(attempt& a) {
    std::function<result<std::string>()> ask = [origin = origin_]() -> result<std::string> { return origin->tip(); };
    auto asking = call<std::string>(from_, "tip?", std::move(ask));
    KUBEOPERA_CO_TRY(tip_, co_await with_deadline(options_.push_timeout, std::move(asking)));
    tip_known_ = true;
    for (const auto& [id, changed] : a.sent) {
      if (tip_.empty() || !origin_->contains(id) || !origin_->is_ancestor(id, tip_)) continue;
      a.landed = id;
      a.landed_changed = changed;
      co_return true;
    }
    co_return false;
  }

  result<bool> build(attempt& a, const pending_list& batch) {
    if (a.built && a.base == tip_) return true;  // the same commit again, so that none is doubled
    a.base = tip_;
    auto next = std::make_shared<fleet_commit>();
    next->parent = tip_;
    next->tree = origin_->tree_of(tip_);
    const auto before = next->tree;
    for (const auto& entry : batch) {
      const auto& c = entry->what;
      if (c.files.empty())
        next->tree.erase(c.directory);
      else
        next->tree[c.directory] = content_of(c);
    }
    a.changed.clear();
    for (const auto& entry : batch) {
      const auto& where = entry->what.directory;
      auto was = before.find(where);
      auto is = next->tree.find(where);
      bool had = was != before.end(), has = is != next->tree.end();
      bool differs = had != has || (had && was->second->files != is->second->files);
      if (had && has && !differs) is->second = was->second;
      a.changed.push_back(differs);
      if (differs || entry->what.always) next->told.push_back(entry->what);
    }
    a.built = nullptr;
    if (next->told.empty()) return false;
    next->id = from_->name() + "-" + std::to_string(++made_);
    a.built = std::move(next);
    return true;
  }

  task<void> push(attempt& a) {
    if (options_.may_push) KUBEOPERA_CO_CHECK(options_.may_push());
    if (a.sent.empty() || a.sent.back().first != a.built->id) a.sent.emplace_back(a.built->id, a.changed);
    std::function<result<void>()> move = [origin = origin_, built = a.built] { return origin->push(built); };
    auto sending = call<void>(from_, "push " + a.built->id, std::move(move));
    KUBEOPERA_CO_CHECK(co_await with_deadline(options_.push_timeout, std::move(sending)));
    tip_ = a.built->id;
    a.landed = a.built->id;
    a.landed_changed = a.changed;
    co_return result<void>();
  }

  void reply(pending_change& entry, result<receipt> what) {
    entry.answer = std::move(what);
    entry.answered.notify();
  }

  std::shared_ptr<process> from_;
  std::shared_ptr<fleet> origin_;
  clock& clock_;
  gitops::committer_options options_;
  std::deque<std::shared_ptr<pending_change>> queue_;
  notifier queued_;
  std::string tip_;
  bool tip_known_ = false;
  int made_ = 0;
};

}  // namespace

std::shared_ptr<gitops::committer> make_model_committer(std::shared_ptr<process> from, std::shared_ptr<fleet> origin, clock& clk,
                                                        std::function<result<void>()> may_push) {
  return std::make_shared<model_committer>(std::move(from), std::move(origin), clk, std::move(may_push));
}

}  // namespace kubeopera::simulation
