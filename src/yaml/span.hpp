// Where a scalar lies in the text. yaml-cpp says only where it begins, and forgives what other readers do not: quoted text
// without an end, keys without a colon, tabs as white space. With spans the strict reader sees all three.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace kubeopera::inline v1::yaml {

enum class scalar_style { plain, quoted, block };

struct span {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< one past the last character; equal to begin for plain text over several lines
  scalar_style style = scalar_style::plain;
};

/// The span of the scalar whose node (tags included) begins at pos; nullopt for quoted text without an end.
/// @param value what the parser read, which tells the end of plain text
std::optional<span> locate_scalar(std::string_view text, std::size_t pos, std::string_view value);

/// True when the node at pos is an explicit key ("? key").
bool is_explicit_key(std::string_view text, std::size_t pos);

/// True when only indicators and a comment follow the | or > at pos.
bool is_block_header(std::string_view text, std::size_t pos);

/// True when the next character behind blanks on the line is a colon.
/// @param blank_after  line ends count as blanks, and the colon must have one behind it (flow maps)
bool colon_follows(std::string_view text, std::size_t pos, bool blank_after = false);

}  // namespace kubeopera::inline v1::yaml
