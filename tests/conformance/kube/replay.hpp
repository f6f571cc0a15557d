// Replays recorded exchanges against the in-process API server and compares the answers after normalising what cannot be equal.
// Not here: the exchanges (fixtures/) and what may differ (out-of-reach.txt).
#pragma once

#include <kubeopera/json/value.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kubeopera::conformance {

/// One recorded exchange.
struct exchange {
  int number = 0;
  std::string name;  ///< "018-create"
  bool setup = false;
  json::object request, response;
  bool is_watch() const { return response.if_contains("lines") != nullptr; }
  int opened_before() const { return static_cast<int>(json::get_int(response, {"opened_before"}, number)); }
};

/// All exchanges of a folder in their order. Throws std::runtime_error where one cannot be read.
std::vector<exchange> load(const std::string& folder);

/// What stood for what when the recording was made, and what does now. Bindings are made where a recorded value is first seen.
class translation {
 public:
  /// Turns recorded values in a request into those of this run.
  std::string path(const std::string& recorded) const;
  json::value body(const json::value& recorded) const;
  /// The differences between a recorded and an actual document; empty when they are equal. Binds values on the way.
  std::vector<std::string> compare(const json::value& recorded, const json::value& actual);
  std::vector<std::string> compare_text(const std::string& recorded, const std::string& actual);

 private:
  friend class comparer;
  std::map<std::string, std::string> words_;     ///< uids, generated names, continue tokens
  std::map<std::string, std::string> versions_;  ///< resourceVersions
};

/// What surrounds the server: controllers that make it live, where there are any.
class surroundings {
 public:
  virtual ~surroundings() = default;
  /// How long a GET may be repeated, and a watch waited for, until it is as recorded.
  virtual std::chrono::milliseconds patience() const { return std::chrono::milliseconds(0); }
};

struct outcome {
  std::string name;
  bool setup = false;
  std::vector<std::string> differences;
};

/// Runs all exchanges in order. skip_waiting: exchanges that are known to differ are not waited for.
std::vector<outcome> replay(const std::vector<exchange>& all, testing::api_server& server, const surroundings& around,
                            const std::map<std::string, std::string>& known);

}  // namespace kubeopera::conformance
