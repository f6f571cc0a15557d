// Which fault a container has.
#include "src/testing/sim_kubelet.hpp"
#include "src/testing/sim_meta.hpp"

#include <array>

namespace kubeopera::inline v1::testing {

namespace {

constexpr std::array<std::pair<fault_kind, std::string_view>, 8> words{{{fault_kind::none, "none"},
                                                                        {fault_kind::image_pull, "image-pull"},
                                                                        {fault_kind::crash, "crash"},
                                                                        {fault_kind::oom, "oom"},
                                                                        {fault_kind::unschedulable, "unschedulable"},
                                                                        {fault_kind::readiness, "readiness"},
                                                                        {fault_kind::slow, "slow"},
                                                                        {fault_kind::config, "config"}}};

}  // namespace

std::string_view to_string(fault_kind kind) noexcept {
  for (const auto& [k, word] : words) {
    if (k == kind) return word;
  }
  return "none";
}

std::optional<fault_kind> fault_kind_from(std::string_view word) noexcept {
  for (const auto& [k, w] : words) {
    if (w == word) return k;
  }
  return std::nullopt;
}

namespace sim {

namespace {

bool begins_as_word(std::string_view name, std::string_view word) {
  if (!name.starts_with(word)) return false;
  return name.size() == word.size() || name[word.size()] == '-';
}

struct image_parts {
  std::string_view host, last, tag;
};

image_parts split_image(std::string_view image) {
  image_parts out;
  image = image.substr(0, image.find('@'));
  auto slash = image.rfind('/');
  auto tail = slash == std::string_view::npos ? image : image.substr(slash + 1);
  auto colon = tail.find(':');
  out.last = tail.substr(0, colon);
  if (colon != std::string_view::npos) out.tag = tail.substr(colon + 1);
  auto first = image.substr(0, image.find('/'));
  if (slash != std::string_view::npos &&
      (first.find('.') != std::string_view::npos || first.find(':') != std::string_view::npos)) {
    out.host = first.substr(0, first.find(':'));
  }
  return out;
}

}  // namespace

void fault_table::set(std::string image, fault_kind kind) {
  std::lock_guard lock(mutex_);
  rules_[std::move(image)] = kind;
}

void fault_table::clear(const std::string& image) {
  std::lock_guard lock(mutex_);
  if (image.empty())
    rules_.clear();
  else
    rules_.erase(image);
}

std::optional<fault_kind> fault_table::find(const std::string& image) const {
  std::lock_guard lock(mutex_);
  if (auto it = rules_.find(image); it != rules_.end()) return it->second;
  for (const auto& [pattern, kind] : rules_) {
    if (!pattern.empty() && pattern.back() == '*' && image.starts_with(pattern.substr(0, pattern.size() - 1))) return kind;
  }
  return std::nullopt;
}

fault_kind fault_by_name(const object& pod, const object& container) {
  if (auto kind = fault_kind_from(kube::annotation_of(pod, "sim.kubeopera.io/fail"))) return *kind;
  auto parts = split_image(json::get_string(container, {"image"}));
  if (parts.host.ends_with(".invalid") || parts.tag == "missing") return fault_kind::image_pull;
  if (begins_as_word(parts.last, "crash")) return fault_kind::crash;
  if (begins_as_word(parts.last, "oom")) return fault_kind::oom;
  if (begins_as_word(parts.last, "unready")) return fault_kind::readiness;
  if (begins_as_word(parts.last, "slow")) return fault_kind::slow;
  for (auto list : {"command", "args"}) {
    const auto* all = json::get_array(container, {list});
    if (!all) continue;
    for (const auto& word : *all) {
      if (json::as_view(word) == "crash") return fault_kind::crash;
      if (json::as_view(word) == "oom") return fault_kind::oom;
    }
  }
  return fault_kind::none;
}

fault_kind fault_of(const object& pod, const object& container, const fault_table& table) {
  if (auto kind = table.find(std::string(json::get_string(container, {"image"})))) return *kind;
  return fault_by_name(pod, container);
}

std::string pull_error(std::string_view image) {
  auto parts = split_image(image);
  std::string full(image);
  if (parts.tag.empty() && image.find('@') == std::string_view::npos) full += ":latest";
  if (parts.host.empty()) full = (image.find('/') == std::string_view::npos ? "docker.io/library/" : "docker.io/") + full;
  std::string failed = "failed to pull and unpack image \"" + full + "\": failed to resolve reference \"" + full + "\": ";
  if (!parts.host.ends_with(".invalid")) return "rpc error: code = NotFound desc = " + failed + full + ": not found";
  auto path = full.substr(full.find('/') + 1);
  auto colon = path.rfind(':');
  auto tag = colon == std::string::npos ? std::string("latest") : path.substr(colon + 1);
  path = path.substr(0, colon);
  auto host = std::string(parts.host);
  return "rpc error: code = Unknown desc = " + failed + "failed to do request: Head \"https://" + host + "/v2/" + path +
         "/manifests/" + tag + "\": dial tcp: lookup " + host + " on 10.96.0.10:53: no such host";
}

}  // namespace sim
}  // namespace kubeopera::inline v1::testing
