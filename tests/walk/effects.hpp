// One sequence of everything that a server does to the outside, and the place in it where the server dies or meets an error.
#pragma once

#include <kubeopera/core/error.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace kubeopera::walk {

enum class kind { sql, kube, pack, push };

/// What happens at the chosen effect. Those up to `full` come in place of it, the others once it is done.
enum class fault {
  none,
  cut_before,      ///< the connection is cut, nothing was done
  conflict,        ///< Kubernetes 409; a branch that moved
  forbid,          ///< Kubernetes 403: somebody has taken a right away
  throttle,        ///< Kubernetes 429 with Retry-After
  error_before,    ///< Kubernetes 500, nothing was done
  timeout_before,  ///< no answer in time, nothing was done
  refuse,          ///< the Git server refuses the ref
  full,            ///< ENOSPC
  kill,            ///< kill -9
  cut_after,       ///< done; the answer is lost
  error_after,     ///< done; Kubernetes answers 500
  timeout_after,   ///< done; no answer in time
};

/// Thread-safe. Each counted effect is a line "<number> <kind> <what>" of the log, written before anything happens to it.
class effects {
 public:
  /// @param plan "<kind or any>:<number>:<fault>", e.g. "any:12:kill" or "push:1:cut_after"; "": only counts
  /// @param log_file appended to; "": no log
  effects(std::string_view plan, const std::string& log_file);
  ~effects();
  effects(const effects&) = delete;
  effects& operator=(const effects&) = delete;

  /// True where effects are counted before they are done, because the fault comes in their place.
  bool counts_before() const noexcept { return fault_ != fault::none && fault_ <= fault::full; }
  /// To be called in front of an effect: true when the fault takes its place.
  bool before(kind k, const std::string& what) { return counts_before() && reached(k, what); }
  /// To be called once an effect is done: true when its answer is lost. Does not return when the plan says kill.
  bool after(kind k, const std::string& what) { return !counts_before() && reached(k, what); }
  fault what() const noexcept { return fault_; }

 private:
  bool reached(kind k, const std::string& what);
  std::mutex mutex_;
  std::string kind_;
  std::int64_t number_ = 0, count_ = 0;
  fault fault_ = fault::none;
  int log_ = -1;
};

}  // namespace kubeopera::walk
