// kubeopera's committer without the network: trees in memory, one pack a commit, merged now and then as the committer does.
#include "benchmarks/gitops/fleet.hpp"
#include "src/gitops/batch.hpp"
#include "src/gitops/commit.hpp"

#include <cstdlib>
#include <fstream>

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
  ours(const std::string& repository, int apps, int per_cluster, bool synced)
      : store_(must(open_store(repository))),
        builder_(store_, "bench", "bench@localhost"),
        tip_(tip_of(repository)),
        apps_(apps),
        per_cluster_(per_cluster),
        synced_(synced) {}

  void commit(int step, int count) override {
    pending_list batch;
    for (int app : apps_of_step(step, count, apps_))
      batch.push_back(std::make_shared<pending_change>(app_change(app, step + 1, per_cluster_)));
    auto built = must(builder_.build(batch, tip_, 1700000001 + step));
    if (synced_) {
      must(store_->add_indexed_pack(built.pack.pack, built.pack.index));
    } else {
      auto base = store_->directory() + "/objects/pack/pack-" + built.pack.name;
      std::ofstream(base + ".pack", std::ios::binary) << built.pack.pack;
      std::ofstream(base + ".idx", std::ios::binary) << built.pack.index;
    }
    tip_ = built.commit.hex();
    if (++commits_ % 64 == 0) must(store_->compact());
  }
  std::string tree() override { return must(store_->read_commit(tip_)).tree; }

 private:
  std::shared_ptr<object_store> store_;
  batch_builder builder_;
  std::string tip_;
  int apps_, per_cluster_, commits_ = 0;
  bool synced_;
};

}  // namespace

std::unique_ptr<contender> make_ours(const std::string& repository, int apps, int per_cluster, bool synced) {
  return std::make_unique<ours>(repository, apps, per_cluster, synced);
}

std::vector<std::pair<int, std::string>> objects_of_commit(const std::string& repository, int apps, int per_cluster, int count) {
  auto store = must(open_store(repository));
  batch_builder builder(store, "bench", "bench@localhost");
  pending_list batch;
  for (int app : apps_of_step(0, count, apps)) batch.push_back(std::make_shared<pending_change>(app_change(app, 1, per_cluster)));
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
