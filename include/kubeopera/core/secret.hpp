// A string that must not be printed. Wiped when it dies.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace kubeopera::inline v1 {

/// Holds a secret. Streams as ***; compared only in constant time.
class secret {
 public:
  secret() = default;
  explicit secret(std::string value) : value_(std::move(value)) {}
  secret(const secret&) = default;
  secret(secret&&) noexcept = default;
  secret& operator=(const secret&) = default;
  secret& operator=(secret&&) noexcept = default;
  ~secret();
  /// The bytes. Name it where you use it: reveal() is what reviewers search for.
  const std::string& reveal() const noexcept { return value_; }
  bool empty() const noexcept { return value_.empty(); }
  friend std::ostream& operator<<(std::ostream& out, const secret&) { return out << "***"; }

 private:
  std::string value_;
};

/// Equal without telling where they differ; lengths may leak.
bool constant_time_equal(std::string_view a, std::string_view b) noexcept;

}  // namespace kubeopera::inline v1
