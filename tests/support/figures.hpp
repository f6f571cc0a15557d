// What a test did, in numbers: printed by ./check under "what was done". And whether this is a long run.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

namespace kubeopera::tests {

/// True under `./check --long`: the same tests, many more seeds, steps or minutes.
inline bool long_run() {
  const char* text = std::getenv("KUBEOPERA_LONG");
  return text && std::string(text) == "1";
}

/// A number from the environment (to repeat one seed, say), or fallback.
inline long long number_from(const char* variable, long long fallback) {
  const char* text = std::getenv(variable);
  return text && *text ? std::stoll(text) : fallback;
}

/// Says what a test did ("simulation", "10000 seeds, 1.2 million steps").
inline void report(const std::string& name, const std::string& what) {
  std::cout << name << ": " << what << std::endl;
  if (const char* folder = std::getenv("KUBEOPERA_FIGURES"))
    std::ofstream(std::string(folder) + "/" + name + ".txt", std::ios::app) << what << "\n";
}

}  // namespace kubeopera::tests
