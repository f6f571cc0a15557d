// The input of a fuzz target as text, and a stepwise feeder's step sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
