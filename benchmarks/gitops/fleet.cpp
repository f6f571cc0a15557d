// The fleet repository of the benchmarks and the changes that are made to it.
#include "benchmarks/gitops/fleet.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace fleet_bench {

namespace {

std::string app_name(int app) { return "app-" + std::to_string(app); }

// About the size of real manifests: 2.6 KB in five files.
std::map<std::string, std::string> app_files(int app, int revision) {
  auto name = app_name(app);
  auto head = [&](const std::string& kind, const std::string& api) {
    return "apiVersion: " + api + "\nkind: " + kind + "\nmetadata:\n  name: " + name +
           "\n  labels:\n    app.kubernetes.io/name: " + name + "\n    app.kubernetes.io/managed-by: kubeopera\nspec:\n";
  };
  std::map<std::string, std::string> out;
  std::string deployment =
      head("Deployment", "apps/v1") + "  replicas: 2\n  selector:\n    matchLabels:\n      app: " + name +
      "\n  template:\n    spec:\n      containers:\n      - name: app\n        image: registry.example.com/" + name + ":" +
      std::to_string(revision) + "\n";
  for (int i = 0; i < 12; ++i)
    deployment +=
        "        - name: SETTING_" + std::to_string(i) + "\n          value: \"" + std::to_string((app * 31 + i) % 9973) + "\"\n";
  out["deployment.yaml"] = deployment;
  out["service.yaml"] =
      head("Service", "v1") + "  selector:\n    app: " + name + "\n  ports:\n  - port: 80\n    targetPort: 8080\n";
  out["ingress.yaml"] = head("Ingress", "networking.k8s.io/v1") + "  rules:\n  - host: " + name + ".apps.example.com\n";
  out["hpa.yaml"] = head("HorizontalPodAutoscaler", "autoscaling/v2") + "  minReplicas: 2\n  maxReplicas: 10\n";
  out["networkpolicy.yaml"] =
      head("NetworkPolicy", "networking.k8s.io/v1") + "  podSelector:\n    matchLabels:\n      app: " + name + "\n";
  return out;
}

std::string base_folder() {
  const char* set = std::getenv("KUBEOPERA_BENCH_DIR");
  return set ? set : "/var/tmp/kubeopera-bench-gitops";
}

void write_import(std::FILE* out, int apps, int per_cluster) {
  std::fprintf(out, "commit refs/heads/main\ncommitter bench <bench@localhost> 1700000000 +0000\ndata 5\nfleet\n");
  for (int app = 0; app < apps; ++app) {
    auto c = app_change(app, 0, per_cluster);
    for (const auto& [name, content] : c.files) {
      std::fprintf(out, "M 100644 inline %s/%s\ndata %zu\n", c.directory.c_str(), name.c_str(), content.size());
      std::fwrite(content.data(), 1, content.size(), out);
      std::fputc('\n', out);
    }
  }
  std::fprintf(out, "\ndone\n");
}

}  // namespace

change app_change(int app, int revision, int apps_per_cluster) {
  change c;
  c.directory = kubeopera::gitops::app_directory("team-" + std::to_string(app / apps_per_cluster), app_name(app)).value();
  c.files = app_files(app, revision);
  c.subject = "Deploy " + app_name(app);
  c.trailers = {{"Kubeopera-App", app_name(app)}, {"Kubeopera-Revision", std::to_string(revision)}, {"Kubeopera-Actor", "bench"}};
  return c;
}

std::string shell(const std::string& command) {
  auto full = "export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent; " + command;
  std::FILE* pipe = ::popen(full.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (auto n = pipe ? std::fread(buffer, 1, sizeof buffer, pipe) : 0) out.append(buffer, n);
  int status = pipe ? ::pclose(pipe) : -1;
  if (status != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::exit(1);
  }
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string fleet_repository(int apps, int per_cluster) {
  auto path = base_folder() + "/fleet-" + std::to_string(apps) + "-" + std::to_string(per_cluster) + ".git";
  if (std::filesystem::exists(path + "/complete")) return path;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(base_folder());
  shell("git init -q --bare -b main '" + path + "'");
  std::FILE* out = ::popen(("git -C '" + path + "' fast-import --quiet --done").c_str(), "w");
  write_import(out, apps, per_cluster);
  if (::pclose(out) != 0) std::exit(1);
  std::ofstream(path + "/complete") << "1\n";
  return path;
}

// Never in the place of an older one: a file system is slow to make files where many were removed a moment ago. The folders of
// loose objects are there already, so that nobody's time goes into making them.
std::string fresh_copy(int apps, int per_cluster, const std::string& name) {
  static int copies = 0;
  auto source = fleet_repository(apps, per_cluster);
  auto path = base_folder() + "/work-" + std::to_string(::getpid()) + "-" + std::to_string(copies++) + "-" + name + ".git";
  shell("cp -al '" + source + "' '" + path + "' && cp --remove-destination '" + source + "/config' '" + source + "/HEAD' '" +
        path + "' && cp --remove-destination '" + source + "/refs/heads/main' '" + path + "/refs/heads/main' && cd '" + path +
        "/objects' && mkdir -p $(printf '%02x ' $(seq 0 255))");
  return path;
}

std::vector<change> changes_of_step(int step, int count, int apps, int per_cluster) {
  std::mt19937 random(static_cast<unsigned>(step) * 7919u + 17u);
  std::set<int> chosen;
  while (static_cast<int>(chosen.size()) < count) chosen.insert(static_cast<int>(random() % static_cast<unsigned>(apps)));
  std::vector<change> out;
  for (int app : chosen) out.push_back(app_change(app, step + 1, per_cluster));
  return out;
}

std::string message_of(const std::vector<change>& what) {
  std::string out = "Deploy\n\n";
  for (const auto& c : what)
    for (const auto& [key, value] : c.trailers) out += key + ": " + value + "\n";
  return out;
}

long long time_of_step(int step) { return 1700000001LL + step; }

std::string tip_of(const std::string& repository) { return shell("git -C '" + repository + "' rev-parse main"); }

}  // namespace fleet_bench
