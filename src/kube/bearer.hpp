// The token that a client's requests carry: one for ever, or a file's, which its keeper writes anew before the old one ends.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/core/result.hpp>

#include <mutex>
#include <string>

namespace kubeopera::inline v1::kube::detail {

/// Thread-safe. Reading the file blocks; it is a few KiB in memory (a projected volume), read once a minute.
class bearer {
 public:
  bearer(std::string token, std::string file, const clock& clk);
  /// What to send; "" sends nothing. A file that cannot be read leaves the last token in use.
  /// Errors: failed_precondition (the file has never held a token), invalid_argument (bytes that a header may not hold).
  result<std::string> current();
  /// After `used` was refused: reads the file now. True when another token is in use then.
  bool renewed_since(const std::string& used);

 private:
  void read();

  const std::string file_;
  const clock& clock_;
  std::mutex mutex_;
  std::string token_;
  steady_time read_at_{};
};

}  // namespace kubeopera::inline v1::kube::detail
