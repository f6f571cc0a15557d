// How a fuzz target says that a property does not hold: it stops the process, which libFuzzer and the replay both report.
#pragma once

#include <cstdio>
#include <cstdlib>

#define KUBEOPERA_PROPERTY(condition)                                                              \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: property does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                \
    }                                                                                              \
  } while (false)
