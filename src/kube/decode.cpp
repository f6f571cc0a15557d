// simdjson parses and validates, its tape is walked into Boost.JSON's value stack; managedFields can be left out on the way.
// (The tape and not on-demand: the parser picks the processor's instructions at run time, and checks the whole text.)
#include "src/kube/decode.hpp"

#include <kubeopera/kube/status.hpp>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value_stack.hpp>
#include <simdjson.h>

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

// A Kubernetes object, its metadata without managedFields where they are not wanted.
void push_document(value_stack& stack, const dom::object& all, bool managed_fields) {
  std::size_t n = 0;
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

// Items of a list carry no kind of their own for built-in types; ours always do.
void name_kind(object& item, const resource_type& type) {
  if (!item.contains("apiVersion")) item["apiVersion"] = type.api_version();
  if (!item.contains("kind")) item["kind"] = type.kind;
}

}  // namespace

struct decoder::state {
  state() {
    // Room for most events; grows with the text. The depth is checked while parsing.
    (void)parser.allocate(64 * 1024, max_depth);
  }

  // memory_guess: bytes that a packed object may need.
  object build(const dom::object& o, const decode_style& style, std::size_t memory_guess) {
    boost::json::storage_ptr memory;
    if (style.packed) memory = boost::json::make_shared_resource<boost::json::monotonic_resource>(memory_guess);
    stack.reset(memory);
    push_document(stack, o, style.managed_fields);
    return std::move(stack.release().as_object());
  }
  // The document's root object, valid until the next parse; null with why set where it is none.
  std::optional<dom::object> parse(std::string_view text, const char*& why) {
    dom::object root;
    auto code = parser.parse(text.data(), text.size(), false).get(root);
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
  if (word == "ERROR") return error_of_status(state_->build(content, decode_style(), 0));
  auto type = type_of(word);
  if (!type) return malformed("MalformedWatchEvent", "unknown type");
  watch_event out;
  out.type = *type;
  out.obj = state_->build(content, style, text.size());
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
  for (const auto& item : all) {
    dom::object one;
    if (item.get(one) != simdjson::SUCCESS) return malformed("MalformedAnswer", "an item that is no object");
    out.items.push_back(state_->build(one, style, body.size() / out.items.capacity()));
    name_kind(out.items.back(), type);
  }
  return out;
}

result<object> decoder::document(std::string body) {
  body.reserve(body.size() + padding());
  const char* why = "";
  auto root = state_->parse(body, why);
  if (!root) return malformed("MalformedAnswer", why);
  return state_->build(*root, decode_style(), 0);
}

}  // namespace kubeopera::inline v1::kube::detail
