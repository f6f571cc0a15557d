// simdjson parses and validates, its tape is walked into Boost.JSON's value stack; managedFields can be left out on the way.
// (The tape and not on-demand: the parser picks the processor's instructions at run time, and checks the whole text.)
#include "src/kube/decode.hpp"

#include <kubeopera/kube/status.hpp>

#include <boost/json/memory_resource.hpp>
#include <boost/json/value_stack.hpp>
#include <simdjson.h>

#include <algorithm>
#include <charconv>

namespace kubeopera::inline v1::kube::detail {

/// One block for one object; nothing is given back before the object dies. Blocks are added when it is changed after all.
class packed_memory final : public boost::json::memory_resource {
 public:
  explicit packed_memory(std::size_t bytes) { add(bytes); }
  ~packed_memory() override {
    while (last_) ::operator delete(std::exchange(last_, last_->before));
  }

 private:
  struct block {
    block* before;
  };
  void add(std::size_t bytes) {
    auto* b = static_cast<block*>(::operator new(sizeof(block) + bytes));
    b->before = std::exchange(last_, b);
    at_ = reinterpret_cast<char*>(b + 1);
    left_ = bytes;
  }
  void* do_allocate(std::size_t bytes, std::size_t) override {
    bytes = (bytes + 7) & ~std::size_t{7};  // Boost.JSON asks for no more than the alignment of pointers
    if (bytes > left_) add(std::max<std::size_t>(bytes, 512));
    left_ -= bytes;
    return std::exchange(at_, at_ + bytes);
  }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const boost::json::memory_resource& other) const noexcept override { return this == &other; }

