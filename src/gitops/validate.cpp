// The rules for what enters the fleet repository, each fault with a pointer.
#include "src/gitops/validate.hpp"

#include <algorithm>

namespace kubeopera::inline v1::gitops::detail {

namespace {

bool lower_or_digit(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool has_control(std::string_view text) noexcept {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// nullptr when name is fit.
const char* file_name_fault(std::string_view name) noexcept {
  if (name.empty() || name.size() > max_name_bytes) return "a file name has 1 to 100 characters";
  if (!lower_or_digit(name[0])) return "a file name begins with a-z or 0-9";
  for (char c : name)
    if (!lower_or_digit(c) && c != '.' && c != '-') return "a file name holds only a-z, 0-9, '.' and '-'";
  if (name.find("..") != std::string_view::npos || name.ends_with('.')) return "a file name has no '..' and no '.' at its end";
  return nullptr;
}

bool is_trailer_key(std::string_view key) noexcept {
  if (key.empty() || key.size() > 64) return false;
  return std::all_of(key.begin(), key.end(), [](char c) { return lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '-'; });
}

// ~0 and ~1 as RFC 6901 wants.
std::string escape_pointer(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out.push_back(c);
  }
  return out;
}

void check_directory(std::string_view directory, std::vector<violation>& out) {
  std::size_t depth = 0;
  for (auto rest = directory;;) {
    auto slash = rest.find('/');
    if (!is_dns_label(rest.substr(0, slash))) {
      out.push_back({"/directory", "a directory is DNS-1123 labels joined by '/'"});
      return;
    }
    if (++depth > 16) {
      out.push_back({"/directory", "a directory has at most 16 steps"});
      return;
    }
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace

bool is_dns_label(std::string_view text) noexcept {
  if (text.empty() || text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return lower_or_digit(c) || c == '-'; });
}

result<void> validate_change(const change& c) {
  std::vector<violation> faults;
  check_directory(c.directory, faults);
  for (const auto& [name, content] : c.files) {
    if (const char* fault = file_name_fault(name)) faults.push_back({"/files/" + escape_pointer(name), fault});
    if (content.size() > max_file_bytes) faults.push_back({"/files/" + escape_pointer(name), "a file has at most 1 MiB"});
  }
  if (c.subject.size() > 200 || has_control(c.subject))
    faults.push_back({"/subject", "a subject is one line of at most 200 bytes"});
  for (std::size_t i = 0; i < c.trailers.size(); ++i) {
    auto at = "/trailers/" + std::to_string(i);
    const auto& [key, value] = c.trailers[i];
    if (!is_trailer_key(key)) faults.push_back({at + "/0", "a trailer's key is letters, digits and '-', at most 64"});
    if (value.size() > 1000 || has_control(value) || value.starts_with(' ') || value.empty())
      faults.push_back({at + "/1", "a trailer's value is one line of 1 to 1000 bytes"});
  }
  if (faults.empty()) return {};
  return error(errc::invalid_argument, "InvalidChange", "the change cannot enter the fleet repository")
      .with_violations(std::move(faults));
}

result<void> validate_branch(std::string_view branch) {
  bool fit = !branch.empty() && branch.size() <= 200 && branch.front() != '-' && branch.front() != '/' && branch.back() != '/' &&
             branch.find("..") == std::string_view::npos && branch.find("//") == std::string_view::npos;
  for (auto rest = branch; fit;) {
    auto step = rest.substr(0, rest.find('/'));
    fit = !step.empty() && step.front() != '.' && step.back() != '.' && !step.ends_with(".lock") &&
          std::all_of(step.begin(), step.end(),
                      [](char c) { return lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-'; });
    if (step.size() == rest.size()) break;
    rest.remove_prefix(step.size() + 1);
  }
  if (fit && branch != "HEAD") return {};
  return error(errc::invalid_argument, "InvalidBranch", "not a branch name that kubeopera works with")
      .with_violation("/branch", "letters, digits, '.', '_', '-' and '/', by the rules of git-check-ref-format");
}

}  // namespace kubeopera::inline v1::gitops::detail
