// kubeopera's committer without the network: trees in memory, one pack a commit, merged now and then as the committer does.
#include "benchmarks/gitops/fleet.hpp"
#include "src/gitops/batch.hpp"
#include "src/gitops/commit.hpp"
#include "src/gitops/files.hpp"

#include <cstdlib>
#include <fcntl.h>

namespace fleet_bench {

namespace {

using namespace kubeopera::gitops;
using namespace kubeopera::gitops::detail;

template <class T>
T must(kubeopera::result<T> r) {
  if (!r) {
    std::fprintf(stderr, "%s\n", to_string(r.error()).c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}

class ours : public contender {
 public:
  ours(const std::string& repository, bool synced)
      : store_(must(open_store(repository))),
        builder_(store_, "bench", "bench@localhost"),
        tip_(tip_of(repository)),
        synced_(synced) {}

  double commit(int step, const std::vector<change>& what) override {
    pending_list batch;
    for (const auto& c : what) batch.push_back(std::make_shared<pending_change>(c));
    auto before = sync_count().load();
    auto spent = seconds_of([&] { write(batch, step); });
    syncs_ = static_cast<int>(sync_count() - before);
    if (++commits_ % 64 == 0) spent += seconds_of([&] { must(store_->compact()); });
    return spent;
  }
  int syncs() const override { return syncs_; }
  std::string tree() override { return must(store_->read_commit(tip_)).tree; }

 private:
  void write(const pending_list& batch, int step) {
    auto built = must(builder_.build(batch, tip_, time_of_step(step)));
    if (synced_) {
      must(store_->add_indexed_pack(built.pack.pack, built.pack.index));
    } else {
      auto base = store_->directory() + "/objects/pack/pack-" + built.pack.name;
      write_plain(base + ".pack", built.pack.pack);
      write_plain(base + ".idx", built.pack.index);
    }
    tip_ = built.commit.hex();
  }

  static void write_plain(const std::string& path, const std::string& bytes) {
    kubeopera::gitops::detail::file_handle fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444));
    must(write_all(fd.get(), bytes, path));
  }

  std::shared_ptr<object_store> store_;
  batch_builder builder_;
  std::string tip_;
  int commits_ = 0, syncs_ = 0;
  bool synced_;
};

}  // namespace

std::unique_ptr<contender> make_ours(const std::string& repository) { return std::make_unique<ours>(repository, false); }

std::unique_ptr<contender> make_ours_synced(const std::string& repository) { return std::make_unique<ours>(repository, true); }

std::vector<std::pair<int, std::string>> objects_of_commit(const std::string& repository, int apps, int per_cluster, int count) {
  auto store = must(open_store(repository));
  batch_builder builder(store, "bench", "bench@localhost");
  pending_list batch;
  for (auto& c : changes_of_step(0, count, apps, per_cluster)) batch.push_back(std::make_shared<pending_change>(std::move(c)));
  auto built = must(builder.build(batch, tip_of(repository), 1700000001));
  must(store->add_indexed_pack(built.pack.pack, built.pack.index));
  std::vector<std::pair<int, std::string>> out;
  auto list = shell("git -C '" + repository + "' show-index < '" + repository + "/objects/pack/pack-" + built.pack.name +
                    ".idx' | cut -d' ' -f2");
  for (std::size_t at = 0; at < list.size(); at += 41) {
    auto id = list.substr(at, 40);
    for (int type : {1, 2, 3})
      if (auto bytes = store->read_object(id, type_name(static_cast<object_type>(type))))
        out.emplace_back(type, std::move(*bytes));
  }
  return out;
}

}  // namespace fleet_bench
