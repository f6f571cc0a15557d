// The committer's shell: the queue, the remote, the waiting. Decisions are in batch.cpp and push_flow.cpp.
#include "src/gitops/batch.hpp"
#include "src/gitops/push_flow.hpp"
#include "src/gitops/validate.hpp"
#include "src/gitops/work.hpp"

#include <kubeopera/core/backoff.hpp>
#include <kubeopera/gitops/committer.hpp>

#include <deque>
#include <mutex>

namespace kubeopera::inline v1::gitops {

namespace {

using namespace detail;

constexpr int compact_every = 64;
constexpr std::size_t max_haves = 32;
constexpr const char* changes_help = "Changes committed to the fleet repository";
constexpr int max_splits = 24;  // enough to single out two or three refused changes of a full batch

std::int64_t seconds_of(system_time t) { return std::chrono::duration_cast<std::chrono::seconds>(t.time_since_epoch()).count(); }

// One user of the remote at a time, in no particular order.
class turnstile {
 public:
  class ticket {
   public:
    explicit ticket(turnstile& t) : owner_(&t) {}
    ticket(ticket&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    ~ticket() {
      if (owner_) owner_->leave();
    }

   private:
    turnstile* owner_;
  };

  task<ticket> enter() {
    while (true) {
      auto seen = changed_.ticket();
      if (!taken_.exchange(true)) co_return ticket(*this);
      KUBEOPERA_CO_CHECK(co_await changed_.wait(seen));
    }
  }

 private:
  void leave() {
    taken_ = false;
    changed_.notify();
  }
  std::atomic<bool> taken_{false};
  notifier changed_;
};

class batching_committer : public committer {
 public:
  batching_committer(std::shared_ptr<object_store> store, std::unique_ptr<remote> origin, committer_options options, clock& clk,
                     logger& log, metrics* m)
      : store_(std::move(store)),
        remote_(std::move(origin)),
        options_(std::move(options)),
        clock_(clk),
        log_(log),
        metrics_(m),
        builder_(store_, options_.author_name, options_.author_email) {
    for (const auto* answer : {"accepted", "rejected", "failed"}) count_push(answer, 0);
    for (const auto* outcome : {"committed", "unchanged", "failed"}) count_batch(outcome, 0);
    if (metrics_) metrics_->count("kubeopera_git_changes_total", changes_help, {}, 0);
  }

  task<void> run() override {
    KUBEOPERA_CO_CHECK(validate_branch(options_.branch));
    KUBEOPERA_CO_CHECK(co_await first_look());
    while (true) {
      auto seen = queued_.ticket();
      auto batch = take();
      if (batch.empty()) {
        if (auto waited = co_await queued_.wait(seen); !waited) break;
        continue;
      }
      co_await commit(batch);
      if (co_await kubeopera::detail::cancelled()) break;
    }
    give_up();
    co_return error(errc::cancelled, "Cancelled", "the committer was stopped");
  }

  task<receipt> submit(change c) override {
    KUBEOPERA_CO_CHECK(validate_change(c));
    auto entry = std::make_shared<pending_change>(std::move(c));
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(entry);
    }
    queued_.notify();
    while (true) {
      auto seen = entry->answered.ticket();
      {
        std::lock_guard lock(mutex_);
        if (entry->answer) co_return *entry->answer;
      }
      auto waited = co_await entry->answered.wait(seen);
      if (waited) continue;
      std::lock_guard lock(mutex_);
      if (entry->answer) co_return *entry->answer;
      if (!entry->taken) std::erase(queue_, entry);
      co_return waited.error();
    }
  }

  task<bool> is_ancestor(const std::string& ancestor, const std::string& descendant) override {
    if (!store_->contains(ancestor) || !store_->contains(descendant)) {
      KUBEOPERA_CO_TRY(auto turn, co_await remote_turn_.enter());
      KUBEOPERA_CO_CHECK(co_await look());
    }
    for (const auto* id : {&ancestor, &descendant})
      if (!store_->contains(*id))
        co_return error(errc::not_found, "CommitNotFound", "neither the store nor the branch has the commit")
            .with_context("commit", *id);
    std::function<result<bool>()> ask = [&] { return store_->is_ancestor(ancestor, descendant); };
    co_return co_await disk_work().run<bool>(std::move(ask));
  }

  std::string tip() const override {
    std::lock_guard lock(mutex_);
    return tip_;
  }

  std::size_t waiting() const override {
    std::lock_guard lock(mutex_);
    return queue_.size();
  }

 private:
  pending_list take() {
    std::lock_guard lock(mutex_);
    return take_batch(queue_, options_.max_batch);
  }

  // Learns the tip before the first batch. A remote that is down is not an end: every batch asks anew.
  task<void> first_look() {
    KUBEOPERA_CO_TRY(auto turn, co_await remote_turn_.enter());
    auto looked = co_await look();
    if (!looked && looked.error().code() == errc::cancelled) co_return looked.error();
    if (!looked) log_.warn("the fleet repository cannot be read yet", {{"error", looked.error()}});
    co_return result<void>();
  }

