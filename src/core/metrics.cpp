// A small metrics registry with the Prometheus text exposition.
#include <kubeopera/core/metrics.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

namespace kubeopera::inline v1 {
namespace {

constexpr std::array<double, 13> bounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60};

struct series {
  double value = 0;
  std::array<std::uint64_t, bounds.size() + 1> buckets{};
  std::uint64_t count = 0;
};

struct family {
  std::string type, help;
  std::map<std::string, series> all;
};

std::string label_text(metric_labels labels) {
  std::string out;
  for (auto [k, v] : labels) {
    if (!out.empty()) out += ',';
    out += k;
    out += "=\"";
    for (char c : v) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    out += '"';
  }
  return out;
}

std::string number(double v) {
  char buf[32];
  if (v == std::floor(v) && std::fabs(v) < 1e15)
    std::snprintf(buf, sizeof buf, "%.0f", v);
  else
    std::snprintf(buf, sizeof buf, "%.9g", v);
  return buf;
}

std::string braces(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

}  // namespace

struct metrics::state {
  mutable std::mutex mutex;
  std::map<std::string, family, std::less<>> families;
  series& at(std::string_view name, const char* type, std::string_view help, metric_labels labels) {
    auto it = families.find(name);
    if (it == families.end()) it = families.emplace(std::string(name), family{type, std::string(help), {}}).first;
    return it->second.all[label_text(labels)];
  }
};

metrics::metrics() : state_(std::make_unique<state>()) {}
metrics::~metrics() = default;

void metrics::count(std::string_view name, std::string_view help, metric_labels labels, double by) {
  std::lock_guard lock(state_->mutex);
  state_->at(name, "counter", help, labels).value += by;
}

void metrics::gauge(std::string_view name, std::string_view help, double value, metric_labels labels) {
  std::lock_guard lock(state_->mutex);
  state_->at(name, "gauge", help, labels).value = value;
}

void metrics::observe(std::string_view name, std::string_view help, double seconds, metric_labels labels) {
  std::lock_guard lock(state_->mutex);
  auto& s = state_->at(name, "histogram", help, labels);
  std::size_t i = 0;
  while (i < bounds.size() && seconds > bounds[i]) ++i;
  ++s.buckets[i];
  ++s.count;
  s.value += seconds;
}

std::string metrics::expose() const {
  std::lock_guard lock(state_->mutex);
  std::string out;
  for (const auto& [name, f] : state_->families) {
    out += "# HELP " + name + " " + f.help + "\n# TYPE " + name + " " + f.type + "\n";
    for (const auto& [labels, s] : f.all) {
      if (f.type != "histogram") {
        out += name + braces(labels) + " " + number(s.value) + "\n";
        continue;
      }
      std::uint64_t sum = 0;
      auto sep = labels.empty() ? "" : ",";
      for (std::size_t i = 0; i < bounds.size(); ++i) {
        sum += s.buckets[i];
        out += name + "_bucket{" + labels + sep + "le=\"" + number(bounds[i]) + "\"} " + std::to_string(sum) + "\n";
      }
      out += name + "_bucket{" + labels + sep + "le=\"+Inf\"} " + std::to_string(s.count) + "\n";
      out += name + "_sum" + braces(labels) + " " + number(s.value) + "\n";
      out += name + "_count" + braces(labels) + " " + std::to_string(s.count) + "\n";
    }
  }
  return out;
}

}  // namespace kubeopera::inline v1
