// The exposition text.
#include <kubeopera/core/metrics.hpp>

#include <gtest/gtest.h>

#include <cstring>

using namespace kubeopera;

TEST(metrics, counters_gauges_and_totals) {
  metrics all;
  all.count("a_total", "Things", {{"kind", "x"}});
  all.count("a_total", "Things", {{"kind", "x"}}, 2);
  all.count("a_total", "Things", {{"kind", "y"}}, 0);
  all.gauge("b", "Now", 1.5);
  all.gauge("b", "Now", 0.1);
  all.total("c_total", "Elsewhere", 7);
  all.total("c_total", "Elsewhere", 9);
  EXPECT_EQ(all.expose(),
            "# HELP a_total Things\n# TYPE a_total counter\na_total{kind=\"x\"} 3\na_total{kind=\"y\"} 0\n"
            "# HELP b Now\n# TYPE b gauge\nb 0.1\n"
            "# HELP c_total Elsewhere\n# TYPE c_total counter\nc_total 9\n");
}

TEST(metrics, numbers_read_back_as_what_they_were) {
  metrics all;
  all.gauge("a", "A", 1764557252.125);
  all.gauge("b", "B", 1e300);
  all.gauge("c", "C", -3);
  auto text = all.expose();
  EXPECT_NE(text.find("a 1764557252.125\n"), std::string::npos) << text;
  EXPECT_NE(text.find("b 1e+300\n"), std::string::npos) << text;
  EXPECT_NE(text.find("c -3\n"), std::string::npos) << text;
}

TEST(metrics, what_would_break_a_line_is_escaped) {
  metrics all;
  all.gauge("a", "one\\ \"line\"\nonly", 1, {{"l", "q\" b\\ n\n"}});
  EXPECT_EQ(all.expose(), "# HELP a one\\\\ \"line\"\\nonly\n# TYPE a gauge\na{l=\"q\\\" b\\\\ n\\n\"} 1\n");
}

TEST(metrics, histograms_are_cumulative) {
  metrics all;
  for (double seconds : {0.0005, 0.002, 0.3, 100.0}) all.observe("h_seconds", "Time", seconds, {{"r", "x"}});
  auto text = all.expose();
  for (const char* line : {"h_seconds_bucket{r=\"x\",le=\"0.001\"} 1\n", "h_seconds_bucket{r=\"x\",le=\"0.0025\"} 2\n",
                           "h_seconds_bucket{r=\"x\",le=\"0.25\"} 2\n", "h_seconds_bucket{r=\"x\",le=\"60\"} 3\n",
                           "h_seconds_bucket{r=\"x\",le=\"+Inf\"} 4\n", "h_seconds_count{r=\"x\"} 4\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
}

TEST(metrics, collectors_are_asked_at_each_exposition) {
  metrics all;
  int asked = 0;
  all.add_collector([&asked](metrics& m) { m.gauge("asked", "Times", ++asked); });
  all.expose();
  EXPECT_NE(all.expose().find("asked 2\n"), std::string::npos);
}

TEST(metrics, of_the_process) {
  metrics all;
  add_process_metrics(all);
  auto text = all.expose();
  for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes",
                           "process_open_fds", "process_max_fds", "process_threads", "process_start_time_seconds"}) {
    auto at = text.find("\n" + std::string(name) + " ");
    ASSERT_NE(at, std::string::npos) << name;
    if (name != std::string("process_cpu_seconds_total"))
      EXPECT_GT(std::strtod(text.c_str() + at + 2 + std::strlen(name), nullptr), 0) << name;
  }
}
