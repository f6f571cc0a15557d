// Which mutant was chosen. Only the copy of the sources that tests/mutation/run makes includes this.
#pragma once

#include <cstdlib>
#include <cstring>

inline bool kubeopera_mutant(const char* id) {
  static const char* const chosen = std::getenv("KUBEOPERA_MUTANT");
  return chosen && std::strcmp(chosen, id) == 0;
}
