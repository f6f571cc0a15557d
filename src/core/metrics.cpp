// A small metrics registry with the Prometheus text exposition.
#include <kubeopera/core/metrics.hpp>

#include <array>
#include <charconv>
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

// Backslash and line feed, and in label values the quote.
void escape(std::string& out, std::string_view text, bool quote) {
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quote && c == '"')) out += '\\';
    out += c;
  }
}

std::string label_text(metric_labels labels) {
  std::string out;
  for (auto [k, v] : labels) {
    if (!out.empty()) out += ',';
    out += k;
    out += "=\"";
    escape(out, v, true);
    out += '"';
  }
  return out;
}

// The shortest text that reads back as the same number; digits rather than an exponent up to 2^53.
std::string number(double v) {
  char buf[64];
  bool whole = v > -9e15 && v < 9e15 && v == static_cast<double>(static_cast<std::int64_t>(v));
  auto end = whole ? std::to_chars(buf, buf + sizeof buf, static_cast<std::int64_t>(v)).ptr
                   : std::to_chars(buf, buf + sizeof buf, v).ptr;
  return {buf, end};
}

std::string braces(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

}  // namespace

struct metrics::state {
  mutable std::mutex mutex;
  std::map<std::string, family, std::less<>> families;
  std::vector<std::function<void(metrics&)>> collectors;
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

void metrics::total(std::string_view name, std::string_view help, double value, metric_labels labels) {
  std::lock_guard lock(state_->mutex);
  state_->at(name, "counter", help, labels).value = value;
}

void metrics::add_collector(std::function<void(metrics&)> collect) {
  std::lock_guard lock(state_->mutex);
  state_->collectors.push_back(std::move(collect));
}

std::string metrics::expose() {
  std::vector<std::function<void(metrics&)>> collectors;
  {
    std::lock_guard lock(state_->mutex);
    collectors = state_->collectors;
  }
  for (const auto& collect : collectors) collect(*this);
  std::lock_guard lock(state_->mutex);
  std::string out;
  for (const auto& [name, f] : state_->families) {
    out += "# HELP " + name + " ";
    escape(out, f.help, false);
    out += "\n# TYPE " + name + " " + f.type + "\n";
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