  block* last_ = nullptr;
  char* at_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace kubeopera::inline v1::kube::detail

template <>
struct boost::json::is_deallocate_trivial<kubeopera::kube::detail::packed_memory> {
  static constexpr bool value = true;
};

namespace kubeopera::inline v1::kube::detail {
namespace {

namespace dom = simdjson::dom;
using boost::json::value_stack;

constexpr std::size_t max_depth = 256;

void push(value_stack& stack, const dom::element& v);

void push_array(value_stack& stack, const dom::array& all) {
  std::size_t n = 0;
  for (const auto& item : all) {
    push(stack, item);
    ++n;
  }
  stack.push_array(n);
}

void push_object(value_stack& stack, const dom::object& all, std::string_view without = {}) {
  std::size_t n = 0;
  for (const auto& field : all) {
    if (!without.empty() && field.key == without) continue;
    stack.push_key(field.key);
    push(stack, field.value);
    ++n;
  }
  stack.push_object(n);
}

void push(value_stack& stack, const dom::element& v) {
  switch (v.type()) {
    case dom::element_type::OBJECT:
      return push_object(stack, v.get_object().value_unsafe());
    case dom::element_type::ARRAY:
      return push_array(stack, v.get_array().value_unsafe());
    case dom::element_type::STRING:
      return stack.push_string(v.get_string().value_unsafe());
    case dom::element_type::INT64:
      return stack.push_int64(v.get_int64().value_unsafe());
    case dom::element_type::UINT64:
      return stack.push_uint64(v.get_uint64().value_unsafe());
    case dom::element_type::DOUBLE:
      return stack.push_double(v.get_double().value_unsafe());
    case dom::element_type::BOOL:
      return stack.push_bool(v.get_bool().value_unsafe());
    case dom::element_type::NULL_VALUE:
      return stack.push_null();
  }
}

// Bytes that Boost.JSON takes for a value beyond the value itself, so that a packed object fits its block exactly or nearly.
std::size_t memory_of(const dom::element& v);

constexpr std::size_t round_up(std::size_t n) noexcept { return (n + 7) & ~std::size_t{7}; }
constexpr std::size_t table_header = 16;
constexpr std::size_t string_inside = 14;     // shorter ones need no memory of their own
constexpr std::size_t unindexed_object = 18;  // larger ones have a hash table

std::size_t memory_of(const dom::object& all) {
  std::size_t n = 0, bytes = 0;
  for (const auto& field : all) {
    ++n;
    bytes += round_up(field.key.size() + 1) + memory_of(field.value);
  }
  if (n == 0) return bytes;
  return bytes + table_header + n * (sizeof(boost::json::key_value_pair) + (n > unindexed_object ? sizeof(std::uint32_t) : 0));
}

std::size_t memory_of(const dom::element& v) {
  switch (v.type()) {
    case dom::element_type::OBJECT:
      return memory_of(v.get_object().value_unsafe());
    case dom::element_type::STRING: {
      auto size = v.get_string_length().value_unsafe();
      return size > string_inside ? table_header + round_up(size + 1) : 0;
    }
    case dom::element_type::ARRAY: {
      std::size_t n = 0, bytes = 0;
      for (const auto& item : v.get_array().value_unsafe()) {
        ++n;
        bytes += memory_of(item);
      }
      return n ? bytes + table_header + n * sizeof(boost::json::value) : 0;
    }
    default:
      return 0;
  }
}

// A kind for items of lists, which carry none of their own for built-in types; ours always do.
struct kind_name {
  std::string_view api_version, kind;
};

// Room for the two members that an item of a list may lack.
std::size_t memory_of(const kind_name& named) {
  if (named.kind.empty()) return 0;
  return 2 * sizeof(boost::json::key_value_pair) + 3 * table_header + round_up(named.api_version.size() + 1) +
         round_up(named.kind.size() + 1) + 24;
}

// What managedFields would take, where they are left out.
std::size_t memory_of_managed_fields(const dom::object& o) {
  dom::element all;
  if (o.at_pointer("/metadata/managedFields").get(all) != simdjson::SUCCESS) return 0;
  return memory_of(all);
}

std::size_t push_missing(value_stack& stack, const dom::object& all, std::string_view key, std::string_view value) {
  if (value.empty() || all.at_key(key).error() == simdjson::SUCCESS) return 0;
  stack.push_key(key);
  stack.push_string(value);
  return 1;
}

// A Kubernetes object, its metadata without managedFields where they are not wanted.
void push_document(value_stack& stack, const dom::object& all, bool managed_fields, const kind_name& named) {
  std::size_t n = push_missing(stack, all, "apiVersion", named.api_version) + push_missing(stack, all, "kind", named.kind);
  for (const auto& field : all) {
    stack.push_key(field.key);
    if (!managed_fields && field.key == "metadata" && field.value.is_object()) {
      push_object(stack, field.value.get_object().value_unsafe(), "managedFields");
    } else {
      push(stack, field.value);
    }
    ++n;
  }
  stack.push_object(n);
}

// The text with every integer beyond 64 bits written as a double, which is what Go's reader makes of it. In a valid document a
// digit outside a string belongs to a number.
std::string wide_integers_as_doubles(std::string_view text) {
  constexpr std::size_t always_fits = 18;  // digits
  std::string out;
  out.reserve(text.size() + 64 + simdjson::SIMDJSON_PADDING);
  for (std::size_t i = 0; i < text.size();) {
    auto from = i;
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\';
      i = std::min(i + 1, text.size());
      out += text.substr(from, i - from);
      continue;
    }
    bool whole = true;
    for (; i < text.size() && (text[i] == '-' || text[i] == '+' || text[i] == '.' || (text[i] >= '0' && text[i] <= '9') ||
                               (i > from && (text[i] == 'e' || text[i] == 'E')));
         ++i) {
      whole = whole && text[i] != '.' && text[i] != 'e' && text[i] != 'E';
    }
    if (i == from) ++i;
    out += text.substr(from, i - from);
    std::int64_t in_range = 0;
    std::uint64_t positive = 0;
    if (!whole || i - from <= always_fits) continue;
    const char *first = text.data() + from, *last = text.data() + i;
    bool fits =
        std::from_chars(first, last, in_range).ec == std::errc() || std::from_chars(first, last, positive).ec == std::errc();
    if (!fits) out += ".0";
  }
  return out;
}

error malformed(const char* reason, const char* why) {
  return error(errc::data_loss, reason, "the API server's answer cannot be read").with_detail(why);
}

std::optional<event_type> type_of(std::string_view word) noexcept {
  if (word == "ADDED") return event_type::added;
  if (word == "MODIFIED") return event_type::modified;
  if (word == "DELETED") return event_type::deleted;
  if (word == "BOOKMARK") return event_type::bookmark;
  return std::nullopt;
}

}  // namespace

struct decoder::state {
  state() {
    // Room for most events; grows with the text. The depth is checked while parsing.
    (void)parser.allocate(64 * 1024, max_depth);
  }

