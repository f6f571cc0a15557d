// What the operating system knows of this process.
#include <kubeopera/core/metrics.hpp>

#include <dirent.h>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace kubeopera::inline v1 {
namespace {

// proc(5): the fields of stat after the program's name, which may itself hold spaces and brackets.
struct stat_fields {
  double cpu_ticks = 0, start_ticks = 0, virtual_bytes = 0, resident_pages = 0, threads = 0;
};

bool read_stat(stat_fields& out) {
  std::ifstream in("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto end = text.rfind(')');
  if (end == std::string::npos) return false;
  std::istringstream rest(text.substr(end + 1));
  std::string word;
  for (int number = 3; rest >> word; ++number) {
    double value = std::strtod(word.c_str(), nullptr);
    if (number == 14 || number == 15) out.cpu_ticks += value;
    if (number == 20) out.threads = value;
    if (number == 22) out.start_ticks = value;
    if (number == 23) out.virtual_bytes = value;
    if (number == 24) {
      out.resident_pages = value;
      return true;
    }
  }
  return false;
}

// Seconds since the epoch at which the machine started; 0 where that is unknown.
double boot_time() {
  std::ifstream in("/proc/stat");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
  return 0;
}

// -1 where they cannot be counted.
int open_files() {
  DIR* dir = ::opendir("/proc/self/fd");
  if (!dir) return -1;
  int count = -1;  // the directory's own
  while (const dirent* entry = ::readdir(dir))
    if (entry->d_name[0] != '.') ++count;
  ::closedir(dir);
  return count;
}

void collect_process(metrics& all) {
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const double booted = boot_time();
  stat_fields s;
  if (read_stat(s)) {
    all.total("process_cpu_seconds_total", "Time spent on the processor, user and system", s.cpu_ticks / ticks);
    all.gauge("process_resident_memory_bytes", "Resident memory",
              s.resident_pages * static_cast<double>(::sysconf(_SC_PAGESIZE)));
    all.gauge("process_virtual_memory_bytes", "Virtual memory", s.virtual_bytes);
    all.gauge("process_threads", "Threads", s.threads);
    if (booted > 0)
      all.gauge("process_start_time_seconds", "When the process started, since the epoch", booted + s.start_ticks / ticks);
  }
  if (int n = open_files(); n >= 0) all.gauge("process_open_fds", "Open file descriptors", n);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    all.gauge("process_max_fds", "File descriptors that may be open at once", static_cast<double>(limit.rlim_cur));
}

}  // namespace

void add_process_metrics(metrics& all) { all.add_collector(collect_process); }

}  // namespace kubeopera::inline v1
