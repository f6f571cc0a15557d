// The closed-world reader: Boost.JSON's incremental parser drives a handler that checks before anything is built.
#include <kubeopera/json/read.hpp>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include <charconv>
#include <cmath>
#include <unordered_set>
#include <vector>

namespace kubeopera::inline v1::json {
namespace {

// Position in the document, for pointers in errors.
struct level_state {
  bool is_object = false;
  std::size_t index = 0;
  std::string key;
  std::unordered_set<std::string> keys;
};

struct handler {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  explicit handler(const limits& l) : lim(l) {}

  boost::json::value_stack stack;
  std::vector<level_state> path;
  const limits& lim;
  std::size_t nodes = 0;
  std::string key_parts;
  std::string number_text;
  std::optional<error> failure;

  std::string pointer() const {
    std::string out;
    for (const auto& l : path) out = l.is_object ? pointer_step(out, l.key) : pointer_step(out, l.index);
    return out;
  }
  bool fail(boost::system::error_code& ec, const char* reason, const std::string& message) {
    failure = error(errc::invalid_argument, reason, message).with_violation(pointer(), message);
    ec = boost::json::error::syntax;
    return false;
  }
  bool node(boost::system::error_code& ec) {
    if (++nodes > lim.max_nodes) return fail(ec, "TooManyNodes", "more than " + std::to_string(lim.max_nodes) + " values");
    return true;
  }
  void done() {
    if (!path.empty() && !path.back().is_object) ++path.back().index;
  }
  bool open(bool is_object, boost::system::error_code& ec) {
    if (!node(ec)) return false;
    if (path.size() >= lim.max_depth)
      return fail(ec, "TooDeep", "nested deeper than " + std::to_string(lim.max_depth) + " levels");
    path.emplace_back().is_object = is_object;
    return true;
  }

  bool on_document_begin(boost::system::error_code&) { return true; }
  bool on_document_end(boost::system::error_code&) { return true; }
  bool on_object_begin(boost::system::error_code& ec) { return open(true, ec); }
  bool on_object_end(std::size_t n, boost::system::error_code&) {
    stack.push_object(n);
    path.pop_back();
    done();
    return true;
  }
  bool on_array_begin(boost::system::error_code& ec) { return open(false, ec); }
  bool on_array_end(std::size_t n, boost::system::error_code&) {
    stack.push_array(n);
    path.pop_back();
    done();
    return true;
  }
  bool on_key_part(std::string_view s, std::size_t, boost::system::error_code&) {
    key_parts += s;
    stack.push_chars(s);
    return true;
  }
  bool on_key(std::string_view s, std::size_t, boost::system::error_code& ec) {
    key_parts += s;
    auto& l = path.back();
    l.key = key_parts;
    key_parts.clear();
    if (!l.keys.insert(l.key).second) return fail(ec, "DuplicateKey", "the key is there twice");
    stack.push_key(s);
    return true;
  }
  bool on_string_part(std::string_view s, std::size_t, boost::system::error_code&) {
    stack.push_chars(s);
    return true;
  }
  bool on_string(std::string_view s, std::size_t, boost::system::error_code& ec) {
    stack.push_string(s);
    done();
    return node(ec);
  }
  bool on_number_part(std::string_view s, boost::system::error_code&) {
    number_text += s;
    return true;
  }
  bool on_int64(std::int64_t i, std::string_view, boost::system::error_code& ec) {
    number_text.clear();
    stack.push_int64(i);
    done();
    return node(ec);
  }
  bool on_uint64(std::uint64_t u, std::string_view, boost::system::error_code& ec) {
    number_text.clear();
    stack.push_uint64(u);
    done();
    return node(ec);
  }
  bool on_double(double d, std::string_view s, boost::system::error_code& ec) {
    number_text += s;
    bool integer = number_text.find_first_of(".eE") == std::string::npos;
    // The parser's own value can be wrong in its last digits.
    double exact = 0;
    auto [end, code] = std::from_chars(number_text.data(), number_text.data() + number_text.size(), exact);
    number_text.clear();
    if (integer && d != 0) return fail(ec, "NumberOutOfRange", "an integer beyond 64 bits");
    if (code == std::errc::result_out_of_range && std::fabs(d) > 1)
      return fail(ec, "NumberOutOfRange", "a number beyond the range of a double");
    stack.push_double(exact);
    done();
    return node(ec);
  }
  bool on_bool(bool b, boost::system::error_code& ec) {
    stack.push_bool(b);
    done();
    return node(ec);
  }
  bool on_null(boost::system::error_code& ec) {
    stack.push_null();
    done();
    return node(ec);
  }
  bool on_comment_part(std::string_view, boost::system::error_code&) { return true; }
  bool on_comment(std::string_view, boost::system::error_code&) { return true; }
};

}  // namespace

result<value> read(std::string_view text, const limits& lim) {
  if (text.size() > lim.max_bytes)
    return error(errc::too_large, "TooLarge", "the document is over " + std::to_string(lim.max_bytes) + " bytes");
  boost::json::parse_options options;
  options.max_depth = lim.max_depth + 1;
  boost::json::basic_parser<handler> parser(options, lim);
  boost::system::error_code ec;
  auto& h = parser.handler();
  h.stack.reset();
  std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) {
    // Only white space may follow the document.
    auto rest = text.substr(used);
    auto extra = rest.find_first_not_of(" \t\r\n");
    if (extra != std::string_view::npos)
      return error(errc::invalid_argument, "MalformedJson", "bytes after the document at offset " + std::to_string(used + extra))
          .with_violation("", "bytes after the document");
  }
  if (ec) {
    if (h.failure) return std::move(*h.failure);
    auto what = ec.message() + " at offset " + std::to_string(used);
    return error(errc::invalid_argument, "MalformedJson", "not JSON: " + what).with_violation(h.pointer(), what);
  }
  return h.stack.release();
}

result<object> read_object(std::string_view text, const limits& lim) {
  KUBEOPERA_TRY(auto v, read(text, lim));
  if (!v.is_object())
    return error(errc::invalid_argument, "MalformedJson", "the document must be an object")
        .with_violation("", "must be an object");
  return std::move(v.get_object());
}

}  // namespace kubeopera::inline v1::json