  // Asks for the remote's tip and brings its objects here.
  task<void> look() {
    auto asking = remote_->tip(options_.branch);
    KUBEOPERA_CO_TRY(auto found, co_await with_deadline(options_.push_timeout, std::move(asking)));
    if (found && !store_->contains(*found)) {
      auto fetching = fetch(*found);
      KUBEOPERA_CO_CHECK(co_await with_deadline(options_.fetch_timeout, std::move(fetching)));
    }
    set_tip(found.value_or(""));
    tip_known_ = true;
    co_return result<void>();
  }

  task<void> fetch(std::string want) {
    std::vector<std::string> have;
    auto start = tip();
    if (start.empty()) {
      KUBEOPERA_CO_TRY(auto mark, store_->bookmark(options_.branch));
      start = mark.value_or("");
    }
    // A few ancestors too, in case the branch was set back meanwhile.
    while (!start.empty() && have.size() < max_haves) {
      auto commit = store_->read_commit(start);
      if (!commit) break;
      have.push_back(start);
      start = commit->parents.empty() ? "" : commit->parents.front();
    }
    KUBEOPERA_CO_CHECK(co_await remote_->fetch(want, have));
    if (!store_->contains(want)) co_return error(errc::unavailable, "FetchIncomplete", "the Git server did not send the commit");
    co_return result<void>();
  }

  void set_tip(const std::string& id) {
    {
      std::lock_guard lock(mutex_);
      if (tip_ == id) return;
      tip_ = id;
    }
    if (id.empty() || remote_->shares_store()) return;
    if (auto marked = store_->set_bookmark(options_.branch, id); !marked)
      log_.warn("the branch's bookmark cannot be written", {{"error", marked.error()}});
  }

  // Commits a batch. Where the server refuses one of several changes, halves are tried so that only the culprit fails.
  asio::awaitable<void> commit(pending_list batch) {
    int splits = max_splits;
    std::deque<pending_list> parts{std::move(batch)};
    while (!parts.empty()) {
      auto part = std::move(parts.front());
      parts.pop_front();
      auto done = co_await commit_part(part);
      if (done) continue;
      if (done.error().reason() == "PushRefused" && part.size() > 1 && splits-- > 0) {
        auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
        parts.emplace_front(middle, part.end());
        parts.emplace_front(part.begin(), middle);
        continue;
      }
      log_.warn("a batch of changes was not committed",
                {{"changes", static_cast<long long>(part.size())}, {"error", done.error()}});
      for (const auto& entry : part) answer(*entry, done.error());
    }
  }

  // Everything that one batch knows while it is being pushed.
  struct attempt {
    explicit attempt(const pending_list& b) : batch(b) {}
    const pending_list& batch;
    std::string base;
    std::optional<built_batch> built;
    std::vector<std::pair<std::string, std::vector<bool>>> sent;  // commits whose fate may be unknown, and what each changed
    std::string landed;
    std::vector<bool> changed;
  };

  task<void> commit_part(const pending_list& batch) {
    KUBEOPERA_CO_TRY(auto turn, co_await remote_turn_.enter());
    auto begun = clock_.steady();
    push_flow flow(options_.max_attempts, tip_known_);
    backoff delays(options_.first_backoff, options_.max_backoff);
    attempt a(batch);
    while (flow.next() != push_flow::step::done) {
      switch (flow.next()) {
        case push_flow::step::refresh:
          flow.refreshed(co_await refresh(a));
          break;
        case push_flow::step::build:
          flow.built(co_await build(a));
          break;
        case push_flow::step::push:
          flow.pushed(co_await push(a));
          break;
        case push_flow::step::pause:
          if (metrics_) metrics_->count("kubeopera_git_push_retries_total", "Pushes that had to be tried again");
          KUBEOPERA_CO_CHECK(co_await clock_.sleep(std::max<duration>(delays.next(), flow.asked_to_wait())));
          flow.paused();
          break;
        case push_flow::step::failed:
          tip_known_ = false;
          count_batch("failed");
          observe_batch(begun);
          co_return flow.failure();
        case push_flow::step::done:
          break;
      }
    }
    finish(a, flow.outcome());
    count_batch(flow.outcome() == push_flow::outcome_kind::unchanged ? "unchanged" : "committed");
    observe_batch(begun);
    co_await compact_sometimes();
    co_return result<void>();
  }

  task<bool> refresh(attempt& a) {
    KUBEOPERA_CO_CHECK(co_await look());
    auto now = tip();
    for (const auto& [commit, changed] : a.sent) {
      if (now.empty()) break;
      std::function<result<bool>()> ask = [this, &sent = commit, &now] { return store_->is_ancestor(sent, now); };
      KUBEOPERA_CO_TRY(bool found, co_await disk_work().run<bool>(std::move(ask)));
      if (!found) continue;
      a.landed = commit;
      a.changed = changed;
      co_return true;
    }
    co_return false;
  }

