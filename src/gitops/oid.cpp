// Object ids: text forms, and SHA-1 with a context kept for each thread.
#include "src/gitops/oid.hpp"

#include <charconv>
#include <cstring>

namespace kubeopera::inline v1::gitops::detail {

namespace {

int nibble(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string oid::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(40, '0');
  for (std::size_t i = 0; i < 20; ++i) {
    out[2 * i] = digits[bytes[i] >> 4];
    out[2 * i + 1] = digits[bytes[i] & 15];
  }
  return out;
}

std::optional<oid> oid::parse(std::string_view text) noexcept {
  if (text.size() != 40) return std::nullopt;
  oid id;
  for (std::size_t i = 0; i < 20; ++i) {
    int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    id.bytes[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return id;
}

result<oid> parse_oid(std::string_view text) {
  if (auto id = oid::parse(text)) return *id;
  return error(errc::invalid_argument, "BadObjectId", "an object id is 40 lower-case hex digits");
}

std::string_view zero_hex() noexcept { return "0000000000000000000000000000000000000000"; }

std::string_view type_name(object_type type) noexcept {
  switch (type) {
    case object_type::commit:
      return "commit";
    case object_type::tree:
      return "tree";
    case object_type::blob:
      return "blob";
  }
  return "blob";
}

oid sha1::finish() {
  oid id;
  auto digest = hasher_.finish();
  std::memcpy(id.bytes.data(), digest.data(), id.bytes.size());
  return id;
}

oid hash_object(object_type type, std::string_view content) {
  thread_local sha1 hasher;
  char header[32];
  auto name = type_name(type);
  std::memcpy(header, name.data(), name.size());
  char* at = header + name.size();
  *at++ = ' ';
  at = std::to_chars(at, header + sizeof header - 1, content.size()).ptr;
  *at++ = '\0';
  hasher.update({header, static_cast<std::size_t>(at - header)});
  hasher.update(content);
  return hasher.finish();
}

}  // namespace kubeopera::inline v1::gitops::detail
