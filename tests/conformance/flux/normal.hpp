// Makes recorded and simulated Flux objects comparable: what differs by nature is taken out or numbered in the order of
// appearance.
#pragma once

#include <kubeopera/json/value.hpp>

#include <map>
#include <string>
#include <vector>

namespace kubeopera::conformance::flux {

/// Gives the same number to the same text; one for each side of a comparison.
class numbering {
 public:
  std::string of(const std::string& kind, const std::string& text);

 private:
  std::map<std::string, std::map<std::string, std::size_t>> seen_;
};

/// Words that depend on time, place or content: commits, durations, temporary folders.
std::string normal_text(std::string text, numbering& numbers);
/// A watched object as canonical text.
std::string normal_object(const json::object& o, numbering& numbers);
/// Leaves out a state that equals the one before.
std::vector<std::string> distinct(const std::vector<json::object>& objects);

}  // namespace kubeopera::conformance::flux