  // Makes the commit and brings its pack to disk. On the same base the same commit is used again, so that none is doubled.
  task<bool> build(attempt& a) {
    auto base = tip();
    if (a.built && a.built->differs && a.base == base) co_return true;
    a.base = base;
    std::function<result<built_batch>()> work = [this, &a]() -> result<built_batch> {
      KUBEOPERA_TRY(auto built, builder_.build(a.batch, a.base, seconds_of(clock_.now())));
      if (built.differs) KUBEOPERA_CHECK(store_->add_indexed_pack(built.pack.pack, built.pack.index));
      return built;
    };
    KUBEOPERA_CO_TRY(a.built, co_await disk_work().run<built_batch>(std::move(work)));
    co_return a.built->differs;
  }

  task<void> push(attempt& a) {
    if (options_.may_push) KUBEOPERA_CO_CHECK(options_.may_push());
    auto commit = a.built->commit.hex();
    if (a.sent.empty() || a.sent.back().first != commit) a.sent.emplace_back(commit, a.built->changed);
    auto sending = remote_->push(options_.branch, a.base, commit, a.built->pack.pack);
    auto answer = co_await with_deadline(options_.push_timeout, std::move(sending));
    count_push(answer ? "accepted" : answer.error().transient() ? "failed" : "rejected");
    if (!answer) {
      log_.debug("a push was not accepted", {{"commit", commit}, {"error", answer.error()}});
      co_return answer.error();
    }
    set_tip(commit);
    a.landed = commit;
    a.changed = a.built->changed;
    co_return result<void>();
  }

  void finish(const attempt& a, push_flow::outcome_kind how) {
    bool committed = how != push_flow::outcome_kind::unchanged;
    receipt done;
    done.commit = committed ? a.landed : tip();
    long long changes = 0;
    for (std::size_t i = 0; i < a.batch.size(); ++i) {
      if (a.built && a.built->failed[i]) {
        answer(*a.batch[i], *a.built->failed[i]);
        continue;
      }
      done.changed = committed && a.changed[i];
      changes += done.changed;
      answer(*a.batch[i], done);
    }
    if (committed) {
      log_.info("committed", {{"commit", done.commit}, {"changes", changes}});
      if (metrics_) metrics_->count("kubeopera_git_changes_total", changes_help, {}, static_cast<double>(changes));
      ++commits_;
    }
  }

  task<void> compact_sometimes() {
    if (commits_ < compact_every) co_return result<void>();
    commits_ = 0;
    std::function<result<void>()> work = [this] { return store_->compact(); };
    auto done = co_await disk_work().run<void>(std::move(work));
    if (!done) log_.warn("packs cannot be merged", {{"error", done.error()}});
    co_return result<void>();
  }

  void answer(pending_change& entry, result<receipt> what) {
    {
      std::lock_guard lock(mutex_);
      entry.answer = std::move(what);
    }
    entry.answered.notify();
  }

  void give_up() {
    std::deque<std::shared_ptr<pending_change>> left;
    {
      std::lock_guard lock(mutex_);
      left.swap(queue_);
    }
    for (const auto& entry : left) answer(*entry, error(errc::cancelled, "Cancelled", "the committer was stopped"));
  }

  void count_push(std::string_view answer, double by = 1) {
    if (metrics_)
      metrics_->count("kubeopera_git_pushes_total",
                      "Pushes by the answer: rejected ones found the branch moved or were refused, failed ones got none",
                      {{"result", answer}}, by);
  }
  void count_batch(std::string_view outcome, double by = 1) {
    if (metrics_) metrics_->count("kubeopera_git_batches_total", "Batches by how they ended", {{"result", outcome}}, by);
  }
  void observe_batch(steady_time begun) {
    if (metrics_)
      metrics_->observe("kubeopera_git_batch_seconds", "Time from taking a batch to its push's answer",
                        std::chrono::duration<double>(clock_.steady() - begun).count());
  }

  std::shared_ptr<object_store> store_;
  std::unique_ptr<remote> remote_;
  committer_options options_;
  clock& clock_;
  logger& log_;
  metrics* metrics_;
  batch_builder builder_;        // used inside a turn only
  bool tip_known_ = false;       // likewise
  int commits_ = compact_every;  // since the last merge of packs; likewise
  turnstile remote_turn_;
  mutable std::mutex mutex_;  // guards queue_, tip_ and every answer
  std::deque<std::shared_ptr<pending_change>> queue_;
  std::string tip_;
  notifier queued_;
};

}  // namespace

task<void> remote::may_push() {
  co_return error(errc::unsupported, "CannotTell", "this remote does not tell whether a push would be let in");
}

std::shared_ptr<committer> make_committer(asio::any_io_executor, std::shared_ptr<object_store> store,
                                          std::unique_ptr<remote> origin, committer_options options, clock& clk, logger& log,
                                          metrics* m) {
  return std::make_shared<batching_committer>(std::move(store), std::move(origin), std::move(options), clk, log, m);
}

}  // namespace kubeopera::inline v1::gitops