  object build(const dom::object& o, const decode_style& style, const kind_name& named = kind_name()) {
    boost::json::storage_ptr memory;
    if (style.packed) {
      auto bytes = memory_of(o) - (style.managed_fields ? 0 : memory_of_managed_fields(o)) + memory_of(named);
      memory = boost::json::make_shared_resource<packed_memory>(bytes);
    }
    stack.reset(memory);
    push_document(stack, o, style.managed_fields, named);
    return std::move(stack.release().as_object());
  }
  // The document's root object, valid until the next parse; null with why set where it is none.
  std::optional<dom::object> parse(std::string_view text, const char*& why) {
    dom::object root;
    auto code = parser.parse(text.data(), text.size(), false).get(root);
    if (code != simdjson::SUCCESS) {
      auto again = wide_integers_as_doubles(text);
      if (again.size() != text.size()) code = parser.parse(again.data(), again.size(), false).get(root);
    }
    if (code == simdjson::SUCCESS) return root;
    why = simdjson::error_message(code);
    return std::nullopt;
  }

  dom::parser parser{std::size_t{1} << 30};
  value_stack stack;
};

decoder::decoder() : state_(std::make_unique<state>()) {}
decoder::~decoder() = default;
decoder::decoder(decoder&&) noexcept = default;
decoder& decoder::operator=(decoder&&) noexcept = default;

std::size_t decoder::padding() noexcept { return simdjson::SIMDJSON_PADDING; }

result<watch_event> decoder::event(std::string_view text, decode_style style) {
  const char* why = "";
  auto root = state_->parse(text, why);
  if (!root) return malformed("MalformedWatchEvent", why);
  std::string_view word;
  dom::object content;
  if (root->at_key("type").get(word) != simdjson::SUCCESS) return malformed("MalformedWatchEvent", "no type");
  if (root->at_key("object").get(content) != simdjson::SUCCESS) return malformed("MalformedWatchEvent", "no object");
  if (word == "ERROR") return error_of_status(state_->build(content, decode_style()));
  auto type = type_of(word);
  if (!type) return malformed("MalformedWatchEvent", "unknown type");
  watch_event out;
  out.type = *type;
  out.obj = state_->build(content, style);
  return out;
}

result<object_list> decoder::list(std::string body, const resource_type& type, decode_style style) {
  body.reserve(body.size() + padding());
  const char* why = "";
  auto root = state_->parse(body, why);
  if (!root) return malformed("MalformedAnswer", why);
  object_list out;
  std::string_view word;
  if (root->at_pointer("/metadata/resourceVersion").get(word) == simdjson::SUCCESS) out.resource_version = word;
  if (root->at_pointer("/metadata/continue").get(word) == simdjson::SUCCESS) out.continue_token = word;
  auto items = root->at_key("items");
  if (items.error() == simdjson::SUCCESS && items.is_null()) return out;
  dom::array all;
  if (items.get(all) != simdjson::SUCCESS) return malformed("MalformedAnswer", "a list without items");
  out.items.reserve(all.size());
  auto api_version = type.api_version();
  kind_name named{api_version, type.kind};
  for (const auto& item : all) {
    dom::object one;
    if (item.get(one) != simdjson::SUCCESS) return malformed("MalformedAnswer", "an item that is no object");
    out.items.push_back(state_->build(one, style, named));
  }
  return out;
}

result<object> decoder::document(std::string body) {
  body.reserve(body.size() + padding());
  const char* why = "";
  auto root = state_->parse(body, why);
  if (!root) return malformed("MalformedAnswer", why);
  return state_->build(*root, decode_style());
}

}  // namespace kubeopera::inline v1::kube::detail
