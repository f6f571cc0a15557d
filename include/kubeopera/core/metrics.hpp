// Counters, gauges and histograms in Prometheus' text format.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kubeopera::inline v1 {

using metric_labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// A registry of metrics. Thread-safe.
class metrics {
 public:
  metrics();
  ~metrics();
  /// Adds to a counter, made on first use. name ends in _total.
  void count(std::string_view name, std::string_view help, metric_labels labels = {}, double by = 1);
  void gauge(std::string_view name, std::string_view help, double value, metric_labels labels = {});
  /// Records seconds in a histogram with buckets from 1 ms to 60 s. name ends in _seconds.
  void observe(std::string_view name, std::string_view help, double seconds, metric_labels labels = {});
  /// The exposition text (version 0.0.4).
  std::string expose() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace kubeopera::inline v1
