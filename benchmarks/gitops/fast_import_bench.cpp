// git fast-import, one process a commit: what a service that drives the git program at its best would do.
#include "benchmarks/gitops/fleet.hpp"

#include <cstdlib>

namespace fleet_bench {

namespace {

class with_fast_import : public contender {
 public:
  with_fast_import(std::string repository, int apps, int per_cluster)
      : repository_(std::move(repository)), apps_(apps), per_cluster_(per_cluster) {}

  void commit(int step, int count) override {
    std::FILE* out = ::popen(("git -C '" + repository_ + "' fast-import --quiet --done").c_str(), "w");
    std::fprintf(out,
                 "commit refs/heads/main\ncommitter bench <bench@localhost> %d +0000\ndata 6\nDeploy\nfrom refs/heads/main^0\n",
                 1700000001 + step);
    for (int app : apps_of_step(step, count, apps_)) {
      auto c = app_change(app, step + 1, per_cluster_);
      for (const auto& [name, content] : c.files) {
        std::fprintf(out, "M 100644 inline %s/%s\ndata %zu\n", c.directory.c_str(), name.c_str(), content.size());
        std::fwrite(content.data(), 1, content.size(), out);
        std::fputc('\n', out);
      }
    }
    std::fprintf(out, "\ndone\n");
    if (::pclose(out) != 0) std::exit(1);
  }
  std::string tree() override { return shell("git -C '" + repository_ + "' rev-parse main^{tree}"); }

 private:
  std::string repository_;
  int apps_, per_cluster_;
};

}  // namespace

std::unique_ptr<contender> make_fast_import(const std::string& repository, int apps, int per_cluster) {
  return std::make_unique<with_fast_import>(repository, apps, per_cluster);
}

}  // namespace fleet_bench
