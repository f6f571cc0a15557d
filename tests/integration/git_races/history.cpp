// Reading histories back.
#include "tests/integration/git_races/history.hpp"

#include <kubeopera/gitops/fleet.hpp>

#include <poll.h>
#include <sstream>
#include <sys/inotify.h>
#include <unistd.h>

namespace races {

tip_watch::tip_watch(const std::string& repository) : file_(repository + "/refs/heads/main") {
  inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (::pipe(stop_) != 0 || ::inotify_add_watch(inotify_, (repository + "/refs/heads").c_str(), IN_MOVED_TO | IN_CREATE) < 0)
    ADD_FAILURE() << "the branch cannot be watched";
  look();
  thread_ = std::thread([this] { watch(); });
}

tip_watch::~tip_watch() {
  (void)seen();
  for (int fd : {inotify_, stop_[0], stop_[1]}) ::close(fd);
}

std::set<std::string> tip_watch::seen() {
  if (thread_.joinable()) {
    EXPECT_EQ(::write(stop_[1], "x", 1), 1);
    thread_.join();
    look();
  }
  return seen_;
}

void tip_watch::watch() {
  char buffer[4096];
  while (true) {
    pollfd fds[2] = {{inotify_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents) return;
    while (::read(inotify_, buffer, sizeof buffer) > 0) {
    }
    look();
  }
}

void tip_watch::look() {
  auto text = read_file(file_);
  if (text.size() >= 40) seen_.insert(text.substr(0, 40));
}

std::vector<told_commit> read_history(const std::string& repository) {
  auto text = git(repository,
                  "log --reverse --format='commit %H%n%(trailers:key=Kubeopera-App,key=Kubeopera-Revision,unfold=true)' main");
  std::vector<told_commit> out;
  std::istringstream lines(text);
  std::string line, app;
  while (std::getline(lines, line)) {
    auto value = [&](std::string_view key) { return line.substr(key.size()); };
    if (line.starts_with("commit ")) out.push_back({value("commit "), {}});
    if (line.starts_with("Kubeopera-App: ")) app = value("Kubeopera-App: ");
    if (line.starts_with("Kubeopera-Revision: ")) out.back().changes.emplace_back(app, value("Kubeopera-Revision: "));
  }
  return out;
}

namespace {

using change_name = std::pair<std::string, std::string>;

void check_receipts(const ledger& done, const std::map<change_name, std::vector<std::string>>& places, bool exact) {
  for (const auto& a : done.all()) {
    auto it = places.find({a.app, a.revision});
    if (it == places.end()) {
      ADD_FAILURE() << "lost: " << a.app << " " << a.revision << ", said to be in " << a.got.commit;
      continue;
    }
    EXPECT_EQ(it->second.size(), 1u) << "twice: " << a.app << " " << a.revision;
    if (exact) {
      EXPECT_TRUE(a.got.changed) << a.app << " " << a.revision;
      EXPECT_EQ(it->second.front(), a.got.commit) << a.app << " " << a.revision;
    }
  }
}

// Every file of the final tree, by path.
std::map<std::string, std::string> final_files(const std::string& repository) {
  temp_folder out;
  git(repository, "archive --format=tar main | tar -x -C '" + out.str() + "'");
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(out.str()))
    if (entry.is_regular_file()) files[entry.path().string().substr(out.str().size() + 1)] = read_file(entry.path().string());
  return files;
}

}  // namespace

int check_history(const std::string& repository, const ledger& done, const std::set<std::string>& tips, expectations what) {
  auto history = read_history(repository);
  std::map<change_name, std::vector<std::string>> places;
  std::map<std::string, std::string> last;
  std::set<std::string> line;
  int carrying = 0;
  for (const auto& c : history) {
    line.insert(c.id);
    carrying += !c.changes.empty();
    for (const auto& [app, revision] : c.changes) {
      places[{app, revision}].push_back(c.id);
      last[app] = revision;
    }
  }
  check_receipts(done, places, what.receipts_are_exact);
  for (const auto& a : done.all()) EXPECT_TRUE(line.contains(a.got.commit)) << "not in the history: " << a.got.commit;
  for (const auto& tip : tips) EXPECT_TRUE(line.contains(tip)) << "a tip was overwritten: " << tip;
  auto files = final_files(repository);
  for (const auto& [app, revision] : last)
    EXPECT_EQ(files[app_directory(what.vcluster, app).value() + "/deployment.yaml"], revision) << app;
  EXPECT_EQ(git(repository, "rev-list --count --min-parents=2 main"), "0");
  return carrying;
}

void check_grep(const std::string& repository, const ledger& done, std::size_t at_most) {
  auto all = done.all();
  auto step = std::max<std::size_t>(1, all.size() / at_most);
  for (std::size_t i = 0; i < all.size(); i += step) {
    auto found = git(repository, "log --all-match --format=%H --grep='^Kubeopera-App: " + all[i].app +
                                     "$' --grep='^Kubeopera-Revision: " + all[i].revision + "$' main");
    EXPECT_EQ(found.size(), 40u) << all[i].app << " " << all[i].revision << " is found in:\n" << found;
  }
}

long long counter(metrics& m, const std::string& name) {
  std::istringstream lines(m.expose());
  long long sum = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + " ") || line.starts_with(name + "{"))
      sum += static_cast<long long>(std::stod(line.substr(line.rfind(' ') + 1)));
  return sum;
}

}  // namespace races
