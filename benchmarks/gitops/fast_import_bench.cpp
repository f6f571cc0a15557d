// git fast-import, one process a commit: what a service that drives the git program at its best would do.
#include "benchmarks/gitops/fleet.hpp"

#include <cstdio>
#include <cstdlib>

namespace fleet_bench {

namespace {

class with_fast_import : public contender {
 public:
  explicit with_fast_import(std::string repository) : repository_(std::move(repository)) {}

  double commit(int step, const std::vector<change>& what) override {
    auto message = message_of(what);
    return seconds_of([&] {
      std::FILE* out = ::popen(("git -C '" + repository_ + "' fast-import --quiet --done").c_str(), "w");
      std::fprintf(out,
                   "commit refs/heads/main\ncommitter bench <bench@localhost> %lld +0000\ndata %zu\n%s\nfrom refs/heads/main^0\n",
                   time_of_step(step), message.size(), message.c_str());
      for (const auto& c : what) {
        for (const auto& [name, content] : c.files) {
          std::fprintf(out, "M 100644 inline %s/%s\ndata %zu\n", c.directory.c_str(), name.c_str(), content.size());
          std::fwrite(content.data(), 1, content.size(), out);
          std::fputc('\n', out);
        }
      }
      std::fprintf(out, "\ndone\n");
      if (::pclose(out) != 0) std::exit(1);
    });
  }
  std::string tree() override { return shell("git -C '" + repository_ + "' rev-parse main^{tree}"); }

 private:
  std::string repository_;
};

}  // namespace

std::unique_ptr<contender> make_fast_import(const std::string& repository) {
  return std::make_unique<with_fast_import>(repository);
}

}  // namespace fleet_bench
