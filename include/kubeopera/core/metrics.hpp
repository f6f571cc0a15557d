// Counters, gauges and histograms in Prometheus' text format.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kubeopera::inline v1 {

using metric_labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// A registry of metrics. Thread-safe. Names follow Prometheus' rules: snake_case, base units (seconds, bytes), _total for
/// counters only. Label values must come from a small set: a route's template, never a path; a class of objects, never an id.
class metrics {
 public:
  metrics();
  ~metrics();
  /// Adds to a counter, made on first use. name ends in _total.
  void count(std::string_view name, std::string_view help, metric_labels labels = {}, double by = 1);
  void gauge(std::string_view name, std::string_view help, double value, metric_labels labels = {});
  /// Records seconds in a histogram with buckets from 1 ms to 60 s. name ends in _seconds.
  void observe(std::string_view name, std::string_view help, double seconds, metric_labels labels = {});
  /// Sets a counter whose value is kept elsewhere (by the operating system, for instance) and never goes back.
  void total(std::string_view name, std::string_view help, double value, metric_labels labels = {});
  /// collect is called before each exposition, to set what is only looked at then. It must not block, nor throw. Lifetime: what
  /// it refers to must outlive the registry, or be held weakly.
  void add_collector(std::function<void(metrics&)> collect);
  /// The exposition text (version 0.0.4).
  std::string expose();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Adds what Prometheus' own clients tell of their process: process_cpu_seconds_total, process_resident_memory_bytes,
/// process_virtual_memory_bytes, process_open_fds, process_max_fds, process_threads, process_start_time_seconds. Source: Linux'
/// proc file system; where a file cannot be read its metrics are left out.
void add_process_metrics(metrics& all);

}  // namespace kubeopera::inline v1
