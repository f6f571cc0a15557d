#include "tests/walk/effects.hpp"

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <signal.h>
#include <stdexcept>
#include <unistd.h>

namespace kubeopera::walk {

namespace {

constexpr std::array<std::string_view, 4> kinds{"sql", "kube", "pack", "push"};
constexpr std::array<std::string_view, 13> faults{"none",         "cut_before",     "conflict",     "forbid", "throttle",
                                                  "error_before", "timeout_before", "refuse",       "full",   "kill",
                                                  "cut_after",    "error_after",    "timeout_after"};

}  // namespace

effects::effects(std::string_view plan, const std::string& log_file) {
  if (!log_file.empty()) log_ = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (plan.empty()) return;
  auto first = plan.find(':'), last = plan.rfind(':');
  if (first == last) throw std::invalid_argument("a plan is <kind>:<number>:<fault>");
  kind_ = plan.substr(0, first);
  number_ = std::strtoll(std::string(plan.substr(first + 1, last - first - 1)).c_str(), nullptr, 10);
  for (std::size_t i = 0; i < faults.size(); ++i)
    if (faults[i] == plan.substr(last + 1)) fault_ = static_cast<fault>(i);
  if (fault_ == fault::none) throw std::invalid_argument("no fault has that name");
}

effects::~effects() {
  if (log_ >= 0) ::close(log_);
}

bool effects::reached(kind k, const std::string& what) {
  auto name = std::string(kinds[static_cast<std::size_t>(k)]);
  // The lock holds everything else back while the process dies, so that the effect is the last one.
  std::lock_guard lock(mutex_);
  if (!kind_.empty() && kind_ != "any" && kind_ != name) return false;
  bool here = ++count_ == number_;
  auto line =
      std::to_string(count_) + " " + name + " " + what + (here ? " <- " + std::string(faults[std::size_t(fault_)]) : "") + "\n";
  if (log_ >= 0 && ::write(log_, line.data(), line.size()) < 0) std::abort();
  if (here && fault_ == fault::kill) {
    ::kill(::getpid(), SIGKILL);
    while (true) ::pause();
  }
  return here;
}

}  // namespace kubeopera::walk
