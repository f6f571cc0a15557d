#include "src/kube/bearer.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace kubeopera::inline v1::kube::detail {
namespace {

constexpr duration keep_for =
    std::chrono::minutes(1);  // as client-go does; a kubelet renews a token with a fifth of its life left
constexpr std::size_t max_token = 16 * 1024;

bool token_is_clean(std::string_view token) noexcept {
  return std::all_of(token.begin(), token.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

std::string trimmed(std::string text) {
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  return text;
}

}  // namespace

bearer::bearer(std::string token, std::string file, const clock& clk)
    : file_(std::move(file)), clock_(clk), token_(std::move(token)) {}

void bearer::read() {
  std::ifstream in(file_, std::ios::binary);
  std::string text(max_token + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  text = trimmed(std::move(text));
  read_at_ = clock_.steady();
  // A file that is empty or cut is one that is being written: the token in use is good for a while yet.
  if (!text.empty() && text.size() <= max_token && token_is_clean(text)) token_ = std::move(text);
}

result<std::string> bearer::current() {
  std::lock_guard lock(mutex_);
  if (!file_.empty() && (token_.empty() || clock_.steady() - read_at_ >= keep_for)) read();
  if (!file_.empty() && token_.empty()) return error(errc::failed_precondition, "NoToken", "there is no token in " + file_);
  if (!token_is_clean(token_))
    return error(errc::invalid_argument, "InvalidToken", "the bearer token has bytes that a header may not hold");
  return token_;
}

bool bearer::renewed_since(const std::string& used) {
  std::lock_guard lock(mutex_);
  if (file_.empty()) return false;
  if (token_ == used) read();
  return token_ != used;
}

}  // namespace kubeopera::inline v1::kube::detail
